"""Random numbers of the usual distributions, made from counter-based random bits by ops."""

from __future__ import annotations

import math
from functools import wraps
from typing import Any

from graphc.base.dtypes import DType, bfloat16, float32, float64, int32, int64
from graphc.base.errors import ArgumentError, DTypeError
from graphc.ops import dispatch, exact, reduce, shape
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops.complex import complex
from graphc.ops.index import iota
from graphc.ops.random import random_bits
from graphc.ops.random import uniform as uniform_24
from graphc.ops.state import stop_gradient
from graphc.tensors.generator import default_generator
from graphc.tensors.native_draws import Given, drawn_natively, with_stream
from graphc.tensors.placement import beside, is_on_device
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.share import current

_LOW = 0xFFFFFFFF
Sizes = tuple[int, ...]


def _state(generator: Any, near: Any) -> tuple[Any, int]:
    """What a generator gives for one draw, on the device of the tensor ``near``, where there is one."""
    state, stream = (generator or default_generator).draw()
    return (state if near is None else beside(state, near)), stream


@drawn_natively
def _bits(sizes: Sizes, dtype: DType = int32, generator: Any = None, near: Any = None) -> Any:
    """32 random bits per element."""
    state, stream = _state(generator, near)
    return random_bits(state, shape=sizes, stream=stream)


def _rounded(draw: Any) -> Any:
    """Numbers of narrow types are drawn as f32 and rounded."""

    @wraps(draw)
    def drawn(sizes: Sizes, dtype: DType = float32, *args: Any, **kwargs: Any) -> Any:
        if dtype.kind != "h":
            return draw(sizes, dtype, *args, **kwargs)
        return ew.cast(draw(sizes, float32, *args, **kwargs), dtype=dtype)

    return drawn


@drawn_natively
def uniform(sizes: Sizes, dtype: DType = float32, generator: Any = None, near: Any = None) -> Any:
    """Uniform in [0, 1): multiples of 2**-24 in f32, of 2**-53 in f64, of 2**-11 in f16, of 2**-8 in
    bf16. Drawn on the device of the tensor ``near``; the
    numbers are the same on all."""
    if dtype.is_complex:
        both = uniform((2, *sizes), dtype.real, generator, near)
        return complex(*(_part(both, i) for i in (0, 1)))
    if not dtype.is_floating_point:
        raise DTypeError(f"random numbers of a distribution are floating point, not {dtype.name}")
    if dtype.kind == "h":
        steps = 2.0**8 if dtype is bfloat16 else 2.0**11
        drawn = mathematics.floor(ew.mul(uniform(sizes, float32, generator, near), steps))
        return ew.cast(ew.mul(drawn, 1 / steps), dtype=dtype)
    if dtype is not float64:
        state, stream = _state(generator, near)
        return uniform_24(state, sizes, stream, dtype)
    bits = ew.bit_and(ew.cast(_bits((2, *sizes), int32, generator, near), dtype=int64), _LOW)
    high, low = (_part(bits, i) for i in (0, 1))
    whole = ew.add(ew.shift_left(ew.shift_right(high, 5), 26), ew.shift_right(low, 6))
    return ew.mul(ew.cast(whole, dtype=float64), 2.0**-53)


def uniform_of_rows(sizes: Sizes, near: Any) -> Any:
    """Uniform f32 numbers for a batch whose rows are the first dimension, as for dropout: where the process has a share
    of the rows of a whole batch, those that these rows have there."""
    share = current()
    if share is None or not sizes:
        return uniform(sizes, float32, None, near)
    state, stream = _state(None, near)
    if dispatch.active() is None and not is_on_device(state._data):
        state, stream = with_stream(state, stream), 0
    return _of_share(state, stream, sizes, *share)


@compiled_when_repeated
def _of_share(state: Any, stream: int, sizes: Sizes, rank: int, size: int) -> Any:
    """Numbers for rows ``rank``, ``rank + size`` and so on of a batch of ``size`` times as many. Programs compute no
    others."""
    whole = uniform((sizes[0], size, *sizes[1:]), float32, Given(state, stream))
    zeros = (0,) * len(sizes[1:])
    starts, stops = (0, rank, *zeros), (sizes[0], rank + 1, *sizes[1:])
    return shape.reshape(shape.slice(whole, starts=starts, stops=stops, steps=(1,) * len(starts)), shape=sizes)


def _part(pair: Any, i: int) -> Any:
    rest = pair.shape[1:]
    zeros = (0,) * len(rest)
    picked = shape.slice(pair, starts=(i, *zeros), stops=(i + 1, *rest), steps=(1,) * len(pair.shape))
    return shape.reshape(picked, shape=rest)


@_rounded
@drawn_natively
def normal(sizes: Sizes, dtype: DType = float32, generator: Any = None, near: Any = None) -> Any:
    """Normal with mean 0 and deviation 1, by the transform of Box and Muller (1958), of the same bits everywhere."""
    if dtype.is_complex:  # of deviation 1 as a whole
        both = ew.mul(normal((2, *sizes), dtype.real, generator, near), math.sqrt(0.5))
        return complex(*(_part(both, i) for i in (0, 1)))
    pair = uniform((2, *sizes), dtype, generator, near)
    radius = mathematics.sqrt(ew.mul(exact.exact_log(ew.sub(1.0, _part(pair, 0))), -2.0))
    return ew.mul(radius, exact.exact_cosine(_part(pair, 1)))


