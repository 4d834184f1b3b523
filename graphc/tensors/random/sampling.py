"""Random numbers of common distributions, computed by ops from counter-based random bits."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from functools import wraps
from math import prod
from typing import Any, TypeVar

import numpy as np

from graphc.base.dtypes import DType, bfloat16, float32, float64, int32, int64
from graphc.base.errors import ArgumentError, DTypeError
from graphc.base.lazy import deferred
from graphc.base.sizes.size import LARGEST
from graphc.ops import dispatch
from graphc.ops.effects.random import random_bits
from graphc.ops.effects.random import uniform as uniform_24
from graphc.ops.effects.state import stop_gradient
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import exact
from graphc.ops.pointwise import math as mathematics
from graphc.ops.pointwise.complex import complex
from graphc.ops.reduction import reduce
from graphc.ops.selection.index import iota
from graphc.tensors.placement import beside, is_on_device
from graphc.tensors.random.generator import default_generator
from graphc.tensors.repeated import compiled_when_repeated, is_watched
from graphc.tensors.share import current
from graphc.tensors.tensor_base import front

ENOUGH = 1 << 18
"""Elements that numpy draws before a program is compiled: about the time to find it on disk (20 ms)."""
CALL = 1 << 13
"""Elements that numpy draws in the overhead of a call."""

_program = deferred("graphc.calls.repeated:sized_program")
_D = TypeVar("_D", bound=Callable[..., Any])


class ArgumentGenerator:
    """The generator of a program: its state is an argument."""

    def __init__(self, state: Any, stream: int = 0):
        self._state, self._stream = state, stream

    def draw(self) -> tuple[Any, int]:
        """Return the state and the stream; a third element of the state is an offset to the stream."""
        return self._state, self._stream


def with_stream(state: Any, stream: int) -> Any:
    """Return a generator's state with the stream as its third element, added to a present one."""
    seed, step, *more = front().values(state, "drawing").tolist()
    return front().constant(np.array((seed, step, stream + sum(more)), np.int64))


class _Draws:
    """The draws of one sampling function for one element type."""

    def __init__(self, function: Callable[..., Any], dtype: DType):
        def draw(state: Any, count: int) -> Any:
            return function((count,), dtype, ArgumentGenerator(state))

        self._function = draw
        self._spent = 0
        self._run: Callable[..., Any] | None = None

    def program(self, count: int) -> Callable[..., Any] | None:
        """Return a program that draws ``count`` elements; None until there is enough use for one."""
        if self._run is None:
            self._spent += CALL + count
            if self._spent >= ENOUGH:
                self._run = _program(self._function)
        return self._run


def drawn_natively(function: _D) -> _D:
    """Decorate a sampling function of sizes, element type, generator and a tensor ``near`` on the result's device: in
    eager mode, run it as a compiled program after some use. Not with GRAPHC_EAGER=reference."""
    draws_by_dtype: dict[DType, _Draws] = {}

    @functools.wraps(function)
    def drawn(sizes: Any, dtype: DType = float32, generator: Any = None, near: Any = None) -> Any:
        count = prod(sizes) if dispatch.active() is None and not is_watched() else 0
        if not 0 < count <= LARGEST or (near is not None and is_on_device(near._data)):
            as_one = getattr(dispatch.active(), "as_one", None)  # of a log, which shows a draw as one line
            if as_one is None:
                return function(sizes, dtype, generator, near)
            return as_one(function.__name__.lstrip("_"), lambda: function(sizes, dtype, generator, near))
        draws = draws_by_dtype.get(dtype)
        if draws is None:
            draws = draws_by_dtype[dtype] = _Draws(function, dtype)
        run = draws.program(count)
        if run is None:
            return function(sizes, dtype, generator, near)
        state, stream = (generator or default_generator).draw()
        values = run(with_stream(state, stream), count)
        return front().constant(values._data.reshape(sizes))

    return drawn  # type: ignore[return-value]


_LOW = 0xFFFFFFFF
Sizes = tuple[int, ...]


def _state(generator: Any, near: Any) -> tuple[Any, int]:
    """Return a generator's state and stream for one draw, on the device of the tensor ``near`` if there is one."""
    state, stream = (generator or default_generator).draw()
    return (state if near is None else beside(state, near)), stream


