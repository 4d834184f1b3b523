"""Native programs for eager training loops: updates of optimizers, and clipping of gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from graphc.base import config
from graphc.base.dtypes import DType, float32, float64
from graphc.base.errors import GraphcError
from graphc.base.locks import Lock
from graphc.calls.function import Compiled
from graphc.calls.in_place import InPlace, Norm, addresses
from graphc.calls.update import Update, is_plain
from graphc.nn.clip_grad import norm_of
from graphc.ops.pointwise import elementwise as ew
from graphc.tape.grad_mode import is_inference_mode_enabled
from graphc.tape.tangents import USED, levels
from graphc.tensors import composite
from graphc.tensors.native import use_native_loop
from graphc.tensors.tensor import Tensor

UPDATES = 8
"""Limit on the cached updates of one optimizer, for different parameters with gradients and different settings."""
PROGRAM_LIMIT = 64
"""Limit on cached programs on gradients, for different shapes."""

_T = TypeVar("_T")


class _Updates:
    """The updates of one optimizer, most recently used first."""

    def __init__(self) -> None:
        self.cached: list[Update] = []
        self.refused = False
        """Whether tracing the rule failed: then the optimizer runs eagerly from now on."""


class _Silent:
    """Replaces RecompileCount for losses: their programs follow the sizes of the model, so a warning does not help."""

    def note(self, key: Any, level: int) -> None:
        """Ignore a new program."""


class CompiledLoop:
    """Implementation of tensors.native.NativeLoop."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._programs: dict[Any, Any] = {}
        self._functions: dict[Any, Compiled] = {}
        self._log = config.logger("compile")

    # ---- optimizers

    def update(self, optimizer: Any, params: Sequence[Any]) -> bool:
        """Run one step of an optimizer for these parameters with gradients. Return False where no program can."""
        if not params or _takes_tangents() or is_inference_mode_enabled():
            return False
        updates = optimizer.updates
        if updates is None:
            updates = optimizer.updates = _Updates()
        native_update = self._cached_update(updates, optimizer, params)
        if native_update is None and not updates.refused and all(map(is_plain, params)):
            native_update = self._new_update(updates, optimizer, params)
        return native_update is not None and native_update.run()

    def _cached_update(self, updates: _Updates, optimizer: Any, params: Sequence[Any]) -> Update | None:
        cached = updates.cached
        if cached and cached[0].fits(optimizer, params):
            return cached[0]
        for update in cached[1:]:
            if update.fits(optimizer, params):
                updates.cached = [update, *[other for other in cached if other is not update]]
                return update
        return None

    def _new_update(self, updates: _Updates, optimizer: Any, params: Sequence[Any]) -> Update | None:
        with self._lock:
            try:
                update = Update(optimizer, params)
                if not update.fits(optimizer, params):
                    raise GraphcError(f"{type(optimizer).__name__}: its update changes what it depends on")
            # NOTE: a user's rule may raise anything on traced tensors; then it runs eagerly.
            except Exception as error:
                if optimizer.native:
                    raise
                updates.refused = True
                self._log.info("%s.step() goes through operations: %s", type(optimizer).__name__, error)
                return None
            updates.cached = [update, *updates.cached[: UPDATES - 1]]
            return update

    # ---- losses

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any | None:
        """Return the result of a pure function, as compiled code; None where that raises, as the function itself may
        then do.
        """
        compiled = self._functions.get(function)
        if compiled is None:
            compiled = self._functions[function] = Compiled(function)
            compiled._count = _Silent()  # type: ignore[assignment]
        try:
            return compiled(*args, **kwargs)
        except GraphcError as error:
            self._log.info("%s goes through operations: %s", function.__name__, error)
            return None

    # ---- gradients

    def total_norm(self, tensors: Sequence[Any], norm_type: float) -> Any | None:
        """Return the norm of all elements together; None where no program can compute it."""
        pointers = self._pointers(tensors)
        if pointers is None:
            return None

        types = _types(tensors)
        key = ("norm", float(norm_type), *types)
        program = self._program(key, lambda: Norm("total_norm", types, lambda values: norm_of(values, norm_type)))
        return Tensor._wrap(program.run(tensors, pointers))

    def scale(self, tensors: Sequence[Any], factor: Any) -> bool:
        """Multiply tensors in place by a number. Return False where no program can."""
        return self._change("scale", tensors, factor, float64 if factor.dtype == np.float64 else float32, ew.mul)

    def clamp(self, tensors: Sequence[Any], limit: float) -> bool:
        """Clamp all elements in place to ``-limit``..``limit``. Return False where no program can."""
        wide = any([t.dtype is float64 for t in tensors])
        return self._change("clamp", tensors, limit, float64 if wide else float32, _clamped)

    def _change(
        self, name: str, tensors: Sequence[Any], number: Any, dtype: DType, change: Callable[[Any, Any], Any]
    ) -> bool:
        pointers = self._pointers(tensors)
        if pointers is None:
            return False
        types = _types(tensors)
        program = self._program((name, dtype, *types), lambda: InPlace(name, types, dtype, change))
        program.run(tensors, pointers, number)
        return True

    def _pointers(self, tensors: Sequence[Any]) -> list[int] | None:
        if (
            not tensors
            or _takes_tangents()
            or any([t.dtype is not float32 and t.dtype is not float64 for t in tensors])
        ):
            return None
        return addresses(tensors)

    def _program(self, key: Any, make: Callable[[], _T]) -> _T:
        program = self._programs.get(key)
        if program is None:
            with self._lock:
                program = self._programs.get(key) or make()
                if len(self._programs) >= PROGRAM_LIMIT:
                    self._programs.pop(next(iter(self._programs)))
                self._programs[key] = program
        return program


def _takes_tangents() -> bool:
    return USED[0] and bool(levels.get())


def _types(tensors: Sequence[Any]) -> list[tuple[DType, tuple[int, ...]]]:
    return [(t.dtype, t._data.shape) for t in tensors]


def _clamped(x: Any, limit: Any) -> Any:
    return composite.clamp(x, ew.neg(limit), limit)


use_native_loop(CompiledLoop())
