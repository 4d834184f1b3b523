"""Models whose calls run Python code around a program, such as lookups of texts and dictionaries of scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from graphc.base.errors import ArgumentError


class HostParts(Protocol):
    """A model in parts: Python code, a module of tensors, Python code."""

    program: Any
    """The module, which can be traced."""

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any], program: Callable[..., Any]) -> Any:
        """Return the results of a call of the model. ``program`` computes what the module computes."""
        ...

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return arguments of the module with the shapes of a call of the model, to trace the module."""
        ...

    def dims(self, dims: Any) -> Any:
        """Return the named dimensions of the module's arguments, from those of the model's."""
        ...

    def texts(self) -> list[str]:
        """Return the names of inputs and outputs that are texts, which a program alone neither takes nor returns."""
        ...

    def record(self) -> str:
        """Return both parts in Python as a text for files."""
        ...


def host_parts_of(target: Any) -> HostParts | None:
    """Return the parts of a model with texts, and None for any other target."""
    return getattr(target, "host_parts", None)


def check_numeric(parts: Any, what: str) -> None:
    """Raise ArgumentError where the parts of a model take or return texts, which ``what`` (such as a C library)
    cannot."""
    if parts is not None and (names := parts.texts()):
        verb = "is" if len(names) == 1 else "are"
        raise ArgumentError(
            f"{what} cannot hold texts, and {', '.join(names)} of the model {verb}"[:300],
            remedy="export the model to a .gcm file, which runs the operators on texts in Python",
        )


class CompiledParts:
    """A model in parts whose program is compiled. Attribute access goes to the compiled program."""

    def __init__(self, parts: HostParts, compiled: Any):
        self._parts, self._compiled = parts, compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._parts.run(args, kwargs, self._compiled)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_parts", "_compiled"):
            raise AttributeError(name)
        return getattr(self._compiled, name)
