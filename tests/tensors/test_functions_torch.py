"""Functions of tensors against PyTorch: values, gradients, and what compiled code computes."""

from __future__ import annotations

import numpy as np
import pytest

import graphc

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)


def f(*shape):
    return RNG.normal(size=shape)


def i(low, high, *shape):
    return RNG.integers(low, high, shape)


def with_gaps(array):
    array[RNG.random(array.shape) < 0.3] = np.nan
    return array


ENTRIES = i(0, 5, 4)
CALLS = [
    *(("index_reduce", f(5, 3), 0, ENTRIES, f(4, 3), r) for r in ("prod", "mean", "amax", "amin")),
    ("index_reduce", f(3, 5), 1, ENTRIES, f(3, 4), "mean", {"include_self": False}),
    ("put", f(3, 4), np.array([0, -1, 5]), f(3)),
    ("put", f(3, 4), np.array([[0, 1], [0, 5]]), f(2, 2), True),
    ("take", f(3, 4), np.array([0, -1, 5])),
    ("diagonal_scatter", f(4, 5), f(3), 2),
    ("diagonal_scatter", f(2, 4, 3), f(4, 2), 0, 0, 2),
    ("nonzero_static", np.array([[1, 0, 2], [0, 3, 0]]), {"size": 5}),
    ("nonzero_static", np.array([[1, 0, 2], [0, 3, 0]]), {"size": 2, "fill_value": 7}),
    ("histogram", f(60), 7),
    ("histogram", f(60), 7, {"density": True}),
    ("histogram", f(10, 6), 10, {"range": (-1.0, 1.0), "density": True}),
    ("histogram", np.ones(4), 3),
    ("histogram", np.linspace(0, 1, 11), 10),
    ("histogramdd", f(50, 2), [3, 4]),
    ("histogramdd", f(50, 3), [3, 4, 2], {"range": [-1.0, 1, -2, 2, -1, 0], "density": True}),
    *(("nanquantile", with_gaps(f(6, 5)), 0.3, 1, {"interpolation": n}) for n in ("linear", "lower", "nearest")),
    ("nanquantile", with_gaps(f(6, 5)), np.array([0.0, 0.5, 1.0]), 0, True),
    ("nanquantile", with_gaps(f(6, 5)), 0.75, {"interpolation": "midpoint"}),
    ("trapz", f(3, 4), f(3, 4)),
    ("cumulative_trapezoid", f(3, 4), {"dx": 0.5, "dim": 0}),
    ("gradient", f(5, 4), {"spacing": 2.0, "edge_order": 2}),
    ("ldexp", f(4), f(4)),
    ("frexp", f(5)),
    ("gcd", i(-9, 10, 6), i(-9, 10, 6)),
    ("lcm", i(-9, 10, 6), i(-9, 10, 6)),
    ("unravel_index", np.array([1, 5, 11]), (3, 4)),
    ("adjoint", f(2, 3)),
    ("unsafe_split", f(5, 2), 2),
]


def made(library, value, grad):
    if not isinstance(value, np.ndarray):
        return value
    tensor = library.tensor(value)
    return tensor.requires_grad_() if grad and value.dtype == np.float64 else tensor


def results(library, call, grad=True):
    """Operands and results of a call."""
    name, *arguments = call
    options = arguments.pop() if isinstance(arguments[-1], dict) else {}
    operands = [made(library, v, grad and not name.startswith(("hist", "nan"))) for v in arguments]
    tensors = [o for o in operands if isinstance(o, library.Tensor)]

    def run(*given):
        it = iter(given)
        result = getattr(library, name)(
            *(next(it) if isinstance(o, library.Tensor) else o for o in operands), **options
        )
        return tuple(leaves(result))

    return tensors, run


def leaves(result):
    return [x for part in result for x in leaves(part)] if isinstance(result, (tuple, list)) else [result]


def same(mine, others):
    for a, b in zip(mine, others, strict=True):
        assert tuple(a.shape) == tuple(b.shape) and a.detach().numpy().dtype == b.detach().numpy().dtype
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("call", CALLS, ids=[c[0] for c in CALLS])
def test_values_gradients_and_compiled_values(call):
    (tensors, run), (theirs, other) = results(graphc, call), results(torch, call)
    mine, expected = run(*tensors), other(*theirs)
    same(mine, expected)
    same(graphc.compile(run)(*(t.detach() for t in tensors)), expected)
    if any(r.requires_grad for r in expected):
        for result in (mine, expected):
            sum((r * r).sum() for r in result if r.requires_grad).backward()
        pairs = [(t.grad, o.grad) for t, o in zip(tensors, theirs, strict=True) if o.grad is not None]
        same([a for a, _ in pairs], [b for _, b in pairs])


@pytest.mark.parametrize("options", [{}, {"return_inverse": True, "return_counts": True}, {"dim": 0}])
def test_unique_consecutive(options):
    values = np.array([[1, 1, 2], [1, 1, 2], [2, 3, 3]])
    result, expected = (leaves(m.unique_consecutive(m.tensor(values), **options)) for m in (graphc, torch))
    same(result, expected)


def test_what_may_be_cast():
    names = ("float32", "float64", "int64", "int32", "int8", "uint8", "bool")
    for a in names:
        for b in names:
            types = [getattr(graphc, "bool_" if n == "bool" else n) for n in (a, b)]
            assert graphc.can_cast(*types) == torch.can_cast(getattr(torch, a), getattr(torch, b)), (a, b)
