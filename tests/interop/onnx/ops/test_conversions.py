"""Casts between all element types, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import DTypeError
from graphc.interop.onnx.backend import prepare
from graphc.interop.onnx.elements import BY_CODE, ELEMENTS, carried
from graphc.interop.onnx.module import from_onnx
from tests.interop.onnx.single import model

onnx = pytest.importorskip("onnx")

NUMBERS = np.array([0.0, 1.0, -1.0, 2.5, 3.5, -7.3, 0.1, 100.6, 1e-3, 448.0, 6e4, 1e9], np.float32)
CODES = {e.name: e.code for e in ELEMENTS}


def of_type(x: np.ndarray, name: str) -> np.ndarray:
    return x.astype(BY_CODE[CODES[name]].numpy)


def cast(x: np.ndarray, to: str, version: int = 23, **attributes: object) -> tuple[np.ndarray, np.ndarray]:
    """Return the results of a cast, eager and compiled in the type that holds it."""
    element = BY_CODE[CODES[to]]
    proto = model("Cast", x, results=[element.numpy], version=version, to=element.code, **attributes)
    (eager,) = prepare(proto).run([x])
    module = from_onnx(proto)
    port = module.graph.inputs[0].element
    assert port is not None
    return eager, graphc.compile(module)(graphc.tensor(carried(x, port))).numpy()


@pytest.mark.parametrize("to", ["FLOAT16", "BFLOAT16", "DOUBLE", "FLOAT", "FLOAT8E5M2", "FLOAT8E4M3FN"])
@pytest.mark.parametrize("source", ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "INT32", "UINT16", "INT8"])
def test_real_numbers_are_rounded_to_the_nearest(source: str, to: str):
    small = NUMBERS if source in ("FLOAT", "DOUBLE") and "8" not in to else NUMBERS[:8] / 4
    x = of_type(np.abs(small) if source[0] == "U" else small, source)
    eager, compiled = cast(x, to)
    expected = of_type(x.astype(np.float64), to)
    np.testing.assert_array_equal(eager.astype(np.float64), expected.astype(np.float64))
    np.testing.assert_array_equal(compiled.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize(
    "to", ["INT8", "UINT8", "INT16", "UINT16", "UINT32", "UINT64", "INT4", "UINT4", "INT2", "BOOL"]
)
def test_whole_numbers_keep_their_lowest_bits(to: str):
    x = np.array([0, 1, -1, 127, 200, -300, 70000, 2**33 + 5], np.int64)
    eager, compiled = cast(x, to)
    if to in ("INT4", "UINT4", "INT2"):
        bits = int(to[-1])
        expected = x % (1 << bits)
        expected = np.where((expected >> (bits - 1) > 0) & (to[0] == "I"), expected - (1 << bits), expected)
    else:
        expected = of_type(x, to)
    np.testing.assert_array_equal(eager.astype(np.int64), expected.astype(np.int64))
    np.testing.assert_array_equal(compiled.astype(np.int64), expected.astype(np.int64))


def test_the_largest_unsigned_numbers_are_real_numbers_and_back():
    x = np.array([0, 1, 2**63, 2**64 - 2048], np.uint64)
    assert cast(x, "DOUBLE")[1].tolist() == x.astype(np.float64).tolist()
    assert cast(x.astype(np.float64), "UINT64")[0].tolist() == x.tolist()


def test_numbers_beyond_eight_bits_are_the_largest_unless_the_cast_says_otherwise():
    x = np.array([1e6, -1e6, np.inf, np.nan], np.float32)
    assert cast(x, "FLOAT8E4M3FN")[1][:3].tolist() == [448, -448, 448]
    assert np.isnan(cast(x, "FLOAT8E4M3FN", saturate=0)[1]).all()
    assert cast(x, "FLOAT8E5M2", saturate=0)[1][:3].tolist() == [np.inf, -np.inf, np.inf]


@pytest.mark.parametrize(
    ("mode", "expected"), [("up", [2, 4, 4, 8]), ("down", [1, 2, 4, 4]), ("nearest", [2, 2, 4, 4])]
)
def test_powers_of_two_are_rounded_as_the_cast_says(mode: str, expected: list[float]):
    x = np.array([1.5, 2.9, 4.0, 5.0], np.float32)
    assert cast(x, "FLOAT8E8M0", version=25, round_mode=mode)[1].tolist() == expected


def test_texts_become_numbers_and_numbers_texts():
    helper, proto = onnx.helper, onnx.TensorProto
    for source, to, text_or_number, expected in (
        (proto.STRING, proto.FLOAT, np.array(["1.5", "-INF"], object), [1.5, -np.inf]),
        (proto.FLOAT, proto.STRING, np.array([1.5, np.nan], np.float32), ["1.5", "NaN"]),
    ):
        ports = [helper.make_tensor_value_info(n, t, [2]) for n, t in (("x", source), ("y", to))]
        graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=to)], "texts", ports[:1], ports[1:])
        (result,) = prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])).run([text_or_number])
        assert result.tolist() == expected


def test_gradients_pass_through_a_cast_and_back():
    x = graphc.tensor([0.1, 0.7], requires_grad=True)
    half = from_onnx(model("Cast", x.detach().numpy(), results=[np.float16], to=CODES["FLOAT16"]))
    half(x).sum().backward()
    assert x.grad.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("source", "to"), [("FLOAT", "INT32"), ("INT64", "DOUBLE"), ("UINT16", "INT16"), ("INT8", "UINT8")]
)
def test_bits_are_taken_as_they_are(source: str, to: str):
    x = np.array([1, 2, 100], BY_CODE[CODES[source]].numpy)
    element = BY_CODE[CODES[to]]
    proto = model("BitCast", x, version=26, results=[element.numpy], to=element.code)
    (result,) = prepare(proto).run([x])
    np.testing.assert_array_equal(result, x.view(element.numpy))


def test_bits_of_another_width_are_refused():
    x = np.zeros(2, np.float32)
    with pytest.raises(DTypeError, match="from FLOAT to DOUBLE: their sizes in bits differ"):
        from_onnx(model("BitCast", x, version=26, results=[np.float64], to=CODES["DOUBLE"]))(x)
