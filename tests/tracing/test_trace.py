"""Tracing of modules and functions: names, state, structure, locations, refusals."""

from __future__ import annotations

import gc as collector
from collections import namedtuple

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.autograd import Function
from graphc.errors import ArgumentError, TraceError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import Evaluator, evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data
from graphc.ir.graph.verify import verify_graph
from graphc.ops.autodiff import vjp_graph
from graphc.tensors.structure import unflatten
from graphc.tracing.trace import graph_name, modules_of, trace_function

X = graphc.from_numpy(np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 5)
        self.norm = nn.BatchNorm1d(5)
        self.drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(5, 2)

    def forward(self, x):
        return self.fc2(self.drop(self.norm(self.fc1(x)).relu()))


def run(traced, *inputs):
    """Outputs as the interpreter computes them, nested as the function returned them, and the state afterwards."""
    evaluator = Evaluator()
    state = traced.state()
    arguments = [state.get(v.node.attrs["path"]) for v in traced.graph.inputs]
    for i, array in zip((traced.graph.inputs.index(v) for v in traced.inputs), inputs, strict=True):
        arguments[i] = array
    outputs = evaluator.run(traced.graph, [np.array(a) for a in arguments])
    return unflatten(traced.structure, list(outputs)), evaluator.state


def ops(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes()]


