"""``autocast``: inside, products of f32 tensors take factors in f16 or bf16."""

from __future__ import annotations

import warnings
from typing import Any

from graphc.base import mutation_epoch
from graphc.base.autocast_state import USED, autocast_dtype, current
from graphc.base.device import device
from graphc.base.dtypes import DType, bfloat16, dtype_of, float16
from graphc.base.errors import ArgumentError
from graphc.tape.grad_mode import _Mode

_DEFAULTS = {"cpu": bfloat16, "cuda": float16}


class autocast(_Mode):
    """Inside, or in a decorated function, matrix products, convolutions, ``F.linear`` and attention round f32 operands
    to ``dtype`` (f16 or bf16) first and give results of that type, sums being f32; losses take f16 and bf16 as f32 and
    give f32. All else follows from the types of its operands. The lists are those that PyTorch has for the CPU, on
    every device.

    ``dtype`` is bf16 for ``device_type="cpu"`` and f16 for ``"cuda"`` where it is not given. f64 stays f64. Gradients
    have the types of what they are gradients of. A ``dtype`` that is neither warns, as PyTorch's does, and changes
    nothing. ``cache_enabled`` is taken and asks for nothing: compiled code rounds a weight once.
    """

    def __init__(
        self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ):
        self.device = _known(device_type)
        self.fast_dtype: DType = _DEFAULTS[self.device] if dtype is None else dtype_of(dtype)
        self.enabled = bool(enabled)
        if self.enabled and self.fast_dtype.kind != "h":
            warnings.warn(f"autocast: factors of {self.fast_dtype.name} are none that are narrower", stacklevel=2)
            self.enabled = False

    def clone(self) -> autocast:
        """A fresh manager of the same setting."""
        return type(self)(self.device, self.fast_dtype, self.enabled)

    def __enter__(self) -> autocast:  # type: ignore[override]
        USED[0] = True
        self._token = current.set(self.fast_dtype if self.enabled else None)
        mutation_epoch.note()
        return self

    def __exit__(self, *exception: object) -> None:
        current.reset(self._token)
        mutation_epoch.note()


def _known(device_type: Any) -> str:
    kind = device_type.type if isinstance(device_type, device) else device_type
    if kind not in _DEFAULTS:
        raise ArgumentError(f"autocast: no device type {device_type!r}", remedy="'cpu' or 'cuda'")
    return kind


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether factors of products are rounded here; all device types have one setting."""
    return autocast_dtype() is not None


def get_autocast_dtype(device_type: str = "cpu") -> DType:
    """The type that factors become, or the one they would become where autocast is off."""
    return autocast_dtype() or _DEFAULTS[_known(device_type)]


def is_autocast_available(device_type: str) -> bool:
    """Whether there is such a device type."""
    return device_type in _DEFAULTS
