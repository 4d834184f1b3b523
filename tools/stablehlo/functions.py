"""JAX functions of which the tests keep the StableHLO text, with example arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax  # pyright: ignore[reportMissingImports]
import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
import numpy as np
from jax import lax  # pyright: ignore[reportMissingImports]

jax.config.update("jax_enable_x64", True)

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
"""Function and arguments by name."""


def case(*args: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function with its arguments."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = function, args
        return function

    return enter


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Return normal numbers."""
    return np.random.default_rng(seed).normal(size=shape)


def whole(*shape: int, low: int = 0, high: int = 5, dtype: str = "int64", seed: int = 0) -> np.ndarray:
    """Return whole numbers from ``low`` to ``high - 1``."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


KEY = np.array([0, 42], np.uint32)
SQUARE = floats(5, 5, seed=3)
POSITIVE = SQUARE @ SQUARE.T + 5 * np.eye(5)

# ---- elements


@case(floats(4, 5))
def elementary(x):
    y = jnp.abs(x) + 0.1
    z = x / (1 + jnp.abs(x))
    return (
        *(jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.tanh(x), jnp.exp(x), jnp.expm1(x), jnp.log(y), jnp.log1p(y)),
        *(jnp.sqrt(y), lax.rsqrt(y), jnp.cbrt(x), lax.logistic(x), jnp.sign(x), jnp.floor(x), jnp.ceil(x), -x),
        *(jnp.arcsin(z), jnp.arccos(z), jnp.arctan(x), jnp.sinh(x), jnp.cosh(x), jnp.arcsinh(x), jnp.arctanh(z)),
        *(jnp.arccosh(1 + y), jnp.power(y, x), jnp.arctan2(x, y), jnp.remainder(x, y), jnp.fmod(x, y)),
        *(jnp.round(x * 2.5), lax.round(x * 2.5), jnp.square(x), jnp.maximum(x, 0.2), jnp.minimum(x, 0.2), x**3),
    )


@case(np.abs(floats(4, 5)) + 0.3)
def special(x):
    s = jax.scipy.special
    return (
        *(s.erf(x), s.erfc(x), s.erfinv(x / 5), s.gammaln(x), s.digamma(x), s.polygamma(1, x), s.zeta(x + 1.5, x)),
        *(s.i1e(x), s.logit(x / 5), s.xlogy(x, x), s.logsumexp(x, axis=1), s.expit(x)),
        *(s.entr(x)),
    )


@case(whole(4, 6, low=-40, high=40, dtype="int32"), whole(4, 6, low=-5, high=5, dtype="int32", seed=1))
def integers(x, y):
    z = jnp.where(y == 0, 1, y)
    return (
        *(x + y, x - y, x * y, x // z, x % z, lax.div(x, z), lax.rem(x, z), x & y, x | y, x ^ y, ~x, x << 2, x >> 1),
        *(lax.shift_right_logical(x, jnp.full_like(x, 3)), lax.population_count(x), lax.clz(x), jnp.abs(x), x**2),
        *(jnp.sign(x), x.astype(jnp.uint8), x.astype(jnp.float32), jnp.bitwise_count(x), jnp.gcd(x, z)),
    )


@case(whole(8, high=2**32, dtype="uint32"), whole(8, high=2**16, dtype="uint64", seed=1))
def unsigned(x, y):
    y = y * np.uint64(2**40 + 7)
    return (
        x * x,
        x >> 7,
        x // 3,
        x % 1000,
        y >> 9,
        y // 3,
        y % 1000,
        x.astype(jnp.float64),
        y.astype(jnp.float64),
        x < 2**31,
    )


@case(floats(3, 4), floats(3, 4, seed=1) > 0, floats(3, 4, seed=2) > 0)
def conditions(x, a, b):
    chosen = jnp.select([a, b], [x, 2 * x], -x)
    return (
        chosen,
        a & b,
        a | b,
        a ^ b,
        ~a,
        a == b,
        jnp.where(a, x, 0),
        jnp.clip(x, -0.5, 0.5),
        jnp.isfinite(x / 0),
        a < b,
    )


@case(floats(6), whole(6, dtype="int32"))
def conversions(x, n):
    bits = lax.bitcast_convert_type(x, jnp.uint64)
    halves = lax.bitcast_convert_type(x, jnp.uint32)
    rounded = lax.reduce_precision(x, 8, 23)
    return bits, halves, lax.bitcast_convert_type(halves, jnp.float64), rounded, x.astype(jnp.int32), n.astype(bool)


@case(floats(4, 3), floats(4, 3, seed=1))
def complex_numbers(x, y):
    z = lax.complex(x, y)
    return (
        z * z,
        jnp.abs(z),
        jnp.conj(z),
        jnp.real(z / (1 + z)),
        jnp.imag(jnp.exp(z)),
        jnp.angle(z),
        jnp.sum(z, 0),
        z @ z.T,
    )


# ---- shapes


@case(floats(2, 3, 4))
def moves(x):
    return (
        *(x.reshape(6, 4), jnp.transpose(x, (2, 0, 1)), jnp.flip(x, 1), jnp.concatenate([x, x], 2), x[:, ::2, 1:3]),
        *(
            jnp.pad(x, ((0, 1), (2, 0), (0, 0))),
            lax.pad(x, 1.5, ((1, -1, 0), (0, 0, 2), (-1, 1, 1))),
            jnp.roll(x, 1, 2),
        ),
        *(jnp.tile(x, (1, 2, 1)), jnp.stack([x, x]), jnp.split(x, 2, 2)[1], jnp.repeat(x, 2, 0), jnp.rot90(x)),
        *(jnp.broadcast_to(x[:, :, :1], (5, 2, 3, 4)), jnp.arange(5.0), jnp.eye(3), jnp.tril(x), jnp.diag(x[0, :, :3])),
        *(jnp.linspace(0, 1, 7), jnp.kron(x[0], x[1]), jnp.full((2, 2), 1 + 2j), jnp.moveaxis(x, 0, 2)),
    )


@case()
def constants():
    table = np.random.default_rng(0).normal(size=(12, 12))
    flags = np.random.default_rng(0).integers(0, 2, 150).astype(bool)
    return (
        *(
            jnp.asarray(table),
            jnp.asarray(table.astype(np.float32)),
            jnp.array([1, -2, 3]),
            jnp.array([np.inf, np.nan, -0.0]),
        ),
        *(jnp.array([[True, False]]), jnp.asarray(flags), jnp.asarray(table > 0), jnp.zeros((0, 3)), jnp.array(1 + 2j)),
        *(
            jnp.asarray(table[:2, :2] * 1j),
            jnp.arange(300).astype(jnp.uint8),
            jnp.asarray(np.arange(200, dtype=np.uint32)),
        ),
    )


@case(floats(7, 5), np.array(9), np.array(-2))
def dynamic_slices(x, i, j):
    part = lax.dynamic_slice(x, (i, j), (3, 2))
    row = lax.dynamic_index_in_dim(x, j, 0)
    updated = lax.dynamic_update_slice(x, part * 0, (i, j))
    return part, row, updated, lax.dynamic_update_index_in_dim(x, x[0], i, 0), x.at[2].set(0), x[i - 8, j]


# ---- positions


@case(floats(6, 4), whole(3, 2, high=6), whole(5, high=4, seed=1))
def gathers(x, rows, columns):
    along = jnp.take_along_axis(x, jnp.argsort(x, axis=0), axis=0)
    return x[rows], x[:, columns], x[rows[:, 0], columns[:3]], jnp.take(x, columns, axis=1), along, x[rows - 7], x[-1]


@case(floats(6, 4), whole(5, high=8, seed=2), floats(5, 4, seed=3))
def scatters(x, rows, values):
    at = x.at[rows]
    return (
        at.add(values),
        at.set(values[0]),
        at.max(values),
        at.min(values),
        at.mul(values),
        x.at[:, 1].add(1.0),
        (x.at[rows[:3], jnp.array([0, 3, 3])].add(1.0)),
    )


@case(floats(8, 3), np.array([0, 1, 1, 3, 3, 3, 0, 2]))
def segments(x, ids):
    return (
        jax.ops.segment_sum(x, ids, 5),
        jax.ops.segment_max(x, ids, 4),
        jax.ops.segment_prod(x, ids, 4),
        jnp.bincount(ids, length=6),
    )


@case(floats(4, 5, 2), whole(4, 2, high=5))
def batched_positions(x, rows):
    take = jax.vmap(lambda a, i: a[i])
    put = jax.vmap(lambda a, i: a.at[i].add(2.0))
    window = jax.vmap(lambda a, i: lax.dynamic_slice(a, (i, 0), (2, 2)))
    return take(x, rows), put(x, rows), window(x, rows[:, 0])


@case(whole(9, high=4, dtype="int32"))
def one_hot(x):
    return (
        jax.nn.one_hot(x, 4),
        jnp.searchsorted(jnp.arange(4), x),
        jnp.digitize(x, jnp.array([1, 3])),
        jnp.unique(x, size=4),
    )


# ---- order


@case(floats(5, 7).round(1), whole(5, 7))
def sorts(x, n):
    y = x.at[1, 2].set(jnp.nan)
    return (
        *(jnp.sort(x, axis=0), jnp.sort(y), jnp.argsort(x), jnp.argsort(-n, stable=True), jnp.sort(n, descending=True)),
        *(
            lax.sort((n, x), num_keys=2),
            jnp.lexsort((x[0], n[0])),
            jnp.median(x, axis=1),
            jnp.argsort(x, descending=True),
        ),
        jnp.quantile(x, 0.3, axis=1),
    )


@case(floats(3, 9).round(1))
def largest(x):
    return lax.top_k(x, 4), jnp.argmax(x, 1), jnp.argmin(x, 0), lax.top_k(x[0], 2), lax.approx_max_k(x, 1)[0].shape[0]


@case(floats(4, 6))
def reductions(x):
    return (
        *(x.sum(), x.mean(0), x.var(1), x.max(1), x.min((0, 1)), jnp.prod(x, 0), (x > 0).any(1), (x > -9).all()),
        *(jnp.linalg.norm(x, axis=1), jnp.logaddexp.reduce(x, axis=1), jnp.nanmax(x), jnp.count_nonzero(x > 0, axis=0)),
        lax.reduce(x, 1.5, lax.add, (0,)),
        lax.reduce((x, x), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,)),
        *(x.astype(jnp.int32).sum(0), jnp.bitwise_xor.reduce(x.astype(jnp.int32), axis=0), jnp.ptp(x)),
    )


@case(floats(4, 9))
def running(x):
    return (
        *(
            jnp.cumsum(x, 1),
            jnp.cumprod(x, 0),
            lax.cummax(x, 1),
            lax.cummin(x, 1, reverse=True),
            lax.cumsum(x, 1, True),
        ),
        *(lax.cumlogsumexp(x, 1), lax.associative_scan(jnp.add, x, axis=1), jnp.diff(x), jnp.cumsum(x > 0, 0)),
    )


# ---- convolutions and pools


@case(floats(2, 4, 8, 7), floats(6, 4, 3, 2, seed=1), floats(6, 2, 3, 3, seed=2))
def convolutions(x, w, grouped):
    run = lax.conv_general_dilated
    return (
        *(run(x, w, (1, 1), "SAME"), run(x, w, (2, 1), ((1, 0), (0, 2)), rhs_dilation=(1, 2))),
        run(x, w, (1, 1), ((2, 2), (1, 1)), lhs_dilation=(2, 3)),
        run(x, grouped, (1, 2), "VALID", feature_group_count=2),
        lax.conv_general_dilated(
            x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        lax.conv_transpose(x[0], floats(3, 7, 5, seed=4), (2,), "SAME", dimension_numbers=("NHC", "HIO", "NHC")),
    )


@case(floats(2, 4, 6, 5), floats(6, 2, 3, 3, seed=2))
def convolution_gradients(x, w):
    def loss(x, w):
        return jnp.sum(lax.conv_general_dilated(x, w, (2, 1), "SAME", feature_group_count=2) ** 2)

    return jax.grad(loss, (0, 1))(x, w)


@case(floats(2, 3, 8, 6))
def pools(x):
    window = ((1, 1, 3, 2), (1, 1, 2, 2))
    return (
        lax.reduce_window(x, -jnp.inf, lax.max, *window, "SAME"),
        lax.reduce_window(x, 0.0, lax.add, *window, "VALID"),
        lax.reduce_window(x, jnp.inf, lax.min, (1, 1, 2, 2), (1, 1, 1, 1), "VALID", window_dilation=(1, 1, 2, 1)),
        lax.reduce_window(x, 1.0, lax.mul, (1, 1, 2, 5), (1, 1, 1, 1), "SAME", base_dilation=(1, 1, 1, 2)),
    )


@case(floats(2, 3, 8, 6))
def pool_gradients(x):
    def largest(x):
        return jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 2), (1, 1, 2, 2), "SAME") ** 2)

    def mean(x):
        return jnp.sum(lax.reduce_window(x, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") ** 3)

    return jax.grad(largest)(x), jax.grad(mean)(x), jax.jvp(largest, (x,), (x * 2,))


# ---- matrices and transforms


@case(POSITIVE, floats(5, 2))
def solves(a, b):
    factor = jnp.linalg.cholesky(a)
    solve = jax.scipy.linalg.solve_triangular
    return (
        *(factor, jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a), jnp.linalg.slogdet(a)[1]),
        *(
            solve(factor, b, lower=True),
            solve(factor, b, lower=True, trans=1),
            jax.scipy.linalg.cho_solve((factor, True), b),
        ),
        *(jax.scipy.linalg.lu(a + jnp.eye(5)[::-1]), jnp.linalg.matrix_power(a, 3)),
    )


@case(POSITIVE, floats(6, 4, seed=5))
def decompositions(a, b):
    """Return results that do not depend on the signs of vectors."""
    values, vectors = jnp.linalg.eigh(a)
    u, s, vh = jnp.linalg.svd(b, full_matrices=False)
    q, r = jnp.linalg.qr(b)
    products = vectors @ jnp.diag(values) @ vectors.T, (u * s) @ vh, q @ r, jnp.abs(r)
    return values, s, *products, jnp.linalg.pinv(b), jnp.linalg.matrix_rank(b), jnp.linalg.lstsq(b, b[:, 0])[0]


@case(POSITIVE, floats(5))
def matrix_gradients(a, b):
    return (
        jax.grad(lambda a: jnp.linalg.slogdet(a)[1])(a),
        jax.grad(lambda a: jnp.sum(jnp.linalg.cholesky(a)))(a),
        jax.grad(lambda a: jnp.sum(jnp.linalg.solve(a, b) ** 2))(a),
        jax.grad(lambda a: jnp.sum(jnp.linalg.eigvalsh(a) ** 3))(a),
    )


@case(floats(3, 4, 4), floats(3, 4, seed=1))
def batched_matrices(a, b):
    positive = a @ a.transpose(0, 2, 1) + jnp.eye(4)
    return (
        jnp.linalg.cholesky(positive),
        jnp.linalg.solve(positive, b[..., None]),
        jnp.linalg.det(a),
        jnp.linalg.eigvalsh(positive),
    )


@case(floats(4, 12))
def fourier(x):
    f = jnp.fft
    z = f.fft(x)
    return (
        z,
        f.ifft(z),
        f.rfft(x),
        f.irfft(z[:, :7]),
        f.fft2(x),
        f.fftshift(x),
        f.rfft2(x),
        f.fft(x, 9),
        jnp.convolve(x[0], x[1]),
    )
