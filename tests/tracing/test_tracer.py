"""The tracing dispatcher by itself: captures, sub-graphs, memory layout, writes."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.base.dtypes import float32
from graphc.errors import ArgumentError, TraceError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import Evaluator, evaluate
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.tensor import Tensor
from graphc.tracing.tracer import Tracer


def start() -> tuple[Tracer, Tensor]:
    graph = Graph("test")
    return Tracer(graph), Tensor._wrap(graph.add_input(TensorType(float32, (2, 3)), "x"))


def test_a_tensor_is_captured_once():
    tracer, x = start()
    table = graphc.ones(2, 3)
    with dispatch.use(tracer):
        y = x * table + table
    assert [n.op.name for n in tracer.graph.nodes()] == ["constant", "mul", "add"]
    assert tracer.local(table) is tracer.local(table)
    assert tracer.local(y) is y


def test_names_of_known_tensors():
    tracer, x = start()
    a, b, c = (graphc.ones(3) for _ in range(3))
    tracer.add_names([(a, "param", "w"), (b, "state", "w"), (a, "param", "again")])
    with dispatch.use(tracer):
        x * a * b * c
    assert [(v.node.attrs["cls"], v.node.attrs["path"]) for v in tracer.graph.inputs[1:]] == [
        ("param", "w"),
        ("state", "w.1"),
    ]


def test_scalars_are_interned_and_captured_scalars_are_not():
    tracer, x = start()
    outside = graphc.tensor(2.0)
    with dispatch.use(tracer):
        y = x * 2.0 * outside
        outside.add_(1)
        z = y * outside
        tracer.finish_writes()
    tracer.graph.set_outputs([z._data])
    state = tracer.graph.inputs[1]
    assert state.node.attrs == {"cls": "state", "path": "captured.0"}
    evaluator = Evaluator()
    (result,) = evaluator.run(tracer.graph, [np.ones((2, 3), np.float32), np.float32(2)])
    assert (result == 12).all() and evaluator.state["captured.0"] == 3


def test_layouts_are_those_of_eager_mode():
    tracer, x = start()
    with dispatch.use(tracer):
        for view in (x.t(), x[:, ::2], x.expand(4, 2, 3), x.reshape(3, 2).t(), x.unsqueeze(1)):
            strides = view.stride()
            eager = graphc.ones(2, 3)
            same = {
                (3, 2): eager.t(),
                (2, 2): eager[:, ::2],
                (4, 2, 3): eager.expand(4, 2, 3),
                (2, 3): eager.reshape(3, 2).t(),
                (2, 1, 3): eager.unsqueeze(1),
            }[view.shape]
            assert strides == same.stride() and view.is_contiguous() == same.is_contiguous()
        assert x.contiguous() is x and x.t().contiguous()._base is not x
        with pytest.raises(graphc.errors.ShapeError, match="cannot be viewed"):
            x.t().view(6)


def test_a_sub_graph_takes_what_it_uses_as_arguments():
    tracer, x = start()
    outside = graphc.full((3,), 2.0)
    with dispatch.use(tracer):
        y = x * 3
        inner = Tracer(Graph("inner"), parent=tracer)
        with dispatch.use(inner):
            made = graphc.ones(3)
            z = y * outside + made + y
    inner.graph.set_outputs([z._data])
    assert [t._data.name for t in inner.origins] == [y._data.name, tracer.local(outside)._data.name]
    assert len(inner.graph.inputs) == 2
    result = evaluate(inner.graph, [np.ones((2, 3), np.float32), np.ones(3, np.float32)])[0]
    assert (result == 3).all()


def test_values_of_what_constants_determine():
    tracer, x = start()
    outside = graphc.ones(2)
    with dispatch.use(tracer):
        table = graphc.arange(4)
        assert int((table * 2).sum()) == 12 and table.tolist() == [0, 1, 2, 3]
        assert bool((outside > 0).all())
        with pytest.raises(TraceError, match="needs the values"):
            (x * 0).sum().item()
        with pytest.raises(TraceError, match="whose values it has read"):
            outside[0] = 1.0


def test_views_made_before_the_trace_are_not_written():
    base = graphc.ones(2, 3)
    row = base[0]
    tracer, x = start()
    with dispatch.use(tracer), pytest.raises(TraceError, match="a view that was created before the trace"):
        row.add_(x[0])


def test_replaced_data():
    tracer, x = start()
    w = graphc.ones(2, 3, requires_grad=True)
    with dispatch.use(tracer):
        y = x * w
        w.data = w.data * 2
        z = x * w
        with pytest.raises(TraceError, match="another shape or type"):
            w.data = graphc.ones(3)
        tracer.finish_writes()
    assert y.requires_grad and z.requires_grad and w.tolist() == [[1] * 3] * 2
    tracer.graph.set_outputs([y._data, z._data])
    y, z = evaluate(tracer.graph, [np.ones((2, 3), np.float32)] * 2)
    assert (y == 1).all() and (z == 2).all()


def test_operations_are_recorded_as_in_eager_mode():
    tracer, x = start()
    x.requires_grad_()
    with dispatch.use(tracer):
        y = ew.mul(x, x)
        assert y.requires_grad and y.grad_fn.name() == "MulBackward"
        with graphc.no_grad():
            assert not ew.mul(x, x).requires_grad
        with pytest.raises(graphc.errors.GradientError, match="a leaf tensor"):
            x.add_(1)


def test_what_is_no_tensor_is_refused_as_in_eager_mode():
    for function in (lambda x: x.isclose(2), graphc.compile(lambda x: x.isclose(2))):
        with pytest.raises(ArgumentError, match="abs: int is no tensor"):
            function(graphc.ones(2))
