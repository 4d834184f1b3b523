"""Whole graphs with named dimensions, optimized and lowered once, in every layout, mean the same at each size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from graphc.fusion.layout import LAYOUTS
from graphc.ir.graph.interpret import bind as bind_graph
from graphc.ir.kernel.dims import bind, dims_of_program
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.statements import Program
from graphc.ir.kernel.text import collect_data, print_program
from graphc.ir.kernel.verify import verify_program
from graphc.lowering.program import lower_layouts
from graphc.passes.pipeline import optimize
from tests.lowering.sized import compare
from tests.passes.test_named_dims import FILES, arguments, read, sizes_to_try


def layouts_of(path: Path) -> tuple[str, ...]:
    images = any(value.type.rank == 4 for value in read(path).inputs)
    return LAYOUTS if images and not path.stem.endswith("_loss") else LAYOUTS[:1]


@pytest.mark.sampled(50)
@pytest.mark.parametrize(
    ("path", "layout"), [(p, x) for p in FILES for x in layouts_of(p)], ids=lambda x: str(getattr(x, "stem", x))
)
def test_a_program_for_all_sizes_means_what_the_graph_does_at_each(path: Path, layout: str):
    graph = read(path)
    (program,) = lower_layouts(optimize(graph), (layout,))
    verify_program(program)
    assert dims_of_program(program) == graph.dims
    chosen = sorted(sizes_to_try(graph.dims), key=lambda sizes: _elements(program, sizes))
    small = [sizes for sizes in chosen if _elements(program, sizes) <= MOST]
    for sizes in (*chosen[:2], *small[2:][-1:]):
        compare(program, graph, sizes, arguments(bind_graph(graph, sizes)))


MOST = 1 << 14
"""Elements of all storages up to which the interpreter runs a program at more than the two smallest sizes."""


def _elements(program: Program, sizes: Mapping[str, int]) -> int:
    return sum(s.size for s in bind(program, sizes).storages)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_its_text_reads_back(path: Path):
    (program,) = lower_layouts(optimize(read(path)), LAYOUTS[:1])
    assert print_program(parse_program(print_program(program), collect_data(program))) == print_program(program)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_has_as_many_calls_as_the_one_for_the_expected_sizes(path: Path):
    """Fusion decides by expected sizes."""
    graph = read(path)
    expected = bind_graph(graph, {name: d.hint for name, d in graph.dims.items()})
    (program,), (fixed,) = (lower_layouts(optimize(g), LAYOUTS[:1]) for g in (graph, expected))
    assert len(program.calls) == len(fixed.calls)
