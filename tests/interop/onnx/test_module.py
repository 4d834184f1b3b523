"""``from_onnx`` as users meet it: calls, training, copies, compiled and exported models, mistakes."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import errors

onnx = pytest.importorskip("onnx")
from tests.interop.onnx.models import (  # noqa: E402  (the models need the package)
    INT64,
    SCALE,
    SHIFT,
    expected,
    graph_of,
    model,
    node,
    port,
    scaled,
    weight,
)


def batch(count: int = 4) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((count, 3)).astype(np.float32)


def computed(module: Any, x: np.ndarray) -> np.ndarray:
    return module(gc.from_numpy(x)).detach().numpy()


def test_paths_bytes_and_protos_give_the_same_model(tmp_path: Path):
    proto = scaled()
    onnx.save(proto, tmp_path / "a.onnx")
    for source in (proto, proto.SerializeToString(), tmp_path / "a.onnx", str(tmp_path / "a.onnx")):
        np.testing.assert_allclose(computed(gc.from_onnx(source), batch()), expected(batch()), rtol=1e-6)


def test_inputs_are_taken_by_position_by_name_and_as_arrays():
    module = gc.from_onnx(scaled())
    for result in (module(batch()), module(x=gc.from_numpy(batch()))):
        np.testing.assert_allclose(result.detach().numpy(), expected(batch()), rtol=1e-6)


def test_compiled_models_give_what_eager_ones_give():
    module = gc.from_onnx(scaled())
    for fast, sizes in ((gc.compile(module), (4,)), (gc.compile(module, dims=module.dims), (1, 4, 9))):
        for count in sizes:
            np.testing.assert_allclose(computed(fast, batch(count)), expected(batch(count)), rtol=1e-6)


def test_one_program_and_one_file_take_a_cache_that_is_empty_at_first(tmp_path):
    """A decoder's step: the keys of past tokens, and a mask whose length is the sum of both lengths."""
    proto = model(
        graph_of(
            node("Concat", "past new", "keys", axis=1),
            node("Add", "keys mask", "y"),
            inputs=[port("new", "n", "t", 4), port("past", "n", "p", 4), port("mask", "n", "total", 4)],
        )
    )
    module = gc.from_onnx(proto)
    arguments = [
        [np.ones((2, k, 4), np.float32) for k in (new, past, new + past)] for new, past in ((3, 5), (4, 0), (1, 1))
    ]
    gc.export(module, *arguments[0], path=tmp_path / "step.gcm", dims=module.dims)
    fast, loaded = gc.compile(module, dims=module.dims), gc.load(tmp_path / "step.gcm")
    for new, past, mask in arguments:
        expected = np.concatenate([past, new], 1) + mask
        np.testing.assert_array_equal(fast(*map(gc.from_numpy, (new, past, mask))).numpy(), expected)
        np.testing.assert_array_equal(loaded(new, past, mask), expected)
    assert len(fast.programs) == 1


def test_weights_of_a_file_are_packed_once_for_many_calls():
    rng = np.random.default_rng(0)
    values = weight("w", rng.standard_normal((512, 512)).astype(np.float32))  # a panel exceeds L1 of all processors
    module = gc.from_onnx(model(graph_of(node("MatMul", "x w", "y"), inputs=[port("x", 32, 512)], weights=[values])))
    fast = gc.compile(module)
    x = gc.randn(32, 512)
    with gc.no_grad():
        before = fast(x)
        assert fast.programs[-1].prepacked >= 512 * 512 * 4
        next(module.parameters()).mul_(2)
        assert gc.allclose(fast(x), 2 * before, rtol=1e-5)


