"""Tests of graph autodiff: finite differences, second order, effects, names, and the split into two graphs."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import float32, float64, int64
from graphc.base.location import Location
from graphc.errors import ArgumentError, GradientError
from graphc.ir.graph.graph import Graph, input_class
from graphc.ir.graph.interpret import Evaluator, bind, evaluate
from graphc.ir.op import REGISTRY
from graphc.ir.types import TensorType
from graphc.ops.autodiff import pushforward_graph, split_forward_backward, vjp_graph
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.effects import state, tap
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise, math
from graphc.ops.reduction import reduce
from graphc.ops.selection import index
from graphc.passes.pipeline import optimize
from tests.named_graphs import MODELS, some_sizes
from tests.named_graphs import arrays_for as named_arrays_for


def build(function, *inputs, name="f"):
    """A graph of ``function``; inputs are (name, shape) or (name, shape, class, path), all f64."""
    graph = Graph(name)
    values = [graph.add_input(TensorType(float64, dims), key, *(rest or ("input", ""))) for key, dims, *rest in inputs]
    with use(GraphDispatcher(graph, Location("layer", "model.py", 3))):
        results = function(*values)
    graph.set_outputs(results if isinstance(results, tuple) else (results,))
    return graph


def arrays_for(graph, seed=0):
    random = np.random.default_rng(seed)
    return [random.standard_normal(v.shape) for v in graph.inputs]


def check_gradients(graph):
    """Directional finite differences of sum(g * outputs) against the gradients of every input."""
    joint = vjp_graph(graph, graph.inputs)
    points = arrays_for(graph)
    random = np.random.default_rng(5)
    outputs = evaluate(graph, points)
    seeds = [random.standard_normal(o.shape) for o in outputs]
    results = evaluate(joint, [*points, *seeds])
    for expected, got in zip(outputs, results, strict=False):
        np.testing.assert_array_equal(got, expected)
    gradients = results[len(outputs) :]
    assert [g.shape for g in gradients] == [v.shape for v in graph.inputs]
    directions = [random.standard_normal(p.shape) for p in points]
    step = 1e-6

    def along(t):
        moved = evaluate(graph, [p + t * d for p, d in zip(points, directions, strict=True)])
        return sum(np.vdot(s, o) for s, o in zip(seeds, moved, strict=True))

    numeric = (along(step) - along(-step)) / (2 * step)
    analytic = sum(np.vdot(g, d) for g, d in zip(gradients, directions, strict=True))
    np.testing.assert_allclose(analytic, numeric, rtol=1e-6, atol=1e-8)
    return joint


def mlp(x, w, b, v):
    h = math.tanh(elementwise.add(matmul(x, w, transpose_b=True), b))
    return reduce.sum(elementwise.mul(matmul(h, v), h), axes=(0, 1), keepdims=False)


MLP = [("x", (3, 4)), ("w", (5, 4), "param", "fc1.weight"), ("b", (5,), "param", "fc1.bias"), ("v", (5, 5))]


def test_gradients_first_and_second_order():
    joint = check_gradients(build(mlp, *MLP))
    assert [v.name for v in joint.inputs] == ["x", "w", "b", "v", "grad.sum"]
    assert [v.name for v in joint.outputs] == ["sum", "grad.x", "grad.fc1.weight", "grad.fc1.bias", "grad.v"]
    check_gradients(joint)


def test_broadcast_and_shared_operands():
    def function(x, y):
        z = elementwise.mul(elementwise.add(x, y), x)
        return elementwise.sub(z, z), elementwise.div(z, elementwise.add(math.exp(y), 1.0))

    check_gradients(build(function, ("x", (2, 1, 3)), ("y", (4, 1))))


def test_an_output_that_is_an_input_and_one_used_twice():
    graph = build(lambda x: (x, x, elementwise.mul(x, x)), ("x", (3,)))
    joint = check_gradients(graph)
    assert [v.name for v in joint.inputs] == ["x", "grad.x", "grad.x.1", "grad.mul"]


def test_unit_gradient_of_a_scalar():
    graph = build(mlp, *MLP)
    joint = vjp_graph(graph, [graph.inputs[1]], unit=True)
    assert len(joint.inputs) == 4 and len(joint.outputs) == 2
    points = arrays_for(graph)
    seeded = vjp_graph(graph, [graph.inputs[1]])
    np.testing.assert_array_equal(evaluate(joint, points)[1], evaluate(seeded, [*points, np.ones(())])[1])
    keep = build(lambda x: reduce.sum(x, axes=(0,), keepdims=True), ("x", (3,)))
    np.testing.assert_array_equal(evaluate(vjp_graph(keep, keep.inputs, unit=True), arrays_for(keep))[1], np.ones(3))


def test_chosen_outputs_and_unused_inputs():
    graph = build(lambda x, y: (math.exp(x), math.sin(y)), ("x", (2,)), ("y", (2,)))
    joint = vjp_graph(graph, graph.inputs, outputs=[1])
    x, y = arrays_for(graph)
    results = evaluate(joint, [x, y, np.ones(2)])
    np.testing.assert_array_equal(results[2], np.zeros(2))
    np.testing.assert_allclose(results[3], np.cos(y))
    assert [v.name for v in joint.inputs] == ["x", "y", "grad.sin"]


def test_gradient_of_an_inner_value():
    graph = build(lambda x: math.exp(math.sin(x)), ("x", (3,)))
    inner = graph.nodes()[0].result
    joint = vjp_graph(graph, [inner])
    (x,) = arrays_for(graph)
    np.testing.assert_allclose(evaluate(joint, [x, np.ones(3)])[1], np.exp(np.sin(x)))


def test_only_what_is_needed_is_emitted():
    graph = build(mlp, *MLP)
    count = len(vjp_graph(graph, [graph.inputs[3]]))
    assert count < len(vjp_graph(graph, graph.inputs)) - 3


def test_stop_gradient_blocks():
    graph = build(lambda x: elementwise.mul(state.stop_gradient(math.exp(x)), x), ("x", (3,)))
    (x,) = arrays_for(graph)
    np.testing.assert_allclose(evaluate(vjp_graph(graph, graph.inputs), [x, np.ones(3)])[1], np.exp(x))
    blocked = build(lambda x: state.stop_gradient(x), ("x", (3,)))
    np.testing.assert_array_equal(evaluate(vjp_graph(blocked, blocked.inputs), [x, np.ones(3)])[1], np.zeros(3))


def test_effects_stay_and_integers_are_passed_by():
    def function(x, s):
        written = state.state_write(s, elementwise.add(s, elementwise.cast(elementwise.gt(x, 0.0), dtype=float64)))
        return elementwise.mul(tap.tap(x, name="fc1"), written)

    graph = build(function, ("x", (3,)), ("s", (3,), "state", "running"))
    joint = vjp_graph(graph, [graph.inputs[0]])
    x, s = np.array([1.0, -2.0, 3.0]), np.array([1.0, 10.0, 100.0])
    runner = Evaluator()
    results = runner.run(joint, [x, s, np.ones(3)])
    np.testing.assert_array_equal(results[1], [2.0, 10.0, 101.0])
    np.testing.assert_array_equal(runner.state["running"], [2.0, 10.0, 101.0])
    assert [n.op.name for n in joint.nodes()].count("tap") == 1


def test_locations_and_names_of_backward_nodes():
    graph = build(lambda x: math.exp(x), ("x", (3,)))
    joint = vjp_graph(graph, graph.inputs)
    node = joint.outputs[1].node
    assert node.op.name == "mul" and node.location == Location("layer", "model.py", 3)
    assert joint.outputs[1].name == "grad.x"


def test_errors():
    graph = Graph()
    x = graph.add_input(TensorType(float32, (3,)), "x")
    n = graph.add_input(TensorType(int64, (3,)), "n")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([elementwise.mul(x, x), n])
    with pytest.raises(GradientError, match=r"%n: i64\[3\] has no gradient"):
        vjp_graph(graph, [n])
    with pytest.raises(GradientError, match="has no gradient"):
        vjp_graph(graph, [x], outputs=[1])
    with pytest.raises(ArgumentError, match="there is no output 2"):
        vjp_graph(graph, [x], outputs=[2])
    with pytest.raises(GradientError, match=r"only for scalar outputs, got f32\[3\]"):
        vjp_graph(graph, [x], outputs=[0], unit=True)
    assert len(vjp_graph(graph, [x]).inputs) == 3  # the integer output is passed by


def test_missing_rule_names_the_op_and_the_line(monkeypatch):
    graph = build(lambda x: math.sin(math.exp(x)), ("x", (3,)))
    monkeypatch.setitem(REGISTRY["exp"].__dict__, "vjp", None)
    with pytest.raises(GradientError, match="exp has no gradient rule") as caught:
        vjp_graph(graph, graph.inputs)
    assert "layer, model.py:3" in str(caught.value)


def test_split_computes_the_same():
    graph = build(mlp, *MLP)
    joint = vjp_graph(graph, graph.inputs[1:])
    split = split_forward_backward(joint, 4, 1)
    points, seed = arrays_for(graph), np.asarray(2.0)
    expected = evaluate(joint, [*points, seed])
    forward = evaluate(split.forward, points)
    np.testing.assert_array_equal(forward[0], expected[0])
    residuals = forward[1:]
    assert len(residuals) == split.residuals
    backward = evaluate(split.backward, [*residuals, *(points[i] for i in split.kept), seed])
    for got, want in zip(backward, expected[1:], strict=True):
        np.testing.assert_array_equal(got, want)
    assert split.kept == (0, 3) and split.gradients == 1
    assert [input_class(v) for v in split.backward.inputs] == ["input"] * len(split.backward.inputs)
    assert "tanh" not in {n.op.name for n in split.backward.nodes()}


def test_split_hands_state_over_and_computes_generators_again():
    def function(x, s):
        old = elementwise.mul(s, 1.0)
        written = state.state_write(s, elementwise.add(s, 1.0))
        big = shape.broadcast_to(elementwise.add(written, 0.0), shape=(4, 3))
        ramp = index.iota(shape=(4, 3), axis=0, dtype=float64)
        return elementwise.mul(elementwise.mul(elementwise.mul(x, big), ramp), elementwise.mul(s, old))

    graph = Graph("f")
    x = graph.add_input(TensorType(float64, (4, 3)), "x")
    s = graph.add_input(TensorType(float64, (3,)), "s", "state", "running")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([function(x, s)])
    joint = vjp_graph(graph, [x])
    split = split_forward_backward(joint, 2, 1)
    assert split.kept == ()
    assert all(v.type.size == 3 for v in split.forward.outputs[1:])  # neither the broadcast value nor the ramp is kept
    assert "iota" in {n.op.name for n in split.backward.nodes()}
    names = [n.op.name for n in split.forward.nodes()]
    assert names.count("state_write") == 1 and "state_write" not in {n.op.name for n in split.backward.nodes()}
    points = arrays_for(graph)
    expected = evaluate(joint, [*points, np.ones((4, 3))])[1]
    residuals = evaluate(split.forward, points)[1:]
    np.testing.assert_array_equal(evaluate(split.backward, [*residuals, np.ones((4, 3))])[0], expected)


def test_split_refuses_a_wrong_cut():
    graph = build(mlp, *MLP)
    joint = vjp_graph(graph, graph.inputs[:1])
    with pytest.raises(GradientError, match=r"depend on the gradient %grad\.sum"):
        split_forward_backward(joint, 4, 2)


@pytest.mark.parametrize("name", MODELS)
def test_graphs_with_named_dimensions_are_differentiated_once_for_all_sizes(name):
    graph = MODELS[name]()
    wrt = [i for i, v in enumerate(graph.inputs) if v.dtype.kind == "f" and input_class(v) != "state"]
    joint = optimize(vjp_graph(graph, [graph.inputs[i] for i in wrt]))
    split = split_forward_backward(joint, len(graph.inputs), len(graph.outputs))
    for sizes in some_sizes(graph):
        fixed = bind(graph, sizes)
        alone = vjp_graph(fixed, [fixed.inputs[i] for i in wrt])
        arrays = named_arrays_for(alone)
        expected = evaluate(alone, arrays)
        forward = evaluate(_bound(split.forward, sizes), arrays[: len(graph.inputs)])
        results, residuals = forward[: len(graph.outputs)], forward[len(graph.outputs) :]
        kept = [arrays[i] for i in split.kept]
        result = evaluate(_bound(split.backward, sizes), [*residuals, *kept, *arrays[len(graph.inputs) :]])
        for got, value in zip((*results, *result), expected, strict=True):
            np.testing.assert_allclose(got, value, rtol=2e-4, atol=1e-4)


def _bound(graph, sizes):
    return bind(graph, {name: size for name, size in sizes.items() if name in graph.dims})


def test_tangents_of_outputs_follow_from_those_of_inputs():
    def function(x, y, z):
        product = matmul(math.tanh(x), y)
        return elementwise.mul(product, z), elementwise.gt(product, z), math.exp(z)

    graph = build(function, ("x", (2, 3)), ("y", (3, 2), "param", "w"), ("z", (2, 2)))
    pushed, outputs = pushforward_graph(graph, [0, 2])
    assert outputs == [0, 2] and len(pushed.inputs) == 5
    assert [input_class(v) for v in pushed.inputs] == ["input"] * 5
    arrays = arrays_for(graph)
    tangents = {i: np.random.default_rng(5 + i).standard_normal(arrays[i].shape) for i in (0, 2)}
    result = Evaluator().run(pushed, [*arrays, *tangents.values()])

    def moved(step):
        return Evaluator().run(graph, [a + step * tangents.get(i, 0) for i, a in enumerate(arrays)])

    for i, tangent in zip(outputs, result, strict=True):
        np.testing.assert_allclose(tangent, (moved(1e-6)[i] - moved(-1e-6)[i]) / 2e-6, rtol=1e-7, atol=1e-8)


def test_what_does_not_depend_on_the_moving_inputs_has_no_tangent():
    graph = build(lambda x, y: (math.exp(y), elementwise.mul(y, 2.0)), ("x", (2,)), ("y", (2,)))
    pushed, outputs = pushforward_graph(graph, [0])
    assert outputs == [] and not pushed.outputs and len(pushed.inputs) == 3
