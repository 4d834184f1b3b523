"""PyTorch's import path for numerical libraries: which ones exist (none here), and their switches.

Switches may be set without effect: graphc makes the choice of ``benchmark`` at compile time, results are
``deterministic`` in any case, and ``allow_tf32`` would permit less than f32, which graphc does not use.
"""

from __future__ import annotations

import sys
from typing import Any

from graphc.base.switches import Switches
from graphc.runtime import devices

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


def _absent() -> bool:
    """False: graphc does not use it."""
    return False


def _no_version() -> None:
    """None: graphc does not use it."""


def _switches(name: str, switches: dict[str, Any] | None = None, **members: Any) -> Switches:
    path = f"{__name__}.{name}"
    members = {"is_available": _absent} | members
    return sys.modules.setdefault(path, Switches(path, f"Switches of {name}.", switches or {}, **members))  # type: ignore[return-value]


cudnn = _switches(
    "cudnn",
    {"enabled": True, "benchmark": False, "benchmark_limit": 10, "deterministic": False, "allow_tf32": True},
    version=_no_version,
)
_REDUCED = {f"allow_{kind}_reduced_precision_reduction": True for kind in ("fp16", "bf16")}
_ATTENTION = {f"{kind}_sdp": True for kind in ("flash", "mem_efficient", "math", "cudnn")}
_attention = _switches("cuda.attention", _ATTENTION)


def _enabled(name: str) -> dict[str, Any]:
    """``enable_x(bool)`` and ``x_enabled()`` of a way to compute attention."""
    return {
        f"enable_{name}": lambda enabled: setattr(_attention, name, bool(enabled)),
        f"{name}_enabled": lambda: getattr(_attention, name),
    }


cuda = _switches(
    "cuda",
    matmul=_switches("cuda.matmul", {"allow_tf32": False, **_REDUCED}),
    is_built=devices.is_available,
    is_available=devices.is_available,
    **{name: function for kind in _ATTENTION for name, function in _enabled(kind).items()},
)
mps = _switches("mps", is_built=_absent)
mkl = _switches("mkl")
mkldnn = _switches("mkldnn", {"enabled": True, "deterministic": False, "allow_tf32": True})
openmp = _switches("openmp")
opt_einsum = _switches("opt_einsum", {"enabled": True, "strategy": "auto"})
