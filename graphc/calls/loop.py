"""What compiled code does for eager training loops: updates of optimizers, and limits on gradients, as native calls."""

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
from graphc.ops import elementwise as ew
from graphc.tape.grad_mode import is_inference_mode_enabled
from graphc.tape.tangents import USED, levels
from graphc.tensors import composite
from graphc.tensors.native import use_native_loop
from graphc.tensors.tensor import Tensor

UPDATES = 8
"""Updates of one optimizer that are kept, for different parameters with gradients and different settings."""
KEPT = 64
"""Programs on gradients that are kept, for different shapes."""

_T = TypeVar("_T")


class _Updates:
    """The updates of one optimizer, the one that was used last in front; None for one that cannot be a program."""

    def __init__(self) -> None:
        self.known: list[Update] = []
        self.refused = False
        """Whether its rule cannot be traced: then it runs as it is from now on."""


class _Silent:
    """In the place of what warns of many programs: those of a loss follow the sizes of the model's."""

    def note(self, key: Any, level: int) -> None:
        """Nothing to tell."""


class Loop:
    """See tensors.native.NativeLoop."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._programs: dict[Any, Any] = {}
        self._functions: dict[Any, Compiled] = {}
        self._log = config.logger("compile")

    # ---- optimizers

    def update(self, optimizer: Any, params: Sequence[Any]) -> bool:
        """One step of an optimizer for these parameters, whose gradients are known."""
        if not params or _takes_tangents() or is_inference_mode_enabled():
            return False
        updates = optimizer.updates
        if updates is None:
            updates = optimizer.updates = _Updates()
        found = self._known(updates, optimizer, params)
        if found is None and not updates.refused and all(map(is_plain, params)):
            found = self._made(updates, optimizer, params)
        return found is not None and found.run()

    def _known(self, updates: _Updates, optimizer: Any, params: Sequence[Any]) -> Update | None:
        known = updates.known
        if known and known[0].fits(optimizer, params):
            return known[0]
        for update in known[1:]:
            if update.fits(optimizer, params):
                updates.known = [update, *[other for other in known if other is not update]]
                return update
        return None

    def _made(self, updates: _Updates, optimizer: Any, params: Sequence[Any]) -> Update | None:
        with self._lock:
            try:
                made = Update(optimizer, params)
                if not made.fits(optimizer, params):
                    raise GraphcError(f"{type(optimizer).__name__}: its update changes what it depends on")
            # NOTE: a rule of a user may raise anything where it is given traced tensors; it runs as it is then.
            except Exception as error:
                if optimizer.native:
                    raise
                updates.refused = True
                self._log.info("%s.step() goes through operations: %s", type(optimizer).__name__, error)
                return None
            updates.known = [made, *updates.known[: UPDATES - 1]]
            return made

    # ---- losses

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any | None:
        """What a function without effects gives, as compiled code; None where that raises, as the function itself may
        then do."""
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
        """The norm of all elements together."""
        places = self._places(tensors)
        if places is None:
            return None

        types = _types(tensors)
        key = ("norm", float(norm_type), *types)
        program = self._program(key, lambda: Norm("total_norm", types, lambda given: norm_of(given, norm_type)))
        return Tensor._wrap(program.run(tensors, places))

    def scale(self, tensors: Sequence[Any], factor: Any) -> bool:
        """Multiplies tensors, in place, by a number of a known element type."""
        return self._change("scale", tensors, factor, float64 if factor.dtype == np.float64 else float32, ew.mul)

    def clamp(self, tensors: Sequence[Any], limit: float) -> bool:
        """Limits all elements, in place, to ``-limit``..``limit``."""
        wide = any([t.dtype is float64 for t in tensors])
        return self._change("clamp", tensors, limit, float64 if wide else float32, _clamped)

    def _change(
        self, name: str, tensors: Sequence[Any], number: Any, dtype: DType, change: Callable[[Any, Any], Any]
    ) -> bool:
        places = self._places(tensors)
        if places is None:
            return False
        types = _types(tensors)
        program = self._program((name, dtype, *types), lambda: InPlace(name, types, dtype, change))
        program.run(tensors, places, number)
        return True

    def _places(self, tensors: Sequence[Any]) -> list[int] | None:
        if (
            not tensors
            or _takes_tangents()
            or any([t.dtype is not float32 and t.dtype is not float64 for t in tensors])
        ):
            return None
        return addresses(tensors)

    def _program(self, key: Any, make: Callable[[], _T]) -> _T:
        found = self._programs.get(key)
        if found is None:
            with self._lock:
                found = self._programs.get(key) or make()
                if len(self._programs) >= KEPT:
                    self._programs.pop(next(iter(self._programs)))
                self._programs[key] = found
        return found


def _takes_tangents() -> bool:
    return USED[0] and bool(levels.get())


def _types(tensors: Sequence[Any]) -> list[tuple[DType, tuple[int, ...]]]:
    return [(t.dtype, t._data.shape) for t in tensors]


def _clamped(x: Any, limit: Any) -> Any:
    return composite.clamp(x, ew.neg(limit), limit)


use_native_loop(Loop())
