"""Random numbers of the usual distributions, made from counter-based random bits by ops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, float32, float64, int64
from graphc.base.errors import ArgumentError, DTypeError
from graphc.ops import dispatch, exact, shape
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops.random import random_bits
from graphc.ops.random import uniform as uniform_24
from graphc.tensors.generator import default_generator
from graphc.tensors.placement import beside
from graphc.tensors.repeated import compiled_for_all_numbers, compiled_when_repeated

_LOW = 0xFFFFFFFF
Sizes = tuple[int, ...]


def _state(generator: Any, near: Any) -> tuple[Any, int]:
    """What a generator gives for one draw, on the device of the tensor ``near``, where there is one."""
    state, stream = (generator or default_generator).draw()
    return (state if near is None else beside(state, near)), stream


def _drawn(function: Any, sizes: Sizes, generator: Any, near: Any) -> Any:
    """What a function of state, shape and stream gives for one draw; eagerly by one program for all sizes."""
    state, stream = _state(generator, near)
    if dispatch.active() is not None or state._data.__class__ is not np.ndarray:
        return function(state, sizes, stream)
    stream &= _LOW
    result = _FLAT[function](state, math.prod(sizes), stream >> 16, stream & 0xFFFF)
    result._data = result._data.reshape(sizes)
    return result


def _draw(sizes: Sizes, generator: Any, near: Any = None) -> Any:
    """32 random bits per element, i32."""
    return _drawn(_bits, sizes, generator, near)


def _bits(state: Any, sizes: Sizes, stream: int) -> Any:
    return random_bits(state, shape=sizes, stream=stream)


def _narrow(state: Any, sizes: Sizes, stream: int) -> Any:
    return uniform_24(state, sizes, stream, float32)


def _normal(state: Any, sizes: Sizes, stream: int) -> Any:
    return _box_muller(uniform_24(state, (2, *sizes), stream, float32))


def _flat(function: Any) -> Any:
    """The function of a number of elements, and of a stream in two halves, that gives them in a row."""

    def of_numbers(state: Any, count: int, high: int, low: int) -> Any:
        return function(state, (count,), high * 0x10000 + low)

    return compiled_for_all_numbers(1 << 30, 0xFFFF, 0xFFFF)(of_numbers)


_FLAT = {function: _flat(function) for function in (_bits, _narrow, _normal)}


def uniform(sizes: Sizes, dtype: DType = float32, generator: Any = None, near: Any = None) -> Any:
    """Uniform in [0, 1): multiples of 2**-24 in f32, of 2**-53 in f64. Drawn on the device of the tensor ``near``; the
    numbers are the same on all."""
    if dtype.kind != "f":
        raise DTypeError(f"random numbers of a distribution are floating point, not {dtype.name}")
    if dtype is float32:
        return _drawn(_narrow, sizes, generator, near)
    bits = ew.bit_and(ew.cast(_draw((2, *sizes), generator, near), dtype=int64), _LOW)
    high, low = (_part(bits, i) for i in (0, 1))
    whole = ew.add(ew.shift_left(ew.shift_right(high, 5), 26), ew.shift_right(low, 6))
    return ew.mul(ew.cast(whole, dtype=float64), 2.0**-53)


def _part(pair: Any, i: int) -> Any:
    rest = pair.shape[1:]
    zeros = (0,) * len(rest)
    picked = shape.slice(pair, starts=(i, *zeros), stops=(i + 1, *rest), steps=(1,) * len(pair.shape))
    return shape.reshape(picked, shape=rest)


def normal(sizes: Sizes, dtype: DType = float32, generator: Any = None) -> Any:
    """Normal with mean 0 and deviation 1, by the transform of Box and Muller (1958), of the same bits everywhere."""
    if dtype is float32:
        return _drawn(_normal, sizes, generator, None)
    return _box_muller(uniform((2, *sizes), dtype, generator))


def _box_muller(pair: Any) -> Any:
    radius = mathematics.sqrt(ew.mul(exact.exact_log(ew.sub(1.0, _part(pair, 0))), -2.0))
    return ew.mul(radius, exact.exact_cosine(_part(pair, 1)))


def exponential(sizes: Sizes, dtype: DType = float32, generator: Any = None, near: Any = None) -> Any:
    """Exponentially distributed with rate 1."""
    return ew.neg(exact.exact_log(ew.sub(1.0, uniform(sizes, dtype, generator, near))))


def gumbel(sizes: Sizes, dtype: DType = float32, generator: Any = None, near: Any = None) -> Any:
    """Of the standard Gumbel distribution: minus the logarithm of an exponential variable, of which the smallest
    positive one is far above the limit that keeps the result finite."""
    return ew.neg(exact.exact_log(ew.maximum(exponential(sizes, dtype, generator, near), 1e-20)))


def cauchy(sizes: Sizes, dtype: DType = float32, generator: Any = None) -> Any:
    """Of the standard Cauchy distribution: minus the cotangent of half a turn times a uniform number."""
    half = ew.mul(ew.maximum(uniform(sizes, dtype, generator), 2.0**-25 if dtype is float32 else 2.0**-54), 0.5)
    return ew.neg(ew.div(exact.exact_cosine(half), exact.exact_sine(half)))


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
        return _within(_draw(sizes, generator), span, low)
    wide = ew.cast(_draw((2, *sizes), generator), dtype=int64)
    bits = ew.bit_xor(ew.shift_left(ew.bit_and(_part(wide, 0), (1 << 31) - 1), 32), ew.bit_and(_part(wide, 1), _LOW))
    return ew.add(ew.mod(bits, span), low)


@compiled_when_repeated
def _within(bits: Any, span: int, low: int) -> Any:
    return ew.add(ew.mod(ew.bit_and(ew.cast(bits, dtype=int64), _LOW), span), low)
