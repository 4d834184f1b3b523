"""Arguments of ``torch.compile``, accepted where they request behaviour that ``graphc.compile`` has.

graphc has one back end, which compiles the complete function into one native program with full optimization. So
``fullgraph``, ``mode`` and ``backend`` select nothing. ``dynamic`` and the option ``freezing`` map to ``dims="auto"``
and ``freeze``; ``disable`` returns the model unchanged.
"""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ArgumentError

_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_BACKENDS = (None, "graphc", "inductor", "cudagraphs")
"""Back ends that compile any function; graphc takes their place."""
_TUNING = ("coordinate_descent_tuning", "epilogue_fusion", "max_autotune", "shape_padding", "triton.cudagraphs")
"""Options for choices that graphc measures or estimates by itself."""
_EAGER = ("eager", "aot_eager", "aot_eager_decomp_partition")


def without_torch_arguments(freeze: bool, dims: Any, options: dict[str, Any]) -> tuple[bool, Any, bool]:
    """Return ``freeze`` and ``dims`` adjusted to these arguments, and whether compilation is disabled.

    Raise ArgumentError for arguments that request something else.
    """
    unknown = options.keys() - {"fullgraph", "dynamic", "backend", "mode", "options", "disable"}
    if unknown:
        raise ArgumentError(f"compile has no argument {min(unknown)!r}", remedy="see help(graphc.compile)")
    if options.get("mode") not in _MODES:
        raise ArgumentError(
            f"compile: there is no mode {options['mode']!r}", remedy=f"use {', '.join(map(repr, _MODES[1:]))}"
        )
    _check_backend(options.get("backend"))
    if options.get("dynamic") and dims is None:
        dims = "auto"
    return freeze or _freezes(options.get("options") or {}), dims, bool(options.get("disable"))


def _check_backend(backend: Any) -> None:
    if isinstance(backend, str) and backend in _EAGER:
        raise ArgumentError(
            f"compile: backend {backend!r} does not compile", remedy="pass disable=True, or call the model itself"
        )
    if backend not in _BACKENDS:
        raise ArgumentError(f"compile: there is no backend {backend!r}", remedy="omit backend=: graphc is the only one")


def _freezes(options: dict[str, Any]) -> bool:
    """Return whether options request constant weights."""
    for name in options:
        if name != "freezing" and name not in _TUNING:
            raise ArgumentError(
                f"compile: there is no option {name!r}", remedy="use freezing, or an argument, see help(graphc.compile)"
            )
    return bool(options.get("freezing"))


def list_backends(exclude_tags: Any = None) -> list[str]:
    """Return the back ends of ``compile``: only graphc."""
    return ["graphc"]


def reset() -> None:
    """Do nothing: compiled functions own their programs and free them when deleted."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing: a call never overwrites results of the previous one."""
