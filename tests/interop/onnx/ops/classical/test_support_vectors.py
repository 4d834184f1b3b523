"""Support vector machines against ONNX's evaluator."""

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from tests.interop.onnx.alike import check, module_of

X = np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32)
VECTORS = "support_vectors=[0.5, -0.5, 1.0, 0.25, -1.0, 0.0, 0.75, 1.5]"
PAIRS = "coefficients=[0.5, -1.0, 0.25, 0.75, -0.5, 1.0, 0.5, -0.25], rho=[0.1, -0.2, 0.05]"
CLASSES = f"classlabels_ints=[3, 5, 9], {VECTORS}, vectors_per_class=[1, 2, 1], {PAIRS}"


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_a_kernel_predicts_numbers_or_outliers(kernel: str, one_class: int) -> None:
    node = f"""SVMRegressor<kernel_type="{kernel}", kernel_params=[0.5, 0.25, 3.0], n_supports=4, {VECTORS},
        coefficients=[1.0, -0.5, 0.25, 2.0], rho=[-0.3], one_class={one_class}>(x)"""
    check(f"(float[N, 2] x) => (float y) {{ y = ai.onnx.ml.{node} }}", X)


def test_a_regressor_without_support_vectors_is_linear() -> None:
    node = "SVMRegressor<coefficients=[1.0, -0.5], rho=[0.25]>(x)"
    check(f"(float[N, 2] x) => (float y) {{ y = ai.onnx.ml.{node} }}", X)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_pairs_of_classes_vote(kernel: str) -> None:
    node = f'SVMClassifier<kernel_type="{kernel}", kernel_params=[0.5, 0.25, 2.0], {CLASSES}>(x)'
    check(f"(float[N, 2] x) => (int64 y, float s) {{ y, s = ai.onnx.ml.{node} }}", X)


def _coupled(pairs: np.ndarray) -> np.ndarray:
    """Probabilities of three classes that contradict those of pairs least: the exact minimum of a quadratic form."""
    rows = []
    for ab, ac, bc in pairs:
        against = np.array([[0, ab, ac], [1 - ab, 0, bc], [1 - ac, 1 - bc, 0]])
        q = -against.T * against + np.diag((against**2).sum(0))
        system = np.block([[q, np.ones((3, 1))], [np.ones((1, 3)), np.zeros((1, 1))]])
        rows.append(np.linalg.solve(system, [0, 0, 0, 1])[:3])
    return np.array(rows)


def test_probabilities_of_pairs_are_coupled() -> None:
    head = "(float[N, 2] x) => (int64 y, float s) { y, s = ai.onnx.ml.SVMClassifier"
    decisions = module_of(f"{head}<{CLASSES}>(x) }}")(X)[1].numpy()
    module = module_of(f"{head}<{CLASSES}, prob_a=[-1.0, -2.0, -0.5], prob_b=[0.1, 0.2, -0.1]>(x) }}")
    pairs = 1 / (1 + np.exp(decisions * [-1, -2, -0.5] + [0.1, 0.2, -0.1]))
    for call in (module, gc.compile(module), gc.compile(module, dims=module.dims)):
        np.testing.assert_allclose(call(X)[1].numpy(), _coupled(pairs), atol=0.005)


def test_two_classes_have_opposite_scores() -> None:
    node = f"""SVMClassifier<classlabels_ints=[0, 1], {VECTORS}, vectors_per_class=[2, 2], rho=[0.1],
        coefficients=[0.5, -1.0, 0.25, 0.75]>(x)"""
    check(f"(float[N, 2] x) => (int64 y, float s) {{ y, s = ai.onnx.ml.{node} }}", X)


def test_classes_without_support_vectors_have_linear_scores() -> None:
    node = "SVMClassifier<classlabels_ints=[0, 1, 2], coefficients=[1.0, 0.0, 0.0, 1.0, -1.0, 0.5], rho=[0.5]>(x)"
    scores = X @ np.array([[1, 0], [0, 1], [-1, 0.5]], np.float32).T + np.float32(0.5)
    text = f"(float[N, 2] x) => (int64 y, float s) {{ y, s = ai.onnx.ml.{node} }}"
    check(text, X, expected=[scores.argmax(1), scores])


def test_an_unknown_kernel_is_an_error() -> None:
    node = (
        f'SVMRegressor<kernel_type="SPLINE", n_supports=4, {VECTORS}, coefficients=[1.0, 1.0, 1.0, 1.0], rho=[0.0]>(x)'
    )
    module = module_of(f"(float[N, 2] x) => (float y) {{ y = ai.onnx.ml.{node} }}")
    with pytest.raises(gc.errors.AttributeValueError, match="SPLINE"):
        module(X)