@drawn_natively
def _bits(sizes: Sizes, dtype: DType = int32, generator: Any = None, near: Any = None) -> Any:
    """Draw 32 random bits per element."""
    state, stream = _state(generator, near)
    return random_bits(state, shape=sizes, stream=stream)


def _rounded(draw: Any) -> Any:
    """Draw numbers of narrow types as f32 and round them."""

    @wraps(draw)
    def drawn(sizes: Sizes, dtype: DType = float32, *args: Any, **kwargs: Any) -> Any:
        if dtype.kind != "h":
            return draw(sizes, dtype, *args, **kwargs)
        return ew.cast(draw(sizes, float32, *args, **kwargs), dtype=dtype)

    return drawn


@drawn_natively
def uniform(sizes: Sizes, dtype: DType = float32, generator: Any = None, near: Any = None) -> Any:
    """Draw uniform numbers in [0, 1): multiples of 2**-24 in f32, of 2**-53 in f64, of 2**-11 in f16, of 2**-8 in bf16.
    They are drawn on the device of the tensor ``near``, and are the same on all devices."""
    if dtype.is_complex:
        both = uniform((2, *sizes), dtype.real, generator, near)
        return complex(*(_half(both, i) for i in (0, 1)))
    if not dtype.is_floating_point:
        raise DTypeError(f"random numbers of a distribution must be floating point, not {dtype.name}")
    if dtype.kind == "h":
        steps = 2.0**8 if dtype is bfloat16 else 2.0**11
        drawn = mathematics.floor(ew.mul(uniform(sizes, float32, generator, near), steps))
        return ew.cast(ew.mul(drawn, 1 / steps), dtype=dtype)
    if dtype is not float64:
        state, stream = _state(generator, near)
        return uniform_24(state, sizes, stream, dtype)
    bits = ew.bit_and(ew.cast(_bits((2, *sizes), int32, generator, near), dtype=int64), _LOW)
    high, low = (_half(bits, i) for i in (0, 1))
    integer = ew.add(ew.shift_left(ew.shift_right(high, 5), 26), ew.shift_right(low, 6))
    return ew.mul(ew.cast(integer, dtype=float64), 2.0**-53)


def uniform_of_rows(sizes: Sizes, near: Any) -> Any:
    """Draw uniform f32 numbers for a batch whose rows are the first dimension, as in dropout. If the process has a
    share of a global batch, each row gets the numbers of its global position."""
    share = current()
    if share is None or not sizes:
        return uniform(sizes, float32, None, near)
    state, stream = _state(None, near)
    if dispatch.active() is None and not is_on_device(state._data):
        state, stream = with_stream(state, stream), 0
    return _of_share(state, stream, sizes, *share)


@compiled_when_repeated
def _of_share(state: Any, stream: int, sizes: Sizes, rank: int, size: int) -> Any:
    """Draw the numbers for rows ``rank``, ``rank + size`` and so on of a batch ``size`` times as large; programs
    compute only these."""
    all_rows = uniform((sizes[0], size, *sizes[1:]), float32, ArgumentGenerator(state, stream))
    zeros = (0,) * len(sizes[1:])
    starts, stops = (0, rank, *zeros), (sizes[0], rank + 1, *sizes[1:])
    return shape.reshape(shape.slice(all_rows, starts=starts, stops=stops, steps=(1,) * len(starts)), shape=sizes)


def _half(pair: Any, i: int) -> Any:
    rest = pair.shape[1:]
    zeros = (0,) * len(rest)
    picked = shape.slice(pair, starts=(i, *zeros), stops=(i + 1, *rest), steps=(1,) * len(pair.shape))
    return shape.reshape(picked, shape=rest)


@_rounded
@drawn_natively
def normal(sizes: Sizes, dtype: DType = float32, generator: Any = None, near: Any = None) -> Any:
    """Draw normal numbers with mean 0 and deviation 1 by the Box-Muller transform (1958), bit for bit equal
    everywhere."""
    if dtype.is_complex:  # real and imaginary part together have deviation 1
        both = ew.mul(normal((2, *sizes), dtype.real, generator, near), math.sqrt(0.5))
        return complex(*(_half(both, i) for i in (0, 1)))
    pair = uniform((2, *sizes), dtype, generator, near)
    radius = mathematics.sqrt(ew.mul(exact.exact_log(ew.sub(1.0, _half(pair, 0))), -2.0))
    return ew.mul(radius, exact.exact_cosine(_half(pair, 1)))


