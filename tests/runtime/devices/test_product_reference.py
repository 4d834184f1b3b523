"""The stand-in for the library of products reads its descriptors as the library's documentation says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from graphc.base.errors import DeviceError
from graphc.files.product_descriptor import Matrix, ProductDescriptor, as_descriptor
from graphc.runtime.devices.product_reference import compute_product, product_spans

RANDOM = np.random.default_rng(7)


def matrix(rows: int, columns: int, leading: int, batch: int = 1, stride: int = 0, dtype: str = "f32") -> Matrix:
    return Matrix(dtype, rows, columns, leading, batch, stride or leading * columns)


def filled(m: Matrix) -> np.ndarray:
    return RANDOM.normal(size=m.extent).astype({"f32": np.float32, "f64": np.float64}[m.type])


def element(m: Matrix, memory: np.ndarray, i: int, row: int, column: int) -> float:
    return float(memory[i * m.stride + column * m.leading + row])


def expected(descriptor: ProductDescriptor, memory: dict[str, np.ndarray], i: int, row: int, column: int) -> float:
    """One element of the result, by the definition."""
    total = 0.0
    for k in range(descriptor.k):
        a = (k, row) if descriptor.transpose_a else (row, k)
        b = (column, k) if descriptor.transpose_b else (k, column)
        total += element(descriptor.a, memory["a"], i, *a) * element(descriptor.b, memory["b"], i, *b)
    total *= descriptor.alpha
    if descriptor.c is not None:
        total += element(descriptor.c, memory["c"], i, row, column)
    if "bias" in descriptor.epilogue:
        total += float(memory["bias"][row])
    if "relu" in descriptor.epilogue:
        return max(total, 0.0)
    if "gelu" in descriptor.epilogue:
        return 0.5 * total * (1 + np.tanh(np.sqrt(2 / np.pi) * (total + 0.044715 * total**3)))
    return total


def run(descriptor: ProductDescriptor) -> dict[str, np.ndarray]:
    memory = {name: filled(getattr(descriptor, name)) for name in descriptor.operands if name != "bias"}
    if "bias" in descriptor.operands:
        memory["bias"] = RANDOM.normal(size=descriptor.bias_length).astype(memory["d"].dtype)
    compute_product(descriptor, [memory[name].ctypes.data for name in descriptor.operands])
    return memory


@pytest.mark.parametrize("epilogue", ["none", "bias", "relu", "relu_bias", "gelu", "gelu_bias", "gelu_aux_bias"])
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (True, False), (False, True), (True, True)])
def test_each_element_by_the_definition(ta: bool, tb: bool, epilogue: str) -> None:
    m, n, k = 5, 3, 4
    a = matrix(k, m, 6, 2) if ta else matrix(m, k, 7, 2)
    b = matrix(n, k, 3, 2, 0) if tb else matrix(k, n, 5, 2)
    d = matrix(m, n, 9, 2)
    descriptor = ProductDescriptor("f32", a, b, d, ta, tb, epilogue, 0.5, matrix(m, n, 6, 2), 8, 24)
    before = RANDOM.bit_generator.state
    memory = run(descriptor)
    RANDOM.bit_generator.state = before
    untouched = {name: filled(getattr(descriptor, name)) for name in descriptor.operands if name != "bias"}["d"]
    for position in range(d.extent):
        i, rest = divmod(position, d.stride)
        column, row = divmod(rest, d.leading)
        if row < m:
            np.testing.assert_allclose(
                memory["d"][position], expected(descriptor, memory, i, row, column), rtol=2e-5, atol=1e-5
            )
        else:
            assert memory["d"][position] == untouched[position]


def test_one_factor_for_all_of_a_batch() -> None:
    a = Matrix("f64", 3, 4, 3, 5, 0)
    descriptor = ProductDescriptor("f64", a, matrix(4, 2, 4, 5, dtype="f64"), matrix(3, 2, 3, 5, dtype="f64"))
    memory = run(descriptor)
    for i in range(5):
        np.testing.assert_allclose(element(descriptor.d, memory["d"], i, 2, 1), expected(descriptor, memory, i, 2, 1))


def test_the_derivative_of_gelu_and_the_sums_of_rows() -> None:
    d = matrix(5, 3, 5)
    descriptor = ProductDescriptor("f32", matrix(5, 4, 5), matrix(4, 3, 4), d, epilogue="dgelu_bgrad", aux_leading=8)
    memory = run(descriptor)
    a, b = memory["a"].reshape(4, 5).T.astype(float), memory["b"].reshape(3, 4).T.astype(float)
    x = np.stack([memory["aux"][8 * c : 8 * c + 5] for c in range(3)], 1).astype(float)

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    result = a @ b * (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5
    np.testing.assert_allclose(memory["d"].reshape(3, 5).T, result, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(memory["bias"], result.sum(1), rtol=1e-4, atol=1e-5)


def test_narrow_factors_and_their_sums() -> None:
    values = RANDOM.normal(size=(2, 16)).astype(np.float32)
    bits = (values.view(np.uint32) >> 16).astype(np.uint16)
    widened = (bits.astype(np.uint32) << 16).view(np.float32)
    out = np.empty((4, 4), np.float32)
    factor = matrix(4, 4, 4, dtype="bf16")
    descriptor = ProductDescriptor("f32", factor, factor, matrix(4, 4, 4))
    compute_product(descriptor, [bits[0].ctypes.data, bits[1].ctypes.data, out.ctypes.data])
    np.testing.assert_allclose(out, widened[1].reshape(4, 4) @ widened[0].reshape(4, 4), rtol=1e-5)


def test_factors_in_tf32_are_rounded() -> None:
    one = np.array([1 + 2.0**-12], np.float32)
    for compute, result in (("f32", float(one[0]) ** 2), ("tf32", 1.0)):
        out = np.empty(1, np.float32)
        descriptor = ProductDescriptor(compute, *(matrix(1, 1, 1),) * 3)
        compute_product(descriptor, [one.ctypes.data, one.ctypes.data, out.ctypes.data])
        assert out[0] == np.float32(result)


def test_what_is_touched() -> None:
    descriptor = ProductDescriptor("f32", matrix(5, 4, 7, 2), matrix(4, 3, 4, 2), matrix(5, 3, 6, 2), epilogue="bias")
    assert product_spans(descriptor) == (
        ("a", 4 * (28 + 21 + 5)),
        ("b", 4 * 24),
        ("d", 4 * (18 + 12 + 5)),
        ("bias", 20),
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"a": matrix(5, 4, 3)}, "leading dimension 3"),
        ({"transpose_a": True}, "a is 5x4"),
        ({"b": matrix(4, 2, 4)}, "b is 4x2"),
        ({"epilogue": "elu"}, "no epilogue elu"),
        ({"compute": "f16"}, "sums of type f16"),
        ({"epilogue": "gelu_aux", "aux_leading": 5}, "leading dimension 5 of aux"),
        ({"d": matrix(5, 3, 5, 2)}, "a has 1 matrices"),
    ],
)
def test_refused(change: dict, words: str) -> None:
    fields = {"compute": "f32", "a": matrix(5, 4, 5), "b": matrix(4, 3, 4), "d": matrix(5, 3, 5), **change}
    descriptor = ProductDescriptor(**fields)
    with pytest.raises(DeviceError, match=words):
        compute_product(descriptor, [256 * (i + 1) for i in range(len(descriptor.operands))])


def test_a_result_over_a_factor_is_refused() -> None:
    descriptor = ProductDescriptor("f32", matrix(4, 4, 4), matrix(4, 4, 4), matrix(4, 4, 4))
    memory = np.zeros(64, np.float32)
    at = memory.ctypes.data
    with pytest.raises(DeviceError, match="d overlaps a"):
        compute_product(descriptor, [at, at + 128, at + 16])
    with pytest.raises(DeviceError, match="not a multiple of the element size"):
        compute_product(descriptor, [at + 2, at + 128, at + 192])


def test_descriptors_as_plain_data() -> None:
    descriptor = ProductDescriptor(
        "f32", matrix(5, 4, 7), matrix(4, 3, 4), matrix(5, 3, 6), c=matrix(5, 3, 8), alpha=0.25
    )
    assert as_descriptor(json.loads(json.dumps(descriptor.fields()))) == descriptor
