"""Whole graphs with named dimensions, losses with their gradients: one native program, compared at many sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphc.compiler.compile import compile_graph, load_compiled
from graphc.ir.graph.graph import input_class
from graphc.ir.graph.interpret import Evaluator, bind
from tests.passes.test_named_dims import FILES, arguments, read, sizes_to_try

BOUND = 1e-3
"""Largest difference over the largest magnitude: gradients of batch norm over few values lose most digits."""


@pytest.mark.sampled(50)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_one_native_program_computes_the_graph_at_every_size(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_CACHE", "off")
    graph = read(path)
    program = load_compiled(compile_graph(graph))
    for sizes in sizes_to_try(graph.dims):
        fixed = bind(graph, sizes)
        given = arguments(fixed)
        expected = Evaluator().run(fixed, [a.copy() for a in given])
        pairs = list(zip(fixed.inputs, given, strict=True))
        inputs = [a for v, a in pairs if input_class(v) == "input"]
        bound = {v.node.attrs["path"]: a for v, a in pairs if input_class(v) != "input"}
        found = program.run(inputs, [bound[spec.path].copy() for spec in program.bound])
        for result, array in zip(found, expected, strict=True):
            assert result.shape == array.shape and result.dtype == array.dtype
            scale = max(1e-3, float(np.abs(array).max(initial=0)))
            assert float(np.abs(result.astype(float) - array.astype(float)).max(initial=0)) <= BOUND * scale, sizes