@_rounded
@drawn_natively
def exponential(sizes: Sizes, dtype: DType = float32, generator: Any = None, near: Any = None) -> Any:
    """Draw exponentially distributed numbers of rate 1."""
    return ew.neg(exact.exact_log(ew.sub(1.0, uniform(sizes, dtype, generator, near))))


@_rounded
@drawn_natively
def gumbel(sizes: Sizes, dtype: DType = float32, generator: Any = None, near: Any = None) -> Any:
    """Draw from the standard Gumbel distribution: minus the logarithm of an exponential variable. Its smallest positive
    value is far above the clamp that keeps the result finite."""
    return ew.neg(exact.exact_log(ew.maximum(exponential(sizes, dtype, generator, near), 1e-20)))


@_rounded
def cauchy(sizes: Sizes, dtype: DType = float32, generator: Any = None) -> Any:
    """Draw from the standard Cauchy distribution: minus the cotangent of half a turn times a uniform number."""
    half = ew.mul(ew.maximum(uniform(sizes, dtype, generator), 2.0**-25 if dtype is float32 else 2.0**-54), 0.5)
    return ew.neg(ew.div(exact.exact_cosine(half), exact.exact_sine(half)))


_TRIES = {float32: 6, float64: 12}
"""Number of proposals for each gamma variate. One is refused with a probability of at most 0.05 (at a concentration of
1), all of them with less than the step of uniform numbers, 2**-24 and 2**-53; then the last one is used."""
_THIRD = 1 / 3
_POSITIVE = 1e-30
"""Proposals below it are refused, so that the logarithm is that of a normal number."""


def log_gamma(concentration: Any, sizes: Sizes, generator: Any = None) -> Any:
    """Draw the logarithm of gamma variates of scale 1 and a concentration that broadcasts to ``sizes``.

    Algorithm: Marsaglia and Tsang, A Simple Method for Generating Gamma Variables, 2000, with a fixed number of
    proposals. For a concentration below 1, draw with a concentration one larger and multiply by a power of a uniform
    number. Not differentiable.
    """
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
    accepted = ew.logical_and(valid, ew.lt(chance, bound))
    number = iota(shape=(tries, *sizes), axis=0)
    first = reduce.min(ew.where(accepted, number, tries - 1), axes=(0,), keepdims=True)
    log_cube = reduce.sum(ew.where(ew.eq(number, first), log, 0.0), axes=(0,), keepdims=False)
    power = ew.div(exact.exact_log(ew.sub(1.0, uniform(sizes, a.dtype, generator))), a)
    return ew.add(ew.add(log_cube, exact.exact_log(d)), ew.where(low, power, 0.0))


def bernoulli(p: Any, sizes: Sizes, generator: Any = None) -> Any:
    """Draw True with probability ``p`` (a number, or a tensor that broadcasts to ``sizes``)."""
    if isinstance(p, (int, float)) and not 0 <= p <= 1:
        raise ArgumentError(f"a probability must be between 0 and 1, got {p}")
    return ew.lt(uniform(sizes, float32, generator, None if isinstance(p, (int, float)) else p), p)


def integers(low: int, high: int, sizes: Sizes, generator: Any = None) -> Any:
    """Draw i64 numbers from ``low`` to ``high - 1``."""
    span = high - low
    if span <= 0:
        raise ArgumentError(f"random integers need low < high, got {low} and {high}")
    if span <= 1 << 31:
        return _within(_bits(sizes, int32, generator), span, low)
    wide = ew.cast(_bits((2, *sizes), int32, generator), dtype=int64)
    bits = ew.bit_xor(ew.shift_left(ew.bit_and(_half(wide, 0), (1 << 31) - 1), 32), ew.bit_and(_half(wide, 1), _LOW))
    return ew.add(ew.mod(bits, span), low)


@compiled_when_repeated
def _within(bits: Any, span: int, low: int) -> Any:
    return ew.add(ew.mod(ew.bit_and(ew.cast(bits, dtype=int64), _LOW), span), low)
