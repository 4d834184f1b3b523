"""Facts about the one door: which dispatcher is current, and what the graph dispatcher appends."""

from __future__ import annotations

import threading

import pytest

from graphc.base.dtypes import float32
from graphc.base.location import Location
from graphc.eager.dispatcher import EAGER
from graphc.errors import ShapeError
from graphc.ir.graph.graph import Graph
from graphc.ir.op import REGISTRY
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.pointwise import elementwise

LOCATION = Location("fc1", "model.py", 12)


class Recorder:
    """Notes what is applied."""

    def __init__(self):
        self.applied = []

    def apply(self, op, operands, attrs):
        self.applied.append((op.name, operands, dict(attrs)))
        return "result"

    def scalar(self, value, dtype):
        return (value, dtype)


def test_use_nests_and_ends_with_an_error():
    outer, inner = Recorder(), Recorder()
    with dispatch.use(outer):
        with pytest.raises(KeyError), dispatch.use(inner):
            assert dispatch.current() is inner
            raise KeyError
        assert dispatch.current() is outer


def test_the_default_is_used_when_none_is_active_and_without_one_the_eager_one(monkeypatch):
    monkeypatch.setattr(dispatch, "_default", [])
    assert dispatch.current() is dispatch.default() is EAGER
    default = Recorder()
    dispatch.set_default(default)
    assert dispatch.apply(REGISTRY["neg"], ("x",), {}) == "result"
    assert default.applied == [("neg", ("x",), {})]
    with dispatch.use(Recorder()) as active:
        assert dispatch.current() is active


def test_each_thread_has_its_own():
    seen = []

    def look():
        seen.append(dispatch.current())

    with dispatch.use(Recorder()):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [EAGER]


def test_graph_dispatcher_appends_located_and_named_nodes():
    graph = Graph("test")
    x = graph.add_input(TensorType(float32, (2,)), "x")
    with dispatch.use(dispatch.GraphDispatcher(graph, LOCATION, "fc1.")):
        result = elementwise.add(x, 1.5)
    assert result.name == "fc1.add" and result.node.location == LOCATION
    assert result.node.operands[1].is_scalar_constant
    assert result.node.operands[1] is graph.scalar(1.5, float32)


def test_errors_name_the_place():
    graph = Graph("test")
    x, y = (graph.add_input(TensorType(float32, s), n) for n, s in (("x", (2,)), ("y", (3,))))
    with dispatch.use(dispatch.GraphDispatcher(graph, LOCATION)), pytest.raises(ShapeError) as caught:
        elementwise.add(x, y)
    lines = str(caught.value).splitlines()
    assert lines[0] == "add: shapes [2] (operand 0) and [3] (operand 1) do not broadcast: 2 and 3 at dim -1"
    assert lines[1].split() == ["where", "add(%x:", "f32[2],", "%y:", "f32[3])"]
    assert lines[2].split()[:2] == ["from", "fc1,"]
    assert lines[3].split()[0] == "try"
