"""Graphs in the place of modules: called, differentiated, compiled, trained and exported, bound to live tensors."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.calls.graph_module import GraphModule
from graphc.errors import ArgumentError, DTypeError, ShapeError, VerifyError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph


def model() -> nn.Module:
    gc.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))


def data() -> gc.Tensor:
    return gc.tensor(np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32))


def test_a_compiled_graph_is_what_was_traced_with_states_random_numbers_and_gradients():
    net, other, x = model(), model(), data()
    compiled = gc.compile(gc.trace(net, x))
    gc.manual_seed(7)
    result = compiled(x)
    result.sum().backward()
    gc.manual_seed(7)
    expected = other(x)
    expected.sum().backward()
    assert gc.allclose(result, expected, atol=1e-6)
    for (name, p), q in zip(net.named_parameters(), other.parameters(), strict=True):
        assert gc.allclose(p.grad, q.grad, atol=1e-5), name
    for (name, p), q in zip(net.named_buffers(), other.buffers(), strict=True):
        assert gc.allclose(p, q, atol=1e-6), name


@pytest.mark.parametrize("call", [GraphModule, gc.compile])
def test_it_reads_the_tensors_that_were_traced_as_they_are_at_each_call(call):
    net = nn.Linear(4, 2)
    run = call(gc.trace(net, data()))
    with gc.no_grad():
        before = run(data())
        net.weight.mul_(2.0)
        net.get_parameter("bias").zero_()
        assert gc.allclose(run(data()), net(data()), atol=1e-6) and not gc.allclose(run(data()), before)


def test_replayed_nodes_keep_the_lines_that_they_came_from():
    graph = gc.trace(model(), data())
    again = gc.trace(GraphModule(graph), data())
    writes = {"state_write", "stop_gradient", "constant"}
    lines = [[(n.op.name, str(n.location)) for n in g.nodes() if n.op.name not in writes] for g in (graph, again)]
    assert lines[0] == lines[1] and again.name == graph.name


def test_an_edited_graph_computes_what_it_says():
    net, x = nn.Sequential(nn.Linear(4, 2), nn.Tanh()), data()
    graph = gc.trace(net, x)
    graph.set_outputs([graph.outputs[0], graph.outputs[0].node.operands[0]])
    with gc.no_grad():
        result, inner = gc.compile(graph)(x)
        assert gc.allclose(result, net(x), atol=1e-6) and gc.allclose(inner, net[0](x), atol=1e-6)


def test_a_graph_from_its_text_takes_its_tensors_by_path():
    net, x = nn.Linear(4, 2), data()
    traced = gc.trace(net, x)
    graph = parse_graph(print_graph(traced), collect_data(traced))
    with pytest.raises(ArgumentError, match="without a tensor: weight, bias"):
        gc.compile(graph)
    with gc.no_grad():
        compiled = gc.compile(graph, tensors=dict(net.named_parameters()))
        assert gc.allclose(compiled(x), net(x), atol=1e-6)
        assert gc.allclose(compiled(x.numpy()), net(x), atol=1e-6)
    graph.bound = dict(net.named_parameters())
    with gc.no_grad():
        assert gc.allclose(gc.compile(graph)(x), net(x), atol=1e-6)
    with pytest.raises(ShapeError, match=r"weight is f32\[2,4\] in the graph, got f32\[2,5\]"):
        gc.compile(graph, tensors=dict(nn.Linear(5, 2).named_parameters()))
    with pytest.raises(ArgumentError, match="Linear is not a graph"):
        gc.compile(net, tensors={})


def test_the_step_of_a_graph_trains_the_model_that_was_traced():
    net, other, x = nn.Linear(4, 2), nn.Linear(4, 2), data()
    other.load_state_dict(net.state_dict())
    graph = gc.trace(net, x)
    steps = [
        gc.compile_step(graph, lambda o: (o * o).mean(), gc.optim.SGD(net.parameters(), lr=0.1)),
        gc.compile_step(other, lambda o: (o * o).mean(), gc.optim.SGD(other.parameters(), lr=0.1)),
    ]
    for _ in range(3):
        a, b = (step(x) for step in steps)
        assert gc.allclose(a, b, atol=1e-6)
    assert gc.allclose(net.weight, other.weight, atol=1e-6)


def test_the_file_of_a_graph_keeps_the_names_of_its_inputs(tmp_path: Path):
    net = nn.Linear(4, 2)
    gc.export(gc.trace(net, data()), path=tmp_path / "net.gcm")
    loaded = gc.load(tmp_path / "net.gcm")
    with gc.no_grad():
        np.testing.assert_allclose(loaded(input=data().numpy()), net(data()).numpy(), atol=1e-6)
    with pytest.raises(ArgumentError, match="is a graph, which has its types"):
        gc.export(gc.trace(net, data()), data(), path=tmp_path / "net.gcm")


def test_other_shapes_types_and_counts_are_refused():
    run = gc.compile(gc.trace(nn.Linear(4, 2), data()))
    with pytest.raises(ShapeError, match=r"input is f32\[3,4\] in the graph, got f32\[5,4\]"):
        run(gc.zeros(5, 4))
    with pytest.raises(DTypeError, match=r"got f64\[3,4\]"):
        run(gc.zeros(3, 4, dtype=gc.float64))
    with pytest.raises(ArgumentError, match="takes 1 inputs, got 2"):
        run(data(), data())


def test_a_wrong_graph_is_refused_when_it_is_given():
    graph = gc.trace(nn.Linear(4, 2), data())
    other = gc.trace(nn.Linear(4, 2), data())
    graph.set_outputs(other.outputs)
    with pytest.raises(VerifyError, match="does not belong to the graph"):
        gc.compile(graph)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_has_tensors_of_its_own(again):
    net = nn.Linear(4, 2)
    module = GraphModule(gc.trace(net, data()))
    other = again(module)
    with gc.no_grad():
        expected = net(data())
        net.weight.zero_()
        assert gc.allclose(other(data()), expected, atol=1e-6) and not gc.allclose(module(data()), expected)
        assert gc.allclose(gc.compile(other)(data()), expected, atol=1e-6)


def test_a_state_that_is_returned_and_written_is_returned_as_it_was():
    graph = parse_graph(
        'graph @count(%n: f32[2] state "n") -> (f32[2], f32[2]) {\n  %a = add(%n, f32(1.0)) : f32[2]\n'
        "  %n.next = state_write(%n, %a) : f32[2]\n  return %n, %n.next\n}\n"
    )
    state = gc.zeros(2)
    for run in (GraphModule(graph, {"n": state}), gc.compile(graph, tensors={"n": state})):
        state.zero_()
        assert [t.tolist() for t in run()] == [[0, 0], [1, 1]] and state.tolist() == [1, 1]
        assert [t.tolist() for t in run()] == [[1, 1], [2, 2]]


def test_the_graph_of_a_module_is_bound_to_the_same_tensors():
    net = nn.Linear(4, 2)
    module = GraphModule(gc.trace(net, data()))
    assert isinstance(module.graph, Graph) and module.graph.bound["weight"] is net.weight


def test_a_graph_with_named_dimensions_is_called_with_any_sizes():
    batch, time = gc.Dim("batch", 1, 8, hint=2), gc.Dim("time", 1, 16, hint=4)
    model = nn.Linear(3, 2)

    def f(x, y):
        x = x * 2 if x.shape[0] <= x.shape[1] else x
        return model(x if x.shape[1] > 2 else x + 1) * y.reshape(x.shape[0], 1, 1) / x.shape[1]

    graph = gc.trace(f, gc.ones(2, 4, 3), gc.ones(2), dims=[(batch, time), (batch,)])
    module = pickle.loads(pickle.dumps(GraphModule(graph)))
    for called in (GraphModule(graph), module):
        for size in (3, 5):
            x, y = gc.rand(size, size, 3), gc.rand(size)
            assert gc.allclose(called(x, y), f(x, y), atol=1e-6)
        with pytest.raises(ShapeError, match=r"dimension 0 of %y is 3, not 2 = batch"):
            called(gc.ones(2, 4, 3), gc.ones(3))
        with pytest.raises(ShapeError, match=r"was traced for batch <= time .* called with batch = 5, time = 4"):
            called(gc.ones(5, 4, 3), gc.ones(5))
        with pytest.raises(ShapeError, match=r"time is 1, outside of 3\.\.16"):
            called(gc.ones(2, 1, 3), gc.ones(2))
    again = gc.trace(lambda a: module(a.transpose(0, 1), gc.ones(a.shape[1])), gc.ones(4, 2, 3), dims=[(time, batch)])
    assert [str(v.type) for v in again.outputs] == ["f32[batch,time,2]"]


def test_graphs_take_numbers_that_are_sizes():
    weight = gc.randn(20, 4)
    pos, wide = gc.Dim("pos", 0, 19), gc.Dim("wide", 0, 19)
    graph = gc.trace(lambda x, pos: x @ weight[:pos].T, gc.ones(2, 4), 3, dims={"pos": pos})
    compiled = gc.compile(graph)
    module = GraphModule(graph)
    around = gc.compile(lambda x, n: module(x, n) * 2, dims={"n": wide})
    for n in (3, 0, 19):
        x = gc.randn(2, 4)
        expected = (x @ weight[:n].T).numpy()
        for result in (compiled(x, n), module(x, n), around(x, n) / 2):
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-6)
    assert len(compiled.variants) == len(around.variants) == 1
    for call in (module, compiled):
        with pytest.raises(ArgumentError, match=r"pos is 20, outside of 0\.\.19"):
            call(x, 20)
