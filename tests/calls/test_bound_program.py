"""Programs as they are called: params that each call gives."""

from pathlib import Path

import numpy as np
import pytest

import graphc
from graphc.base.dtypes import float32
from graphc.calls.bound_program import GivenProgram, build, program_on
from graphc.compiler import cache
from graphc.compiler.graph_programs import program_key
from graphc.compiler.ready import spec_and_text
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.elementwise import add


def test_params_may_be_others_in_each_call():
    graph = Graph("sum")
    x = graph.add_input(TensorType(float32, (3,)), "x")
    p = graph.add_input(TensorType(float32, (3,)), "p", "param", "p")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([add(x, p)])
    calls = GivenProgram(build(graph))
    given = np.arange(3, dtype=np.float32)
    for param in (np.ones(3, np.float32), np.zeros(3, np.float32), np.ones((2, 3), np.float32)[1]):
        for _ in range(2):
            (found,) = calls.run([given], (param,))
            np.testing.assert_array_equal(found, given + param)
    (found,) = calls.run([np.arange(6, dtype=np.float32)[::2]], (param,))  # not dense
    np.testing.assert_array_equal(found, [1, 3, 5])


def test_a_program_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    graph, disk = graphc.trace(lambda x: x + 1, graphc.ones(3)), cache.current()
    assert disk is not None
    key = program_key(disk, graph, *spec_and_text("host"))
    keys, key_of = [], cache.key_of
    monkeypatch.setattr(cache, "key_of", lambda *parts: keys.append(key_of(*parts)) or keys[-1])
    built = program_on(graph, "host")
    assert keys.count(key) == 1 and disk.path(key).exists()
    assert program_on(graph, "host").object == built.object and keys.count(key) == 2
