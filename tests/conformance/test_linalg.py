"""Functions of matrices beside those of PyTorch: results, shapes, element types and gradients, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc

torch = pytest.importorskip("torch")

_RANDOM = np.random.default_rng(0)


def _normal(*shape: int) -> np.ndarray:
    return _RANDOM.normal(size=shape)


SQUARE = _normal(2, 3, 3) + 3 * np.eye(3)
POSITIVE = SQUARE @ SQUARE.swapaxes(1, 2)
TALL, WIDE = _normal(2, 4, 3), _normal(2, 3, 4)
FACTORS = tuple(t.numpy() for t in torch.linalg.lu_factor(torch.tensor(SQUARE)))
_ORDERS = ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf)
Case = tuple[str, tuple[Any, ...], dict[str, Any]]
CASES: list[Case] = [
    *[(name, (SQUARE,), {}) for name in ("det", "inv", "inv_ex", "svdvals", "pinv", "matrix_exp")],
    *[(name, (SQUARE,), {}) for name in ("lu", "lu_factor", "lu_factor_ex", "norm", "vector_norm", "matrix_norm")],
    *[(name, (x,), {}) for name in ("lu", "lu_factor", "svdvals", "pinv", "matrix_rank", "cond") for x in (TALL, WIDE)],
    *[(name, (POSITIVE,), {"upper": u}) for name in ("cholesky", "cholesky_ex") for u in (False, True)],
    ("eigvalsh", (POSITIVE,), {}),
    ("eigvalsh", (SQUARE, "U"), {}),
    *[("solve_triangular", (SQUARE, WIDE[..., :2]), {"upper": u, "unitriangular": d}) for u in (0, 1) for d in (0, 1)],
    *[("solve_triangular", (SQUARE, TALL), {"upper": u, "left": False}) for u in (False, True)],
    *[("solve", (SQUARE, b), {}) for b in (_normal(3), _normal(2, 3), _normal(3, 5), _normal(5, 2, 3, 4))],
    ("solve", (SQUARE, TALL), {"left": False}),
    ("solve_ex", (SQUARE, WIDE), {}),
    *[("cond", (SQUARE, p), {}) for p in (None, 2, -2)],
    *[("matrix_norm", (TALL, o), {"keepdim": True}) for o in _ORDERS],
    *[("matrix_norm", (TALL, o, (0, 2)), {}) for o in _ORDERS],
    *[("norm", (TALL[0], o), {}) for o in _ORDERS],
    *[("norm", (TALL, o, 1), {}) for o in (0, 1, 2, 3, -1, np.inf, -np.inf, 0.5)],
    *[("vector_norm", (TALL, o, (0, 2), True), {}) for o in (0, 1, 2, 3, -1, np.inf, -np.inf, 0.5)],
    ("norm", (TALL,), {"dim": (0, 1)}),
    *[("matrix_power", (SQUARE, n), {}) for n in (-3, -1, 1, 2, 5)],
    ("cross", (_normal(2, 3), _normal(2, 3)), {}),
    ("cross", (_normal(1, 3), _normal(4, 3)), {}),
    ("cross", (_normal(3, 2), _normal(3, 2)), {"dim": 0}),
    ("vecdot", (_normal(2, 3), _normal(4, 1, 3)), {}),
    ("vecdot", (_normal(2, 3), _normal(2, 3)), {"dim": 0}),
    ("vander", (_normal(4),), {}),
    ("vander", (_normal(2, 4),), {"N": 6}),
    ("diagonal", (_normal(3, 4, 4),), {"offset": 1, "dim1": 0, "dim2": 1}),
    ("tensorinv", (_normal(4, 6, 8, 3),), {}),
    ("tensorsolve", (np.eye(6).reshape(3, 2, 2, 3) + 0.1 * _normal(3, 2, 2, 3), _normal(3, 2)), {}),
    ("householder_product", (TALL, _normal(2, 3)), {}),
    ("householder_product", (_normal(4, 3), _normal(2)), {}),
    *[("lstsq", (TALL, _normal(2, 4, 2)), {"driver": d}) for d in ("gels", "gelsy", "gelsd")],
    ("lstsq", (WIDE, _normal(2, 3, 2)), {"driver": "gels"}),
    ("lstsq", (WIDE, _normal(2, 3, 2)), {}),
    ("pinv", (POSITIVE,), {"hermitian": True}),
    ("pinv", (_normal(4, 2) @ _normal(2, 4),), {}),
    ("matrix_rank", (_normal(4, 1) @ _normal(1, 4),), {}),
    ("matrix_rank", (SQUARE,), {"atol": 2.0}),
    *[("qr", (x,), {}) for x in (TALL, WIDE, SQUARE)],
    ("qr", (WIDE, "complete"), {}),
    *[("lu_solve", (*FACTORS, WIDE), {"adjoint": a}) for a in (False, True)],
    ("lu_solve", (*FACTORS, TALL), {"left": False}),
]
LARGE = (_normal(70, 70) + 8 * np.eye(70), _normal(70, 2))


def _leaf(package: Any, x: Any) -> Any:
    return package.tensor(x, requires_grad=x.dtype.kind == "f") if isinstance(x, np.ndarray) else x


def _parts(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


def _run(package: Any, function: Any, args: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """Results, and gradients of a weighted sum of what follows the operands without a step."""
    leaves = [_leaf(package, x) for x in args]
    results = _parts(function(*leaves))
    chosen = [(i, r) for i, r in enumerate(results) if r.requires_grad and r.numel()]
    if chosen:
        sum([(r * (i + 1)).sin().sum() for i, r in chosen]).backward()
    tensors = [x for x in leaves if hasattr(x, "grad") and x.requires_grad]
    return results, [np.zeros(tuple(x.shape)) if x.grad is None else x.grad.numpy() for x in tensors]


def _compare(function: Any, other: Any, args: tuple[Any, ...]) -> None:
    (found, gradients), (wanted, expected) = _run(graphc, function, args), _run(torch, other, args)
    for ours, theirs in zip(found, wanted, strict=True):
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert np.asarray(ours.detach()).dtype == theirs.detach().numpy().dtype
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-7, atol=1e-9)
    for ours, theirs in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("name", "args", "options"), CASES, ids=[c[0] for c in CASES])
def test_the_function_does_what_that_of_pytorch_does(name: str, args: tuple[Any, ...], options: dict[str, Any]):
    ours, theirs = getattr(graphc.linalg, name), getattr(torch.linalg, name)
    given = {k: bool(v) if k in ("upper", "unitriangular") else v for k, v in options.items()}
    _compare(lambda *x: ours(*x, **given), lambda *x: theirs(*x, **given), args)


@pytest.mark.parametrize(
    ("name", "args", "options"),
    [
        ("cholesky", (POSITIVE,), {}),
        ("solve", (SQUARE, WIDE), {}),
        ("solve_triangular", (SQUARE, WIDE), {"upper": True}),
        ("inv", (SQUARE,), {}),
        ("det", (SQUARE,), {}),
        ("qr", (TALL,), {}),
        ("lu", (WIDE,), {}),
        ("lstsq", (TALL, _normal(2, 4, 2)), {"driver": "gels"}),
        ("svdvals", (TALL,), {}),
        ("matrix_exp", (SQUARE,), {}),
        ("solve", LARGE, {}),
        ("det", (LARGE[0] / 8,), {}),
    ],
)
def test_compiled_code_does_so_too(name: str, args: tuple[Any, ...], options: dict[str, Any]):
    ours, theirs = getattr(graphc.linalg, name), getattr(torch.linalg, name)
    _compare(graphc.compile(lambda *x: ours(*x, **options)), lambda *x: theirs(*x, **options), args)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        *[(name, (SQUARE,)) for name in ("det", "inverse", "slogdet", "logdet", "pinverse", "matrix_exp", "qr")],
        ("cholesky", (POSITIVE,)),
        ("cholesky", (POSITIVE, True)),
        ("lu_solve", (WIDE, *FACTORS)),
        ("matrix_power", (SQUARE, 3)),
        ("orgqr", (TALL, _normal(2, 3))),
        ("triangular_solve", (WIDE, SQUARE)),
        ("triangular_solve", (WIDE, SQUARE, False, True, True)),
    ],
)
def test_methods_do_what_those_of_pytorch_do(name: str, args: tuple[Any, ...]):
    if name == "slogdet":  # PyTorch gives its sign a gradient of 0
        ours, theirs = (lambda x: x.slogdet()[1] for _ in range(2))
        return _compare(ours, theirs, args)
    _compare(lambda x, *more: getattr(x, name)(*more), lambda x, *more: getattr(x, name)(*more), args)
    assert getattr(graphc, name).__name__ == name


@pytest.mark.parametrize("upper", [False, True])
def test_factors_of_cholesky_solve_and_invert(upper: bool):
    def both(x: Any, b: Any) -> Any:
        factor = x.triu() if upper else x.tril()  # in PyTorch the other triangle has a gradient, too
        return b.cholesky_solve(factor, upper), factor.cholesky_inverse(upper)

    _compare(both, both, (SQUARE, WIDE))


def test_forms_of_the_package_are_those_of_pytorch():
    _compare(lambda *x: graphc.lu_unpack(*x), lambda *x: torch.lu_unpack(*x), (FACTORS[0], FACTORS[1]))
    _compare(graphc.chain_matmul, torch.chain_matmul, (TALL[0], WIDE[0], TALL[1]))
    _compare(
        lambda a, b: graphc.linalg.multi_dot([a, b, a]),
        lambda a, b: torch.linalg.multi_dot([a, b, a]),
        (TALL[0], WIDE[0]),
    )


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("inv", (np.zeros((2, 2)),)),
        ("inv", (np.ones((2, 3)),)),
        ("cholesky", (-np.eye(2),)),
        ("solve", (np.zeros((2, 2)), np.ones(2))),
        ("solve", (np.eye(2), np.ones(3))),
        ("lu_factor", (np.zeros((2, 2)),)),
        ("det", (np.ones(3),)),
        ("inv", (np.ones((2, 2), np.int64),)),
        ("qr", (np.eye(2), "raw")),
        ("matrix_norm", (np.eye(2), "half")),
        ("vander", (np.ones(3), 1)),
        ("cross", (np.ones(2), np.ones(2))),
        ("multi_dot", ([np.eye(2)],)),
    ],
)
def test_what_pytorch_refuses_is_refused(name: str, args: tuple[Any, ...]):
    for package in (torch, graphc):
        with pytest.raises((RuntimeError, TypeError)):
            getattr(package.linalg, name)(*[package.tensor(x) if isinstance(x, np.ndarray) else x for x in args])
