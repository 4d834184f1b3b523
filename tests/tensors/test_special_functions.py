"""Special functions in native code against mpmath, at their ends against PyTorch, and their gradients."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import graphc as gc
from graphc import special
from graphc.errors import ArgumentError, AttributeValueError

RNG = np.random.default_rng(7)
WIDE = np.concatenate([RNG.uniform(-40, 40, 40), RNG.uniform(-3, 3, 20), 10.0 ** RNG.uniform(-8, 2.5, 15)])
CHANCES = np.concatenate([RNG.uniform(0, 1, 20), 10.0 ** RNG.uniform(-30, -1, 10)])


def log_below(v):
    """The logarithm of the normal distribution function."""
    return mpmath.log(mpmath.ncdf(v)) if v < 0 else mpmath.log1p(-mpmath.ncdf(-v))


def chance_below(v):
    """Its inverse."""
    start = -mpmath.sqrt(-2 * mpmath.log(v)) if v < 0.5 else 0.5
    return mpmath.findroot(lambda z: mpmath.log(mpmath.ncdf(z)) - mpmath.log(v), start)


CASES = {
    "i0": (lambda v: mpmath.besseli(0, v), WIDE),
    "i0e": (lambda v: mpmath.besseli(0, v) * mpmath.exp(-abs(v)), WIDE),
    "i1": (lambda v: mpmath.besseli(1, v), WIDE),
    "i1e": (lambda v: mpmath.besseli(1, v) * mpmath.exp(-abs(v)), WIDE),
    "bessel_j0": (lambda v: mpmath.besselj(0, v), WIDE),
    "bessel_j1": (lambda v: mpmath.besselj(1, v), WIDE),
    "erfcx": (lambda v: mpmath.exp(v * v) * mpmath.erfc(v), WIDE[np.abs(WIDE) < 8]),
    "ndtr": (mpmath.ncdf, WIDE[np.abs(WIDE) < 12]),
    "log_ndtr": (log_below, WIDE[WIDE < 12]),
    "ndtri": (chance_below, CHANCES),
    "entr": (lambda v: -v * mpmath.log(v), np.abs(WIDE)),
}
UNITS = {"bessel_j1": 100_000, "bessel_j0": 10_000, "ndtr": 1000, "erfcx": 1000, "log_ndtr": 1000}
"""Beside zeros, and in tails, f64 loses units; the others stay below this many."""


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_native_code_is_right_to_units(name: str, dtype: type):
    reference, x = CASES[name]
    x = x.astype(dtype)
    with mpmath.workdps(40):
        want = np.array([float(reference(mpmath.mpf(float(v)))) for v in x])
    kept = np.abs(want) < np.finfo(dtype).max
    got = gc.compile(getattr(special, name))(gc.tensor(x)).numpy()
    assert got.dtype == dtype
    with np.errstate(over="ignore"):
        units = np.abs(got - want)[kept] / np.spacing(np.abs(want[kept]).astype(dtype)).astype(np.float64)
    assert units.max() < (1 if dtype is np.float32 else UNITS.get(name, 40))


def test_zeta():
    pairs = np.array([(x, q) for x in (1.01, 1.5, 2, 3.7, 10, 40.0) for q in (0.01, 0.5, 1, 3.3, 50)])
    with mpmath.workdps(40):
        want = np.array([float(mpmath.zeta(x, q)) for x, q in pairs])
    got = special.zeta(*[gc.tensor(np.ascontiguousarray(column)) for column in pairs.T])
    np.testing.assert_allclose(got.numpy(), want, 4e-15)
    ends = special.zeta(gc.tensor([1.0, 0.5, 2.0, 2.0, 2.0]), gc.tensor([1.0, 1.0, 0.0, -2.0, -0.5]))
    np.testing.assert_array_equal(ends.numpy(), [np.inf, np.nan, np.inf, np.inf, np.nan])


@pytest.mark.parametrize("name", CASES)
def test_the_ends_are_those_of_pytorch(torch, name: str):
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5])
    want = getattr(torch.special, name)(torch.tensor(ends)).numpy()
    np.testing.assert_allclose(getattr(special, name)(gc.tensor(ends)).numpy(), want, 1e-12)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [(name, 0.05, 0.95) for name in CASES] + [(name, -6, 6) for name in CASES if name not in ("ndtri", "entr")],
)
def test_gradients(name: str, low: float, high: float):
    x = gc.tensor(RNG.uniform(low, high, 5), requires_grad=True)
    assert gc.autograd.gradcheck(getattr(special, name), (x,))


def test_two_arguments_are_those_of_pytorch(torch):
    a, x = RNG.uniform(0.1, 30, (40,)), RNG.uniform(0, 40, (40,))
    for name in ("gammainc", "gammaincc", "xlog1py", "xlogy", "zeta"):
        first = a + 1 if name == "zeta" else a
        want = getattr(torch.special, name)(torch.tensor(first), torch.tensor(x)).numpy()
        got = getattr(special, name)(gc.tensor(first), gc.tensor(x)).numpy()
        np.testing.assert_allclose(got, want, 2e-8, err_msg=name)  # PyTorch's gammainc has nine digits


def test_the_largest_numbers():
    x = gc.tensor([1e155, -1e300], dtype=gc.float64)
    with mpmath.workdps(30):
        root = [float(1 / mpmath.sqrt(2 * mpmath.pi * mpmath.mpf(v))) for v in (1e155, 1e300)]
    np.testing.assert_allclose(special.i0e(x).numpy(), root, 1e-15)
    np.testing.assert_allclose(special.i1e(x).numpy(), [root[0], -root[1]], 1e-15)
    assert special.i1(x).tolist() == [np.inf, -np.inf]
    far = gc.tensor([1e155, 1e300, 1e307], dtype=gc.float64)
    np.testing.assert_allclose(special.erfcx(far).numpy(), 1 / (far.numpy() * np.sqrt(np.pi)), 1e-14)


@pytest.mark.parametrize("name", ["i1", "i1e", "bessel_j1"])
def test_odd_functions_have_a_gradient_at_zero(name: str):
    x = gc.zeros(1, dtype=gc.float64, requires_grad=True)
    getattr(special, name)(x).backward()
    assert x.grad.item() == pytest.approx(0.5, rel=1e-14)


@pytest.mark.parametrize("name", ["zeta", "xlog1py"])
def test_one_of_two_arguments_may_be_a_number(name: str):
    function, x = getattr(special, name), gc.tensor([1.5, 3.0])
    for pair in ((2.0, x), (x, 2.0)):
        want = function(*[v if isinstance(v, gc.Tensor) else gc.full((2,), v) for v in pair])
        np.testing.assert_array_equal(function(*pair).numpy(), want.numpy())
        assert gc.compile(function)(*pair).tolist() == pytest.approx(want.tolist(), rel=1e-6)
    with pytest.raises(ArgumentError, match=name):
        function(2.0, 2.0)


def test_whole_numbers_become_f32():
    assert special.i0(gc.tensor([0, 1])).dtype is gc.float32
    assert special.xlog1py(gc.tensor([0, 1]), 2).tolist() == pytest.approx([0, np.log(3)])


def test_mistakes():
    with pytest.raises(ArgumentError, match="i0"):
        special.i0(1.0)
    with pytest.raises(AttributeValueError, match="the order must be 0 or more, got -1"):
        special.polygamma(-1, gc.ones(1))


NAN, INF = np.nan, np.inf
LIMITS: dict[str, tuple[list[float], list[float]]] = {
    "entr": ([0.0, -0.0, 1.0, INF, -1.0], [INF, INF, -1.0, -INF, NAN]),
    "erfcx": (
        [0.0, -0.0, 88.0, 1e5, 3e38],
        [-2 / np.sqrt(np.pi)] * 2 + [-7.284095250798e-05, -5.6418958346e-11, -6.2687731505e-78],
    ),
    "log_ndtr": ([-88.0, -1e5, 0.0], [88.01136071, 1e5, np.sqrt(2 / np.pi)]),
    "ndtri": ([0.0, 0.5, 1.0, -1.0, 2.0, NAN], [INF, np.sqrt(2 * np.pi), INF, NAN, NAN, NAN]),
    "i0": ([-1e5, 0.0, 1e5], [-INF, 0.0, INF]),
    "i1": ([-1e5, 0.0, 1e5], [INF, 0.5, INF]),
}
"""Points at the ends of domains and where powers overflow, with the gradients there."""


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", LIMITS)
def test_gradients_at_singular_points(name: str, compiled: bool):
    points, expected = LIMITS[name]
    function = getattr(special, name)
    x = gc.tensor(points, dtype=gc.float64, requires_grad=True)
    (gc.compile(function) if compiled else function)(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected, 1e-7)


def test_the_gradient_of_xlog1py_at_0_is_the_logarithm():
    x = gc.tensor([0.0, 0.0, 0.0, 0.0], requires_grad=True)
    y = gc.tensor([1.0, 3.0, -1.0, -2.0], requires_grad=True)
    result = special.xlog1py(x, y)
    result.sum().backward()
    assert result.tolist() == [0.0] * 4
    assert x.grad.tolist() == pytest.approx([np.log(2), np.log(4), 0.0, 0.0])
    assert y.grad.tolist()[:2] == [0.0, 0.0]


def test_quantiles_of_the_least_numbers_are_finite():
    points = gc.tensor([5e-324, 1e-310, 1e-300, 1e-200], dtype=gc.float64)
    np.testing.assert_allclose(special.ndtri(points).numpy(), [float(v) for v in _quantiles(points.tolist())], 1e-12)


def _quantiles(chances: list[float]) -> list[mpmath.mpf]:
    start = [-np.sqrt(-2 * np.log(p)) for p in chances]
    return [
        mpmath.findroot(lambda z, p=p: mpmath.log(mpmath.ncdf(z)) - mpmath.log(p), z)
        for p, z in zip(chances, start, strict=True)
    ]


def test_zeta_of_an_infinite_exponent_is_its_first_term():
    q = gc.tensor([0.5, 1.0, 2.0], dtype=gc.float64)
    assert special.zeta(gc.tensor(INF, dtype=gc.float64), q).tolist() == [INF, 1.0, 0.0]
