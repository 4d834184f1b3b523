"""Products of matrices and determinants, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.interop.onnx.module import from_onnx
from tests.interop.onnx.single import MICROSOFT, check, model

pytest.importorskip("onnx")

RANDOM = np.random.default_rng(0)


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(("a", "b"), [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((4,), (4, 5)), ((2, 3, 4), (2, 4, 1))])
def test_matrices_multiply(a: tuple[int, ...], b: tuple[int, ...]):
    check("MatMul", normal(*a), normal(*b), atol=1e-5)


def test_whole_numbers_multiply_in_their_bits():
    x = np.full((2, 2), 2**31, np.uint32)
    found = from_onnx(model("MatMul", x, x, results=[np.uint32]))(*[graphc.tensor(x.astype(np.int64))] * 2)
    assert found.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("attributes", [{}, {"alpha": 0.5, "beta": 2.0}, {"alpha": 0.25}])
@pytest.mark.parametrize("turned", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_gemm_scales_and_adds(turned: tuple[int, int], attributes: dict[str, float]):
    a = normal(*((4, 3) if turned[0] else (3, 4)))
    b = normal(*((5, 4) if turned[1] else (4, 5)))
    for c in (normal(5), normal(3, 1)):
        check("Gemm", a, b, c, transA=turned[0], transB=turned[1], atol=1e-5, **attributes)
    check("Gemm", a, b, transA=turned[0], transB=turned[1], atol=1e-5, **attributes)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("ii->i", [(3, 3)]),
        ("...i,...j->...", [(2, 3), (2, 4)]),
        ("ij->", [(2, 3)]),
    ],
)
def test_sums_by_einsteins_convention(equation: str, shapes: list[tuple[int, ...]]):
    check("Einsum", *[normal(*s) for s in shapes], equation=equation, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (2, 3, 4, 4)])
def test_determinants(shape: tuple[int, ...]):
    check("Det", normal(*shape), rtol=1e-4, atol=1e-5)


def test_determinants_of_singular_and_permuted_matrices():
    x = np.array([[[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[1, 2, 3], [2, 4, 6], [0, 1, 1]]], np.float32)
    assert from_onnx(model("Det", x))(x).tolist() == [1, 0]


def test_gradients_of_determinants():
    x = graphc.tensor(normal(3, 3), requires_grad=True)
    from_onnx(model("Det", x.detach().numpy()))(x).backward()
    matrix = x.detach().numpy().astype(np.float64)
    wanted = np.linalg.det(matrix) * np.linalg.inv(matrix).T
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("attributes", [{}, {"alpha": 0.5, "transB": 1}, {"transA": 1}])
def test_fused_products_of_onnx_runtime(attributes: dict[str, float]):
    a = normal(2, *((4, 3) if attributes.get("transA") else (3, 4)))
    b = normal(2, *((5, 4) if attributes.get("transB") else (4, 5)))
    check("FusedMatMul", a, b, domain=MICROSOFT, runtime=True, atol=1e-5, **attributes)


@pytest.mark.parametrize("activation", ["Relu", "LeakyRelu", "Tanh"])
def test_gemm_of_onnx_runtime_ends_in_an_activation(activation: str):
    a, b, c = normal(3, 4), normal(4, 5), normal(5)
    named = {"activation_alpha": 0.1} if activation == "LeakyRelu" else {}
    check("FusedGemm", a, b, c, domain=MICROSOFT, runtime=True, atol=1e-5, activation=activation, **named)


def test_rows_of_any_number_are_multiplied():
    module = check("Gemm", normal(3, 4), normal(4, 5), known=(1,), open_rows=True, atol=1e-5)
    assert module(normal(7, 4)).shape == (7, 5)