def test_files_with_pooling_that_keeps_the_size_take_odd_and_even_pictures(tmp_path: Path):
    rng = np.random.default_rng(0)
    shapes = {"w0": (10, 3, 3, 3), "w1": (16, 10, 3, 3), "w2": (32, 16, 3, 3)}
    weights = [weight(name, 0.1 * rng.standard_normal(shape).astype(np.float32)) for name, shape in shapes.items()]
    nodes = [
        node("Conv", "x w0", "a", kernel_shape=[3, 3]),
        node("MaxPool", "a", "b", auto_pad="SAME_UPPER", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "b w1", "c", kernel_shape=[3, 3]),
        node("Conv", "c w2", "y", kernel_shape=[3, 3]),
    ]
    module = gc.from_onnx(model(graph_of(*nodes, inputs=[port("x", "n", 3, "h", "w")], weights=weights)))
    fast = gc.compile(module, dims=module.dims)
    gc.export(module, gc.zeros(1, 3, 40, 40), path=tmp_path / "net.gcm", dims=module.dims)
    loaded = gc.load(tmp_path / "net.gcm")
    with gc.no_grad():
        for n, h, w in ((1, 40, 41), (2, 33, 30)):
            x = gc.randn(n, 3, h, w)
            for result in (fast(x), gc.tensor(loaded(x.numpy()))):
                assert gc.allclose(result, module(x), rtol=1e-4, atol=1e-4)


def test_a_quantised_model_has_buffers_only_and_results_without_gradients():
    weights = [
        weight("s", np.float32(0.5)),
        weight("z", np.int8(0)),
        weight("w", np.full((2, 2), 3, np.int8)),
        weight("b", np.ones((2, 2), np.float32)),
    ]
    nodes = [node("DequantizeLinear", "w s z", "v"), node("MatMul", "x v", "u"), node("MatMul", "u b", "y")]
    module = gc.from_onnx(model(graph_of(*nodes, weights=weights)))
    assert not list(module.parameters()) and "b" in dict(module.named_buffers())
    assert module(np.ones(2, np.float32)).numpy().tolist() == [6, 6]


def test_a_model_file_has_the_named_dimensions(tmp_path: Path):
    module = gc.from_onnx(scaled())
    gc.export(module, *module.examples(), path=tmp_path / "a.gcm", dims=module.dims)
    loaded = gc.load(tmp_path / "a.gcm")
    for count in (1, 7):
        np.testing.assert_allclose(loaded(batch(count)), expected(batch(count)), rtol=1e-6)