@_rounded
@drawn_natively
def exponential(sizes: Sizes, dtype: DType = float32, generator: Any = None, near: Any = None) -> Any:
    """Exponentially distributed with rate 1."""
    return ew.neg(exact.exact_log(ew.sub(1.0, uniform(sizes, dtype, generator, near))))


@_rounded
@drawn_natively
def gumbel(sizes: Sizes, dtype: DType = float32, generator: Any = None, near: Any = None) -> Any:
    """Of the standard Gumbel distribution: minus the logarithm of an exponential variable, of which the smallest
    positive one is far above the limit that keeps the result finite."""
    return ew.neg(exact.exact_log(ew.maximum(exponential(sizes, dtype, generator, near), 1e-20)))


@_rounded
def cauchy(sizes: Sizes, dtype: DType = float32, generator: Any = None) -> Any:
    """Of the standard Cauchy distribution: minus the cotangent of half a turn times a uniform number."""
    half = ew.mul(ew.maximum(uniform(sizes, dtype, generator), 2.0**-25 if dtype is float32 else 2.0**-54), 0.5)
    return ew.neg(ew.div(exact.exact_cosine(half), exact.exact_sine(half)))


_TRIES = {float32: 6, float64: 12}
"""Proposals for each gamma variate. One is refused with a probability of 0.05 at most (at a concentration of 1), all of
them with less than the step of uniform numbers, 2**-24 and 2**-53; then the last one stands."""
_THIRD = 1 / 3
_POSITIVE = 1e-30
"""Proposals below it are refused; the logarithm is that of a normal number."""


def log_gamma(concentration: Any, sizes: Sizes, generator: Any = None) -> Any:
    """The logarithm of gamma variates of a concentration that broadcasts to ``sizes``, and of scale 1 (Marsaglia and
    Tsang, A Simple Method for Generating Gamma Variables, 2000, with a fixed number of proposals). Of a concentration
    below 1 they are those of one more, times a power of a uniform number. No gradient flows through them."""
    a = stop_gradient(concentration)
    low, tries = ew.lt(a, 1.0), _TRIES[a.dtype]
    d = ew.sub(ew.where(low, ew.add(a, 1.0), a), _THIRD)
    x = normal((tries, *sizes), a.dtype, generator)
    root = ew.add(1.0, ew.div(x, mathematics.sqrt(ew.mul(d, 9.0))))
    cube = ew.mul(ew.mul(root, root), root)
    valid = ew.gt(cube, _POSITIVE)
    cube = ew.where(valid, cube, 1.0)
    log = exact.exact_log(cube)
    chance = exact.exact_log(ew.sub(1.0, uniform((tries, *sizes), a.dtype, generator)))
    bound = ew.add(ew.mul(ew.mul(x, x), 0.5), ew.mul(d, ew.add(ew.sub(1.0, cube), log)))
    taken = ew.logical_and(valid, ew.lt(chance, bound))
    number = iota(shape=(tries, *sizes), axis=0)
    first = reduce.min(ew.where(taken, number, tries - 1), axes=(0,), keepdims=True)
    found = reduce.sum(ew.where(ew.eq(number, first), log, 0.0), axes=(0,), keepdims=False)
    power = ew.div(exact.exact_log(ew.sub(1.0, uniform(sizes, a.dtype, generator))), a)
    return ew.add(ew.add(found, exact.exact_log(d)), ew.where(low, power, 0.0))


def bernoulli(p: Any, sizes: Sizes, generator: Any = None) -> Any:
    """True with probability ``p`` (a number, or a tensor that broadcasts to ``sizes``)."""
    if isinstance(p, (int, float)) and not 0 <= p <= 1:
        raise ArgumentError(f"a probability lies between 0 and 1, got {p}")
    return ew.lt(uniform(sizes, float32, generator, None if isinstance(p, (int, float)) else p), p)


def integers(low: int, high: int, sizes: Sizes, generator: Any = None) -> Any:
    """i64 from ``low`` up to, not including, ``high``."""
    span = high - low
    if span <= 0:
        raise ArgumentError(f"random integers need low < high, got {low} and {high}")
    if span <= 1 << 31:
        return _within(_bits(sizes, int32, generator), span, low)
    wide = ew.cast(_bits((2, *sizes), int32, generator), dtype=int64)
    bits = ew.bit_xor(ew.shift_left(ew.bit_and(_part(wide, 0), (1 << 31) - 1), 32), ew.bit_and(_part(wide, 1), _LOW))
    return ew.add(ew.mod(bits, span), low)


@compiled_when_repeated
def _within(bits: Any, span: int, low: int) -> Any:
    return ew.add(ew.mod(ew.bit_and(ew.cast(bits, dtype=int64), _LOW), span), low)
