"""Programs of graphs: the key under which a compile stores them, and the explanation of stopped calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc.codegen.machine.target import host_target
from graphc.compiler import cache
from graphc.compiler.compile import compile_graph
from graphc.compiler.graph_programs import load_program, program_key
from graphc.compiler.ready import target_spec
from graphc.errors import IndexRangeError
from tests.compiler.graphs import mlp


def test_the_key_is_that_of_a_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    disk, target = cache.current(), host_target()
    assert disk is not None
    key = program_key(disk, mlp(), target)
    assert disk.load(key, target_spec(target)) is None
    compiled = compile_graph(mlp())
    entry = disk.load(key, target_spec(target))
    assert entry is not None and entry.object == compiled.object


def test_loaded_programs_explain_stopped_calls():
    graph = gc.trace(lambda x, i: x[i], gc.ones(4), gc.tensor([1, 2]))
    program = load_program(compile_graph(graph), graph)
    with pytest.raises(IndexRangeError, match="7"):
        program.run([np.ones(4, np.float32), np.array([1, 7])])