def test_a_module_traces_to_what_it_computes():
    graphc.manual_seed(1)
    net = Net()
    before = {k: v.detach().clone() for k, v in net.state_dict().items()}
    traced = trace_function(net, (X,))
    verify_graph(traced.graph)
    assert all(v.equal(before[k]) for k, v in net.state_dict().items())
    output, state = run(traced, X.numpy())
    expected = net(X)
    np.testing.assert_allclose(output, expected.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert sorted(state) == ["graphc.random", "norm.num_batches_tracked", "norm.running_mean", "norm.running_var"]
    np.testing.assert_allclose(state["norm.running_mean"], net.norm.running_mean.numpy(), rtol=1e-5, atol=1e-7)
    assert state["graphc.random"].tolist() == graphc.get_rng_state().tolist()


def test_arguments_have_classes_and_qualified_names():
    graph = graphc.trace(Net(), X)
    found = {(v.node.attrs["cls"], v.node.attrs["path"]) for v in graph.inputs}
    assert {("input", ""), ("param", "fc1.weight"), ("state", "norm.running_var"), ("state", "graphc.random")} <= found
    assert graph.name == "Net" and graph.inputs[0].name == "x"
    node = next(n for n in graph.nodes() if n.op.name == "matmul")
    assert node.location.module == "fc1" and node.location.file.endswith("test_trace.py")
    assert node.results[0].name.startswith("fc1.")


def test_the_text_reads_back():
    graph = graphc.trace(Net(), X)
    assert parse_graph(str(graph), collect_data(graph)) == graph


def test_evaluation_mode_has_no_state_to_write():
    traced = trace_function(Net().eval(), (X,))
    assert not any(a.written for a in traced.arguments)
    assert "random_bits" not in ops(traced.graph)


def test_tied_weights_are_one_argument():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3, bias=False)
            self.b = nn.Linear(3, 3, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    traced = trace_function(Tied(), (X,))
    assert [a.value.node.attrs["path"] for a in traced.arguments] == ["a.weight"]


def test_nested_arguments_and_outputs():
    Pair = namedtuple("Pair", "a b")

    def function(batch, scale=1, *, mask):
        return {"sum": batch["x"] + batch["y"][0] * scale, "rest": (Pair(mask, scale), None)}

    arguments = {"x": X, "y": [X]}
    traced = trace_function(function, (arguments, 3), {"mask": X > 0})
    assert [v.name for v in traced.inputs] == ["batch.x", "batch.y.0", "mask"]
    output, _ = run(traced, X.numpy(), X.numpy(), X.numpy() > 0)
    np.testing.assert_allclose(output["sum"], X.numpy() * 4, rtol=1e-6)
    assert output["rest"][0].b == 3 and output["rest"][1] is None
    assert graphc.trace(lambda *xs: xs[0] + xs[1], X, X).inputs[1].name == "xs.1"


def test_unused_inputs_stay():
    graph = graphc.trace(lambda x, y: x * 2, X, X)
    assert len(graph.inputs) == 2


def test_outside_tensors_become_constants_or_parameters():
    table, weight = graphc.arange(3.0), graphc.ones(3, requires_grad=True)
    traced = trace_function(lambda x: x * table + weight, (X,))
    assert [c.tensor is table for c in traced.constants] == [True]
    (argument,) = traced.arguments
    assert argument.tensor is weight and argument.value.node.attrs["cls"] == "param"
    assert traced.constants[0].holds()
    table += 1
    assert not traced.constants[0].holds()


def test_results_of_earlier_operations_are_refused():
    w = graphc.ones(3, requires_grad=True) * 2
    with pytest.raises(TraceError, match="would lose its history"):
        graphc.trace(lambda x: x * w, X)
    graphc.trace(lambda x: x * w.detach(), X)


def test_a_written_outside_tensor_becomes_state():
    count, total = graphc.zeros(()), graphc.zeros(3)

    def function(x):
        count.add_(1)
        total[1:].add_(x.sum(0)[1:])
        return x * count + total

    traced = trace_function(function, (X,))
    assert count.item() == 0
    output, state = run(traced, X.numpy())
    expected = function(X)
    np.testing.assert_allclose(output, expected.numpy(), rtol=1e-5)
    assert [a.written for a in traced.arguments] == [True, True]
    np.testing.assert_allclose(state["captured.0"], 1)
    np.testing.assert_allclose(state["captured.1"], total.numpy(), rtol=1e-6)


def test_tensors_made_inside_are_no_state():
    def function(x):
        y = graphc.zeros(4, 3)
        y += x
        z = graphc.ones(3, requires_grad=True)
        return y * z

    traced = trace_function(function, (X,))
    assert not traced.arguments and not traced.constants
    np.testing.assert_array_equal(run(traced, X.numpy())[0], X.numpy())
    assert traced.differentiable == (True,)


def test_shapes_and_outside_values_can_be_asked_for():
    table = graphc.tensor([2.0, 3.0])

    def function(x):
        assert len(x) == 4 and x.shape[1] == 3 and x.dtype is graphc.float32 and x.numel() == 12
        rows = [row * 2 for row in x]
        return graphc.stack(rows) * table[0].item() if table.sum() > 4 else x

    traced = trace_function(function, (X,))
    np.testing.assert_allclose(run(traced, X.numpy())[0], X.numpy() * 4, rtol=1e-6)


@pytest.mark.parametrize(
    ("code", "purpose"),
    [
        (lambda x: 1 if x.sum() > 0 else 2, "bool"),
        (lambda x: x.sum().item(), "item"),
        (lambda x: float(x.sum()), "float"),
        (lambda x: int(x.sum()), "int"),
        (lambda x: x.numpy(), "numpy"),
        (lambda x: np.asarray(x), "numpy"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: [1, 2][x.sum().long()], "Python int"),
        (lambda x: x[: x.sum().long()], "Python int"),
        (lambda x: x.equal(x), "bool"),
    ],
)
def test_values_of_traced_tensors_cannot(code, purpose):
    with pytest.raises(TraceError) as caught:
        graphc.trace(code, X)
    what, where, origin, remedy = str(caught.value).split("\n")
    assert "test_trace.py:" in what and purpose in what and "needs the values of a traced tensor" in what
    assert where.startswith("  where  %") and "made by" in where
    assert origin.startswith("  from   ") and "lambda x:" in origin
    assert remedy.startswith("  try    ") and remedy.endswith("outside of the traced function")


def test_values_of_parameters_and_state_cannot_be_asked_for():
    net = Net()
    with pytest.raises(TraceError, match="needs the values"):
        graphc.trace(lambda x: net(x) * net.fc1.weight.sum().item(), X)
    with pytest.raises(TraceError, match="needs the values"):
        graphc.trace(lambda x: net(x) * net.norm.running_mean[0].item(), X)


def test_errors_of_ops_name_the_line():
    with pytest.raises(graphc.errors.ShapeError, match=r"from   .*test_trace.py:\d+: .*graphc.ones"):
        graphc.trace(lambda x: x + graphc.ones(7), X)


def test_no_grad_and_detach_leave_marks():
    def function(x):
        with graphc.no_grad():
            scale = x.sum() * 2
        return (x * scale * x.detach()).sum()

    graph = graphc.trace(function, X)
    joint = vjp_graph(graph, [graph.inputs[0]], unit=True)
    x = graphc.from_numpy(X.numpy().copy()).requires_grad_()
    function(x).backward()
    np.testing.assert_allclose(evaluate(joint, [X.numpy()])[1], x.grad.numpy(), rtol=1e-5)
    with graphc.no_grad():
        assert "stop_gradient" not in ops(graphc.trace(lambda x: x * x.sum(), X))


def test_backward_under_trace():
    def function(x):
        x = x.detach().requires_grad_()
        y = (x**2).sum()
        y.backward()
        return x.grad * 2

    x = graphc.from_numpy(X.numpy()).requires_grad_()
    np.testing.assert_allclose(evaluate(graphc.trace(function, x), [X.numpy()])[0], 4 * X.numpy(), rtol=1e-6)
    assert x.grad is None


def _clears(model, x):
    model.zero_grad()
    return model(x)


def _reads(model, x):
    return x if model.weight.grad is None else x * 2


def _sets(model, x):
    model.weight.grad = None
    return x


def _adds(model, x):
    loss = model(x).sum()
    loss.backward()
    return loss


def _adds_to_an_argument(model, x):
    loss = (x * x).sum()
    loss.backward()
    return loss


@pytest.mark.parametrize("use", [_clears, _reads, _sets, _adds, _adds_to_an_argument])
def test_gradients_of_tensors_from_outside_are_not_touched_by_traces_that_bind_nothing(use):
    model, x = graphc.nn.Linear(2, 1), graphc.ones(3, 2, requires_grad=True)
    with pytest.raises(TraceError, match=r"grad of a tensor from outside[\s\S]*compile_step"):
        graphc.trace(lambda x: use(model, x), x)
    assert x.grad is None and model.weight.grad is None


@pytest.mark.parametrize("use", [_adds, _adds_to_an_argument])
def test_gradients_of_arguments_are_not_touched_silently(use):
    model, x = graphc.nn.Linear(2, 1), graphc.ones(3, 2, requires_grad=True)
    with pytest.raises(TraceError, match=r"grad of a tensor from outside[\s\S]*compile_step"):
        graphc.compile(lambda x: use(model, x))(x)
    assert x.grad is None and model.weight.grad is None


def test_autograd_grad_of_parameters_works_inside():
    model, x = graphc.nn.Linear(2, 1), graphc.ones(3, 2)
    function = graphc.compile(lambda x: graphc.autograd.grad(model(x).sum(), list(model.parameters())))
    assert [g.tolist() for g in function(x)] == [[[3.0, 3.0]], [3.0]]


class Scale(Function):
    """x * factor + bias with a gradient that shows which rule ran: twice the true one."""

    @staticmethod
    def forward(ctx, x, factor, bias):
        y = x * factor
        ctx.save_for_backward(x, y)
        ctx.factor, ctx.bias = factor, bias
        ctx.mark_non_differentiable(positive := y > 0)
        return y + bias, positive

    @staticmethod
    def backward(ctx, g, _):
        x, y = ctx.saved_tensors
        return 2 * ctx.factor * g + 0 * x * y, None, (2 * g).sum(0)


@pytest.mark.parametrize("gradient", ["graph", "tape"])
def test_custom_functions(gradient):
    bias = graphc.ones(3, requires_grad=True)

    def function(x):
        y, positive = Scale.apply(x, 3.0, bias)
        return (y * y * positive).sum()

    def with_gradient(x):
        value = function(x)
        return (value, *graphc.autograd.grad(value, [x, bias]))

    x = graphc.from_numpy(X.numpy().copy()).requires_grad_()
    expected = [t.detach().numpy() for t in with_gradient(x)]
    graph = graphc.trace(function if gradient == "graph" else with_gradient, x)
    assert "call" in ops(graph)
    verify_graph(graph)
    if gradient == "graph":
        graph = vjp_graph(graph, graph.inputs, unit=True)
    found = evaluate(graph, [X.numpy(), bias.detach().numpy()])
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_instance_style_functions_and_closures():
    outside = graphc.full((3,), 2.0)

    class Old(Function):
        def __init__(self, factor):
            self.factor = factor

        def forward(self, x):
            self.x = x
            return x * self.factor * outside

        def backward(self, g):
            return g * self.factor * outside + 0 * self.x

    graph = graphc.trace(lambda x: Old(3.0)(x).sum(), X)
    joint = vjp_graph(graph, [graph.inputs[0]], unit=True)
    value, gradient = evaluate(joint, [X.numpy()])
    np.testing.assert_allclose(value, X.numpy().sum() * 6, rtol=1e-5)
    assert (gradient == 6).all()


def test_custom_functions_that_write():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    class Secret(Double):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            return x * 1

    def function(cls):
        def run(x):
            y = x * 1
            cls.apply(y)
            return y.sum()

        return run

    graph = graphc.trace(function(Double), X)
    joint = vjp_graph(graph, [graph.inputs[0]], unit=True)
    value, gradient = evaluate(joint, [X.numpy()])
    np.testing.assert_allclose(value, 2 * X.numpy().sum(), rtol=1e-5)
    assert (gradient == 2).all()
    with pytest.raises(TraceError, match="Secret writes to a tensor from outside"):
        graphc.trace(function(Secret), X)


def test_modules_are_found_for_their_names():
    net, other = Net(), nn.Linear(2, 2)

    def one(x):
        return net(x)

    def two(x):
        return other(net(x))

    assert modules_of(net) == [("", net)] and modules_of(net.forward) == [("", net)]
    assert modules_of(one) == [("", net)]
    assert {p for p, _ in modules_of(two)} == {"net.", "other."}
    assert {"net.fc1.weight", "other.bias"} <= {v.node.attrs["path"] for v in graphc.trace(two, X).inputs}
    assert modules_of(len) == []
    holder = [Net(), Net()]
    paths = [v.node.attrs["path"] for v in graphc.trace(lambda x: holder[0](x) + holder[1](x), X).inputs]
    assert len(set(paths)) == len(paths)


def test_names_of_graphs():
    assert graph_name(Net()) == "Net"
    assert graph_name(lambda x: x) == "main"
    assert graph_name(np.mean) == "mean"


def test_what_can_be_traced():
    with pytest.raises(ArgumentError, match="can be traced, not int"):
        graphc.trace(3, X)
    with pytest.raises(TraceError, match="inside of another trace"):
        graphc.trace(lambda x: graphc.trace(lambda y: y, x), X)
    assert not graphc.is_tracing()
    seen = []
    graphc.trace(lambda x: seen.append(graphc.is_tracing()) or x, X)
    assert seen == [True]


def test_what_a_trace_assumes_of_a_size_limits_it():
    table, time = graphc.rand(128, 6), graphc.Dim("time")
    graph = graphc.trace(lambda x: x + table[: x.shape[0]], graphc.rand(5, 6), dims=[(time,)])
    assert [str(a).partition(" (")[0] for a in graph.assumptions] == ["time <= 128"]
    verify_graph(graph)
    assert (graph.dims["time"].low, graph.dims["time"].high) == (1, 128)


def test_no_garbage_collection_begins_within_a_trace():
    traced = graphc.trace(lambda x: x * (2 if collector.isenabled() else 3), graphc.ones(2))
    assert evaluate(traced, [np.ones(2, np.float32)])[0].tolist() == [3, 3] and collector.isenabled()
