"""Random draws of eager mode as compiled programs for any number of elements, bit for bit equal to the ops."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

import numpy as np

from graphc.base.dtypes import DType, float32
from graphc.base.lazy import deferred
from graphc.base.sizes.size import LARGEST
from graphc.ops import dispatch
from graphc.tensors.placement import is_on_device
from graphc.tensors.random.generator import default_generator
from graphc.tensors.repeated import is_watched
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
            return function(sizes, dtype, generator, near)
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
