"""The import path of PyTorch for libraries that compute: which there are (none besides graphc), and their switches.

A switch may be set, since what it asks for is there: a ``benchmark`` is a choice that graphc makes when it compiles,
results are ``deterministic`` anyway, and ``allow_tf32`` allows less than f32, which is not made use of.
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


def _made(name: str, switches: dict[str, Any] | None = None, **parts: Any) -> Switches:
    path = f"{__name__}.{name}"
    parts = {"is_available": _absent} | parts
    return sys.modules.setdefault(path, Switches(path, f"Switches of {name}.", switches or {}, **parts))  # type: ignore[return-value]


cudnn = _made(
    "cudnn",
    {"enabled": True, "benchmark": False, "benchmark_limit": 10, "deterministic": False, "allow_tf32": True},
    version=_no_version,
)
_REDUCED = {f"allow_{kind}_reduced_precision_reduction": True for kind in ("fp16", "bf16")}
_ATTENTION = {f"{kind}_sdp": True for kind in ("flash", "mem_efficient", "math", "cudnn")}
_attention = _made("cuda.attention", _ATTENTION)


def _enabled(name: str) -> dict[str, Any]:
    """``enable_x(bool)`` and ``x_enabled()`` of a way to compute attention."""
    return {
        f"enable_{name}": lambda enabled: setattr(_attention, name, bool(enabled)),
        f"{name}_enabled": lambda: getattr(_attention, name),
    }


cuda = _made(
    "cuda",
    matmul=_made("cuda.matmul", {"allow_tf32": False, **_REDUCED}),
    is_built=devices.is_available,
    is_available=devices.is_available,
    **{name: function for kind in _ATTENTION for name, function in _enabled(kind).items()},
)
mps = _made("mps", is_built=_absent)
mkl = _made("mkl")
mkldnn = _made("mkldnn", {"enabled": True, "deterministic": False, "allow_tf32": True})
openmp = _made("openmp")
opt_einsum = _made("opt_einsum", {"enabled": True, "strategy": "auto"})
