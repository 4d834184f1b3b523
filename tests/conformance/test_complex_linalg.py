"""Functions of complex matrices beside those of PyTorch: results and gradients, eagerly and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc as gc

torch: Any = pytest.importorskip("torch")

RANDOM = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)


REAL = RANDOM.normal(size=(2, 4, 4))
SQUARE = normal(2, 3, 3) + 3 * np.eye(3)
POSITIVE = SQUARE @ SQUARE.conj().swapaxes(1, 2)
TALL, WIDE = normal(2, 4, 3), normal(2, 3, 4)


def eig(lib: Any, x: Any) -> list[Any]:
    """Return results that depend neither on the order of the values nor on the phases of vectors."""
    values, vectors = lib.linalg.eig(x)
    return [(vectors * (values * values).unsqueeze(-2)) @ vectors.mH, (values**3).sum(-1)]


def eigh(lib: Any, x: Any, half: str = "L") -> list[Any]:
    values, vectors = lib.linalg.eigh(x, half)
    return [(vectors * (values * values).unsqueeze(-2)) @ vectors.mH, values]


def svd(lib: Any, x: Any) -> list[Any]:
    u, s, vh = lib.linalg.svd(x, full_matrices=False)
    return [(u * (s * s).unsqueeze(-2)) @ vh, (u * s.unsqueeze(-2)) @ u.mH, s]


def least_squares(lib: Any, a: Any, b: Any) -> Any:
    return lib.linalg.lstsq(a, b, driver="gels").solution


def solve_by_lu(lib: Any, a: Any, b: Any, **options: Any) -> Any:
    return lib.linalg.lu_solve(*lib.linalg.lu_factor(a), b, **options)


CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "eig of real ones": (eig, (REAL,)),
    "eig": (eig, (SQUARE,)),
    "eigvals of real ones": (lambda lib, x: (lib.linalg.eigvals(x) ** 3).sum(-1), (REAL,)),
    "eigh": (eigh, (SQUARE,)),
    "eigh of the upper triangle": (lambda lib, x: eigh(lib, x, "U"), (SQUARE,)),
    "eigvalsh": (lambda lib, x: lib.linalg.eigvalsh(x), (SQUARE,)),
    "svd": (svd, (SQUARE,)),
    "svd of tall ones": (svd, (TALL,)),
    "svd of wide ones": (svd, (WIDE,)),
    "svdvals": (lambda lib, x: lib.linalg.svdvals(x), (TALL,)),
    "solve": (lambda lib, a, b: lib.linalg.solve(a, b), (SQUARE, WIDE)),
    "solve from the right": (lambda lib, a, b: lib.linalg.solve(a, b, left=False), (SQUARE, TALL)),
    "solve_ex": (lambda lib, a, b: lib.linalg.solve_ex(a, b).result, (SQUARE, WIDE)),
    "inv": (lambda lib, x: lib.linalg.inv(x), (SQUARE,)),
    "det": (lambda lib, x: lib.linalg.det(x), (SQUARE,)),
    "slogdet": (lambda lib, x: tuple(lib.linalg.slogdet(x)), (SQUARE,)),
    "logdet": (lambda lib, x: lib.logdet(x), (SQUARE,)),
    "lu": (lambda lib, x: tuple(lib.linalg.lu(x)), (SQUARE,)),
    "lu of tall ones": (lambda lib, x: tuple(lib.linalg.lu(x)), (TALL,)),
    "lu of wide ones": (lambda lib, x: tuple(lib.linalg.lu(x)), (WIDE,)),
    "lu_solve": (solve_by_lu, (SQUARE, WIDE)),
    "lu_solve of adjoints": (lambda lib, a, b: solve_by_lu(lib, a, b, adjoint=True), (SQUARE, WIDE)),
    "lu_solve from the right": (lambda lib, a, b: solve_by_lu(lib, a, b, left=False), (SQUARE, TALL)),
    "solve_triangular": (lambda lib, a, b: lib.linalg.solve_triangular(a, b, upper=True), (SQUARE, WIDE)),
    "cholesky": (lambda lib, x: lib.linalg.cholesky(x @ x.mH), (SQUARE,)),
    "upper cholesky": (lambda lib, x: lib.linalg.cholesky(x @ x.mH, upper=True), (SQUARE,)),
    "cholesky_solve": (lambda lib, a, b: lib.cholesky_solve(b, lib.linalg.cholesky(a)), (POSITIVE, WIDE)),
    "cholesky_inverse": (lambda lib, x: lib.cholesky_inverse(lib.linalg.cholesky(x)), (POSITIVE,)),
    "qr": (lambda lib, x: tuple(lib.linalg.qr(x)), (SQUARE,)),
    "qr of tall ones": (lambda lib, x: tuple(lib.linalg.qr(x)), (TALL,)),
    "qr of wide ones": (lambda lib, x: tuple(lib.linalg.qr(x)), (WIDE,)),
    "pinv": (lambda lib, x: lib.linalg.pinv(x), (SQUARE,)),
    "pinv of tall ones": (lambda lib, x: lib.linalg.pinv(x), (TALL,)),
    "pinv of wide ones": (lambda lib, x: lib.linalg.pinv(x), (WIDE,)),
    "pinv of Hermitian ones": (lambda lib, x: lib.linalg.pinv(x + x.mH, hermitian=True), (SQUARE,)),
    "lstsq of tall ones": (least_squares, (TALL, normal(2, 4, 2))),
    "matrix_power": (lambda lib, x: lib.linalg.matrix_power(x, 3), (SQUARE,)),
    "matrix_power of inverses": (lambda lib, x: lib.linalg.matrix_power(x, -2), (SQUARE,)),
    "matrix_exp": (lambda lib, x: lib.linalg.matrix_exp(x), (SQUARE,)),
    "householder_product": (lambda lib, a, t: lib.linalg.householder_product(a, t), (TALL, normal(2, 3))),
    "vecdot": (lambda lib, a, b: lib.linalg.vecdot(a, b), (TALL, normal(2, 4, 3))),
    "vander": (lambda lib, x: lib.linalg.vander(x, N=4), (normal(3),)),
    "tensorsolve": (lambda lib, a, b: lib.linalg.tensorsolve(a, b), (normal(2, 3, 6), normal(2, 3))),
    "multi_dot": (lambda lib, a, b: lib.linalg.multi_dot([a, b, a]), (TALL[0], WIDE[0])),
    **{
        f"vector_norm {o}": (lambda lib, x, o=o: lib.linalg.vector_norm(x, o, 1), (TALL,))
        for o in (1, 2, 3, -1, np.inf, -np.inf)
    },
    **{
        f"matrix_norm {o}": (lambda lib, x, o=o: lib.linalg.matrix_norm(x, o), (TALL,))
        for o in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    },
    **{f"cond {p}": (lambda lib, x, p=p: lib.linalg.cond(x, p), (SQUARE,)) for p in (None, -2)},
}


def listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def array_of(tensor: Any) -> np.ndarray:
    return tensor.detach().resolve_conj().numpy()


def energy(result: list[Any], weights: list[Any]) -> Any:
    """A real number, to which real and imaginary parts of all elements add."""
    return sum(
        (f.real * w.real).sum() + (f * w).imag.sum() if f.is_complex() else (f * w.real).sum()
        for f, w in zip(result, weights, strict=True)
    )


@pytest.mark.sampled(50)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", CASES)
def test_complex_matrices_are_treated_as_pytorch_does(name: str, compiled: bool):
    function, arrays = CASES[name]
    given = [torch.tensor(a, requires_grad=True) for a in arrays]
    expected = listed(function(torch, *given))
    random = np.random.default_rng(5)
    weights = [random.normal(size=w.shape) + 1j * random.normal(size=w.shape) for w in expected]
    energy(expected, [torch.tensor(w) for w in weights]).backward()

    def both(*tensors: Any) -> Any:
        results = listed(function(gc, *tensors))
        return energy(results, [gc.tensor(w) for w in weights]), *results

    leaves = [gc.tensor(a, requires_grad=True) for a in arrays]
    loss, *result = (gc.compile(both) if compiled else both)(*leaves)
    for f, w in zip(result, expected, strict=True):
        assert f.dtype.name == {"complex128": "c128", "float64": "f64"}[str(w.dtype).removeprefix("torch.")]
        np.testing.assert_allclose(f.detach().numpy(), array_of(w), rtol=1e-8, atol=1e-10)
    loss.backward()
    for leaf, other in zip(leaves, given, strict=True):
        assert leaf.grad.dtype is leaf.dtype
        np.testing.assert_allclose(leaf.grad.numpy(), array_of(other.grad), rtol=1e-7, atol=1e-9)