def test_initializers_of_real_numbers_are_trained():
    module = gc.from_onnx(scaled()).train()
    assert module.training and [n for n, _ in module.named_parameters()] == ["fc.scale", "fc.shift"]
    optimizer = gc.optim.SGD(module.parameters(), lr=0.1)
    x = batch()

    @gc.compile
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = module(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    step(gc.from_numpy(x))
    kept = (x * SCALE + SHIFT > 0).astype(np.float32)
    state = {n: p.detach().numpy() for n, p in module.named_parameters()}
    np.testing.assert_allclose(state["fc.scale"], SCALE - 0.1 * (kept * x).sum(0), rtol=1e-5)
    np.testing.assert_allclose(state["fc.shift"], SHIFT - 0.1 * kept.sum(0), rtol=1e-5)


def test_states_go_round():
    module = gc.from_onnx(scaled())
    state = {n: gc.zeros_like(t) for n, t in module.state_dict().items()}
    module.load_state_dict(state)
    np.testing.assert_array_equal(computed(module, batch()), np.zeros((4, 3)))
    assert list(module.state_dict()) == ["fc.scale", "fc.shift"]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_copies_have_tensors_of_their_own(again: Any):
    module = gc.from_onnx(scaled())
    other = again(module)
    with gc.no_grad():
        other.get_parameter("fc.scale").zero_()
    np.testing.assert_allclose(computed(module, batch()), expected(batch()), rtol=1e-6)
    np.testing.assert_allclose(computed(other, batch()), np.broadcast_to(np.maximum(SHIFT, 0), (4, 3)))
    np.testing.assert_allclose(computed(gc.compile(other, dims=other.dims), batch()), computed(other, batch()))


def test_hooks_of_the_model_are_called_those_of_parts_are_refused():
    module = gc.from_onnx(scaled())
    seen = []
    handle = module.register_forward_hook(lambda m, args, out: seen.append(tuple(out.shape)))
    module(batch())
    assert seen == [(4, 3)]
    handle.remove()
    module.get_submodule("fc").register_forward_hook(lambda m, args, out: None)
    with pytest.raises(errors.UnsupportedError, match="hooks of fc"):
        module(batch())


def test_initializers_that_are_inputs_too_are_initializers():
    proto = scaled()
    proto.graph.input.extend([port("fc.scale", 3), port("fc.shift", 3)])
    module = gc.from_onnx(proto)
    np.testing.assert_allclose(computed(module, batch()), expected(batch()), rtol=1e-6)
    assert len(module.examples()) == 1


def test_an_initializer_that_is_used_twice_is_one_parameter():
    graph = graph_of(node("Mul", "x w", "m"), node("Add", "m w", "y"), weights=[weight("w", SCALE[:2])])
    module = gc.from_onnx(model(graph))
    assert len(list(module.parameters())) == 1
    module(np.ones(2, np.float32)).sum().backward()
    np.testing.assert_array_equal(module.get_parameter("w").grad.numpy(), [2, 2])


def test_a_model_without_inputs_is_called_without_any():
    graph = graph_of(node("Relu", "w", "y"), inputs=[], weights=[weight("w", np.float32([-1, 2]))])
    module = gc.from_onnx(model(graph))
    for call in (module, gc.compile(module)):
        np.testing.assert_array_equal(call().detach().numpy(), [0, 2])


def test_several_results_are_a_tuple_and_whole_numbers_are_buffers():
    graph = graph_of(
        node("Relu", "x", "y"), node("Add", "n n", "z"), outputs="y z", weights=[weight("n", np.ones((1, 2), np.int64))]
    )
    module = gc.from_onnx(model(graph))
    y, z = module(np.ones(2, np.float32))
    assert (y.tolist(), z.tolist()) == ([1, 1], [[2, 2]]) and list(module.buffers()) and not list(module.parameters())


def test_names_that_are_none_of_python_are_spelled_with_underscores():
    ports = [port("input.1", 2), port("input_1", 2), port("2", 2)]
    module = gc.from_onnx(model(graph_of(node("Add", "input.1 input_1", "m"), node("Add", "m 2", "y"), inputs=ports)))
    one = np.ones(2, np.float32)
    assert module(**{"input.1": one, "input_1": 2 * one, "2": 4 * one}).tolist() == [7, 7]
    assert module(input_1_2=one, input_1=2 * one, input_2=4 * one).tolist() == [7, 7]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda m: m(), errors.ArgumentError, "lacks x"),
        (lambda m: m(batch(), batch()), errors.ArgumentError, "2 inputs, the model has 1: x"),
        (lambda m: m(batch(), x=batch()), errors.ArgumentError, "'x' is given twice"),
        (lambda m: m(z=batch()), errors.ArgumentError, "'z' is not an input of the model"),
        (lambda m: m(batch()[:, :2]), errors.ShapeError, "x"),
        (lambda m: m(batch()[0]), errors.ShapeError, "x"),
        (lambda m: m(batch().astype(np.float64)), errors.DTypeError, "input 'x' is float"),
    ],
    ids=["none", "too many", "twice", "unknown", "size", "rank", "type"],
)
def test_wrong_inputs_are_told(call: Any, kind: type[Exception], text: str):
    with pytest.raises(kind, match=text):
        call(gc.from_onnx(scaled()))


def test_sizes_of_one_name_must_be_equal():
    module = gc.from_onnx(model(graph_of(node("Add", "a b", "y"), inputs=[port("a", "n"), port("b", "n")])))
    with pytest.raises(errors.ShapeError, match="n"):
        module(np.ones(2, np.float32), np.ones(3, np.float32))


def test_operators_without_a_rule_are_all_named():
    nodes = [node("Ununtrium", "x", "m"), node("Ununpentium", "m", "n"), node("Ununtrium", "n", "y")]
    with pytest.raises(errors.UnsupportedError, match=r"operators: Ununtrium \(version 17\), Ununpentium"):
        gc.from_onnx(model(graph_of(*nodes)))


def test_what_the_rule_of_an_operator_cannot_take_is_a_typed_error():
    module = gc.from_onnx(model(graph_of(node("Transpose", "x", "y", perm=[5, 7]))))
    with pytest.raises(errors.GraphcError) as caught:
        module(np.ones(2, np.float32))
    assert "Transpose" in str(caught.value)


