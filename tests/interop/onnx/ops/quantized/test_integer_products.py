"""Products of steps are exact, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.interop.onnx.module import from_onnx
from tests.interop.onnx.one_node import needs_exact_bytes
from tests.interop.onnx.single import MICROSOFT, check, model

pytest.importorskip("onnx")

RANDOM = np.random.default_rng(0)


def steps(*shape: int, dtype: str = "uint8") -> np.ndarray:
    info = np.iinfo(dtype)
    return RANDOM.integers(info.min, info.max + 1, shape).astype(dtype)


def scale(*shape: int, times: float = 1) -> np.ndarray:
    return np.array(RANDOM.uniform(0.01, 0.1, shape) * times, np.float32)


@pytest.mark.parametrize("second", ["uint8", "int8"])
@pytest.mark.parametrize("first", ["uint8", "int8"])
@pytest.mark.parametrize("depth", [4, 700, 5000])
def test_sums_are_exact_whatever_their_length(first: str, second: str, depth: int):
    a, b = np.full((3, depth), np.iinfo(first).max, first), np.full((depth, 2), np.iinfo(second).max, second)
    a[1] = steps(depth, dtype=first)
    module = from_onnx(model("MatMulInteger", a, b, results=[np.int32]))
    expected = a.astype(np.int64) @ b.astype(np.int64)
    operands = graphc.tensor(a), graphc.tensor(b)
    assert module(*operands).tolist() == expected.tolist()
    assert graphc.compile(module)(*operands).tolist() == expected.tolist()


def test_zero_points_of_both_and_of_columns():
    a, b = steps(2, 3, 40), steps(40, 5)
    check("MatMulInteger", a, b, np.array(7, np.uint8), np.array(9, np.uint8), results=[np.int32])
    check("MatMulInteger", a[0], b, np.array(7, np.uint8), steps(5), runtime=True, results=[np.int32])


def test_products_become_steps_again():
    a, b = steps(3, 40), steps(40, 5)
    zero = np.array(120, np.uint8)
    operands = (a, scale(), zero, b, scale(), zero, scale(times=40), zero)
    check("QLinearMatMul", *operands, results=[np.uint8], runtime=True)


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((4, 3, 3, 3), {"strides": [2, 2], "pads": [0, 1, 1, 0]}),
        ((6, 1, 3, 3), {"group": 3}),
        ((4, 3, 1, 1), {}),
        ((4, 3, 5, 5), {"auto_pad": "SAME_UPPER"}),
    ],
)
def test_convolutions_of_steps(shape: tuple[int, ...], attributes: dict[str, object]):
    x, w = steps(2, 3, 9, 9), steps(*shape)
    check("ConvInteger", x, w, np.array(100, np.uint8), results=[np.int32], runtime=True, **attributes)


def test_long_sums_of_convolutions_are_exact():
    x, w = np.full((1, 300, 4, 4), 255, np.uint8), np.full((2, 300, 2, 2), 255, np.uint8)
    module = from_onnx(model("ConvInteger", x, w, results=[np.int32]))
    result = graphc.compile(module)(graphc.tensor(x), graphc.tensor(w))
    assert result.numpy().tolist() == np.full((1, 2, 3, 3), 300 * 4 * 255 * 255).tolist()


@needs_exact_bytes
def test_convolutions_become_steps_again():
    x, w, zero = steps(1, 8, 6, 6), steps(4, 8, 3, 3, dtype="int8"), np.array(128, np.uint8)
    bias = RANDOM.integers(-1000, 1000, 4).astype(np.int32)
    operands = (x, scale(), zero, w, scale(4), np.zeros(4, np.int8), scale(times=100), zero, bias)
    check("QLinearConv", *operands, results=[np.uint8], runtime=True, known=(3, 4, 5), pads=[1, 1, 1, 1])


@needs_exact_bytes
@pytest.mark.parametrize("ends", ["steps", "numbers"])
def test_gemm_of_steps(ends: str):
    a, b = steps(3, 8), steps(8, 5, dtype="int8")
    operands = [a, scale(), np.array(100, np.uint8), b, scale(), np.zeros((), np.int8)]
    operands.append(RANDOM.integers(-100, 100, 5).astype(np.int32))
    if ends == "steps":
        operands += [scale(times=50), np.array(128, np.uint8)]
    results = [np.uint8 if ends == "steps" else np.float32]
    check("QGemm", *operands, domain=MICROSOFT, runtime=True, results=results, known=(3, 4, 5), alpha=1.0)


def test_sums_of_steps_as_numbers():
    operands = (steps(3, 8), steps(8, 5), scale(), scale(5), np.array(9, np.uint8), np.array(7, np.uint8))
    bias = RANDOM.standard_normal(5).astype(np.float32)
    check("MatMulIntegerToFloat", *operands, bias, domain=MICROSOFT, runtime=True, rtol=1e-4, atol=1e-4)


@needs_exact_bytes
def test_rows_of_numbers_times_steps():
    a = RANDOM.standard_normal((3, 8)).astype(np.float32)
    operands = (a, steps(8, 5, dtype="int8"), scale(), np.zeros((), np.int8))
    check("DynamicQuantizeMatMul", *operands, domain=MICROSOFT, runtime=True, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("zero", "bits"), [("none", 4), ("none", 8), ("packed", 4), ("packed", 8), ("real", 4)])
def test_rows_times_blocks_of_few_bits(zero: str, bits: int):
    count, depth, block = 6, 80, 32
    blocks = -(-depth // block)
    a = RANDOM.standard_normal((3, depth)).astype(np.float32)
    packed = steps(count, blocks, block * bits // 8)
    operands = [a, packed, scale(count * blocks)]
    if zero == "packed":
        operands.append(steps(count * (-(-blocks * bits // 8))))
    if zero == "real":
        operands.append(RANDOM.uniform(0, 15, count * blocks).astype(np.float32))
    options = {"K": depth, "N": count, "bits": bits, "block_size": block}
    constants = range(1, len(operands))
    check("MatMulNBits", *operands, domain=MICROSOFT, runtime=True, known=constants, rtol=1e-3, atol=1e-3, **options)


def test_rows_of_any_number_are_multiplied():
    module = check("MatMulInteger", steps(5, 40), steps(40, 3), known=(1,), results=[np.int32], open_rows=True)
    assert module(steps(9, 40)).shape == (9, 3)
