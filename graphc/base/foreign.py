"""Detection of objects that cannot be compiled: classes, and objects of other frameworks, by their class names."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ArgumentError


def is_foreign_tensor(value: Any) -> bool:
    """Return whether a value, neither a graphc tensor nor a NumPy array, is a tensor of another library."""
    return hasattr(type(value), "__dlpack__")


def no_foreign_module(doing: str, value: Any) -> None:
    """Raise ArgumentError for a ``torch.nn.Module`` or an ExportedProgram where a graphc module is needed."""
    class_names = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(value).__mro__}
    if class_names & {("torch", "Module"), ("torch", "ExportedProgram")}:
        raise ArgumentError(
            f"{doing}: {type(value).__name__} is a model of PyTorch",
            remedy="convert it: graphc.from_torch(model, example_arguments)",
        )


def no_class(doing: str, value: Any) -> None:
    """Raise ArgumentError for a class passed where an instance is expected."""
    if isinstance(value, type):
        raise ArgumentError(f"{doing}: {value.__name__} is a class", remedy=f"pass an instance: {value.__name__}(...)")
