"""``autocast``: round the f32 operands of products to f16 or bf16."""

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
    """Context manager or decorator that rounds f32 operands of products to f16 or bf16.

    Matrix products, convolutions, ``F.linear`` and attention round their operands, return ``dtype`` and sum in f32;
    losses convert f16 and bf16 to f32. The lists of operations are PyTorch's for the CPU, on every device. f64 is not
    rounded. Gradients have the types of their tensors. docs/precision.md compares it with other precisions.

    Args:
        device_type: ``"cpu"`` or ``"cuda"``.
        dtype: f16 or bf16 (default: bf16 for ``"cpu"``, f16 for ``"cuda"``). Any other type warns and has no effect.
        enabled: False disables an autocast around this one.
        cache_enabled: accepted without effect; compiled code rounds a weight once.

    Returns:
        The manager.

    Raises:
        ArgumentError: an unknown ``device_type``.

    Example:
        >>> import graphc as gc
        >>> with gc.autocast("cpu"):
        ...     y = gc.ones(2, 3) @ gc.ones(3, 2)
        >>> y.dtype
        graphc.bfloat16
    """

    def __init__(
        self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ):
        self.device = _device_kind(device_type)
        self.fast_dtype: DType = _DEFAULTS[self.device] if dtype is None else dtype_of(dtype)
        self.enabled = bool(enabled)
        if self.enabled and self.fast_dtype.kind != "h":
            warnings.warn(
                f"autocast: dtype {self.fast_dtype.name} is neither f16 nor bf16 and has no effect", stacklevel=2
            )
            self.enabled = False

    def clone(self) -> autocast:
        """Return a new manager with the same settings."""
        return type(self)(self.device, self.fast_dtype, self.enabled)

    def __enter__(self) -> autocast:  # type: ignore[override]
        USED[0] = True
        self._token = current.set(self.fast_dtype if self.enabled else None)
        mutation_epoch.note()
        return self

    def __exit__(self, *exception: object) -> None:
        current.reset(self._token)
        mutation_epoch.note()


def _device_kind(device_type: Any) -> str:
    kind = device_type.type if isinstance(device_type, device) else device_type
    if kind not in _DEFAULTS:
        raise ArgumentError(f"autocast: no device type {device_type!r}", remedy="use 'cpu' or 'cuda'")
    return kind


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return whether operands of products are rounded here; all device types share one setting."""
    return autocast_dtype() is not None


def get_autocast_dtype(device_type: str = "cpu") -> DType:
    """Return the type to which operands are rounded, or the default one if autocast is off."""
    return autocast_dtype() or _DEFAULTS[_device_kind(device_type)]


def is_autocast_available(device_type: str) -> bool:
    """Return whether the device type is known."""
    return device_type in _DEFAULTS
