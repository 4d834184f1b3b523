"""Arguments of ``torch.compile``: taken where they ask for what ``graphc.compile`` does or has an option for.

There is one back end, which makes one native program of the whole function, as fast as it can: so ``fullgraph``,
``mode`` and ``backend`` have nothing to choose. ``dynamic`` and the option ``freezing`` are ``dims="auto"`` and
``freeze``; ``disable`` gives the model as it is.
"""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ArgumentError

_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_BACKENDS = (None, "graphc", "inductor", "cudagraphs")
"""Back ends that compile whatever they are given; graphc is the one that does it here."""
_TUNING = ("coordinate_descent_tuning", "epilogue_fusion", "max_autotune", "shape_padding", "triton.cudagraphs")
"""Options that choose what graphc measures or estimates by itself."""
_EAGER = ("eager", "aot_eager", "aot_eager_decomp_partition")


def without_torch_arguments(freeze: bool, dims: Any, given: dict[str, Any]) -> tuple[bool, Any, bool]:
    """``freeze`` and ``dims`` as these arguments want them, and whether nothing is to be compiled. Raises ArgumentError
    for arguments that ask for something else."""
    unknown = given.keys() - {"fullgraph", "dynamic", "backend", "mode", "options", "disable"}
    if unknown:
        raise ArgumentError(f"compile has no argument {min(unknown)!r}", remedy="help(graphc.compile)")
    if given.get("mode") not in _MODES:
        raise ArgumentError(f"compile: there is no mode {given['mode']!r}", remedy=", ".join(map(repr, _MODES[1:])))
    _check_backend(given.get("backend"))
    if given.get("dynamic") and dims is None:
        dims = "auto"
    return freeze or _freezes(given.get("options") or {}), dims, bool(given.get("disable"))


def _check_backend(backend: Any) -> None:
    if isinstance(backend, str) and backend in _EAGER:
        raise ArgumentError(
            f"compile: backend {backend!r} does not compile", remedy="disable=True, or the model itself"
        )
    if backend not in _BACKENDS:
        raise ArgumentError(f"compile: there is no backend {backend!r}", remedy="no backend=: graphc is the only one")


def _freezes(options: dict[str, Any]) -> bool:
    """Whether options ask for constant weights."""
    for name in options:
        if name != "freezing" and name not in _TUNING:
            raise ArgumentError(
                f"compile: there is no option {name!r}", remedy="freezing; or an argument, see help(graphc.compile)"
            )
    return bool(options.get("freezing"))


def list_backends(exclude_tags: Any = None) -> list[str]:
    """The back ends of ``compile``: there is one."""
    return ["graphc"]


def reset() -> None:
    """Does nothing: compiled functions hold what they have compiled, and let it go with themselves."""


def cudagraph_mark_step_begin() -> None:
    """Does nothing: results of a call are never overwritten by the next one."""
