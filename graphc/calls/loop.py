"""Native programs for eager training loops: updates of optimizers, and clipping of gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base import config
from graphc.base.dtypes import DType, float32, float64
from graphc.base.errors import GraphcError
from graphc.base.locks import Lock
from graphc.calls.function import Compiled
from graphc.calls.in_place import InPlace, Norm, addresses
from graphc.calls.program_store import ProgramStore
from graphc.calls.update import Update, is_plain
from graphc.nn.clip_grad import norm_of
from graphc.ops.pointwise import elementwise as ew
from graphc.tape.grad_mode import is_inference_mode_enabled
from graphc.tape.tangents import USED, levels
from graphc.tensors import composite
from graphc.tensors.native import use_native_loop
from graphc.tensors.tensor import Tensor

PROGRAM_LIMIT = 64
"""Limit on cached programs on gradients, for different shapes."""


class _Updates(ProgramStore[Update]):
    """The updates of one optimizer."""

    refused = False
    """Whether tracing the rule failed: then the optimizer runs eagerly from now on."""


class CompiledLoop:
    """Implementation of tensors.native.NativeLoop."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.programs: ProgramStore[Any] = ProgramStore(limit=PROGRAM_LIMIT)
        """Programs on gradients."""
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
        last = updates.last
        if last is not None and last.fits(optimizer, params):
            return last
        for update in updates.find(None):
            if update is not last and update.fits(optimizer, params):
                updates.use(update)
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
            updates.add(None, update)
            return update

    # ---- losses

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any | None:
        """Return the result of a pure function, as compiled code; None where that raises, as the function itself may
        then do.
        """
        compiled = self._functions.get(function)
        if compiled is None:
            compiled = self._functions[function] = Compiled(function)
            # NOTE: programs of losses follow the sizes of the model, so a warning does not help.
            compiled._recompile_count.silence()
        try:
            return compiled(*args, **kwargs)
        except GraphcError as error:
            self._log.info("%s goes through operations: %s", function.__name__, error)
            return None

    # ---- gradients

    def together(self, tensors: Sequence[Any]) -> _Group | None:
        """Return tensors of f32 and f64 as a group; None for tensors that no program can take."""
        pointers = None if _takes_tangents() else addresses(tensors)
        if pointers is None:
            return None
        types = [(t.dtype, t._data.shape) for t in tensors]
        return _Group(self, tensors, types, pointers) if _TYPES.issuperset([dtype for dtype, _ in types]) else None


def _takes_tangents() -> bool:
    return USED[0] and bool(levels.get())


_TYPES = frozenset((float32, float64))


class _Group:
    """Implementation of tensors.native.TensorGroup."""

    def __init__(self, loop: CompiledLoop, tensors: Sequence[Any], types: Sequence[Any], pointers: Sequence[int]):
        self._loop, self._tensors, self._types, self._pointers = loop, tensors, types, pointers

    def norm(self, norm_type: float) -> Any:
        """Return the norm of all elements together."""
        types = self._types

        def make() -> Norm:
            return Norm("total_norm", types, lambda values: norm_of(values, norm_type))

        program = self._loop.programs.find_or_make(("norm", float(norm_type), *types), make)
        return Tensor._wrap(program.run(self._tensors, self._pointers))

    def scale(self, factor: Any) -> None:
        """Multiply in place by a number."""
        self._change("scale", factor, float64 if factor.dtype == np.float64 else float32, ew.mul)

    def clamp(self, limit: float) -> None:
        """Clamp in place to ``-limit``..``limit``."""
        wide = any([dtype is float64 for dtype, _ in self._types])
        self._change("clamp", limit, float64 if wide else float32, _clamped)

    def _change(self, name: str, number: Any, dtype: DType, change: Callable[[Any, Any], Any]) -> None:
        types = self._types
        program = self._loop.programs.find_or_make((name, dtype, *types), lambda: InPlace(name, types, dtype, change))
        program.run(self._tensors, self._pointers, number)


def _clamped(x: Any, limit: Any) -> Any:
    return composite.clamp(x, ew.neg(limit), limit)


use_native_loop(CompiledLoop())