def test_types_that_are_not_said_are_asked_for():
    ports = [onnx.helper.make_tensor_value_info("x", INT64, None)]
    module = gc.from_onnx(model(graph_of(node("Add", "x x", "y"), inputs=ports)))
    assert module(np.arange(3)).tolist() == [0, 2, 4] and module.dims is None
    with pytest.raises(errors.ArgumentError, match="'x': the model does not say"):
        module.examples()


def test_names_of_initializers_that_are_no_paths_are_flat():
    names = ["a", "a.b", "", "x." * 200 + "w", "training"]
    nodes = [node("Add", f"{'x' if i == 0 else f't{i}'} {n}", f"t{i + 1}") for i, n in enumerate(names) if n]
    last = nodes[-1].output[0]
    chain = ["x"]
    for made in nodes:
        made.input[0] = chain[-1]
        chain.append(made.output[0])
    graph = graph_of(*nodes, outputs=last, weights=[weight(n, SCALE[:2]) for n in names if n])
    module = gc.from_onnx(model(graph))
    np.testing.assert_allclose(module(np.zeros(2, np.float32)).detach().numpy(), 4 * SCALE[:2])
    assert len(module.state_dict()) == 4


from onnx import helper  # noqa: E402

from graphc.interop.onnx.module import asked_constants  # noqa: E402
from graphc.interop.onnx.reader import read_model  # noqa: E402


def test_shapes_are_asked_for_through_what_computes_them():
    nodes = [node("Concat", "a b", "s", axis=0), node("Reshape", "x s", "m"), node("Add", "m w", "y")]
    weights = [weight("a", np.array([1])), weight("b", np.array([2])), weight("w", np.ones((1, 2), np.float32))]
    graph = read_model(model(graph_of(*nodes, weights=weights))).graph
    assert asked_constants(graph) & graph.constants.keys() == {"a", "b"}
    assert list(gc.from_onnx(model(graph_of(*nodes, weights=weights))).state_dict()) == ["w"]


def test_limits_of_sizes_as_real_numbers_are_asked_for(tmp_path: Path):
    """TensorFlow's slices clip their bounds as floats. As parameters, the limits gave the slice values of each call."""
    nodes = [
        node("Shape", "x", "n", start=1),
        node("Cast", "n", "real", to=onnx.TensorProto.FLOAT),
        node("Min", "real limit", "clipped"),
        node("Cast", "clipped", "end", to=INT64),
        node("Slice", "x zero end one", "y"),
    ]
    constants = {"limit": np.float32([1e9]), "zero": np.array([0]), "one": np.array([1])}
    weights = [weight(name, array) for name, array in constants.items()]
    proto = model(graph_of(*nodes, inputs=[port("x", "rows", "columns")], weights=weights))
    assert "limit" in asked_constants(read_model(proto).graph)
    module = gc.from_onnx(proto)
    gc.export(module, gc.ones(2, 5), path=tmp_path / "m.gcm", dims=module.dims)
    assert gc.load(tmp_path / "m.gcm")(np.ones((3, 7), np.float32)).shape == (3, 7)


def test_functions_ask_for_what_their_operators_ask_for():
    versions = [helper.make_opsetid("", 17)]
    own = helper.make_function("own", "Shaped", ["a", "s"], ["b"], [node("Reshape", "a s", "b")], versions)
    nodes = [helper.make_node("Shaped", ["x", "s"], ["y"], domain="own")]
    proto = model(graph_of(*nodes, weights=[weight("s", np.array([[2]])[0])]), functions=[own], own=1)
    assert "s" in asked_constants(read_model(proto).graph)


def test_functions_within_functions_are_looked_at_once_for_each_use():
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    functions = [helper.make_function("own", "F0", ["a", "b"], ["c"], [node("Add", "a b", "c")], versions)]
    for i in range(1, 50):
        applied = helper.make_node(f"F{i - 1}", ["a", "b"], ["c"], domain="own")
        functions.append(helper.make_function("own", f"F{i}", ["a", "b"], ["c"], [applied], versions))
    graph = graph_of(helper.make_node("F49", ["x", "x"], ["y"], domain="own"))
    assert gc.from_onnx(model(graph, functions=functions, own=1))(np.float32([1, 2])).tolist() == [2, 4]
