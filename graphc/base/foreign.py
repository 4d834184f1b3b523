"""Objects of other frameworks, told by their classes: none of these frameworks is imported."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ArgumentError


def is_foreign_tensor(value: Any) -> bool:
    """Whether a value, which is no tensor of graphc and no NumPy array, is the tensor of another library."""
    return hasattr(type(value), "__dlpack__")


def no_foreign_module(doing: str, value: Any) -> None:
    """Raises ArgumentError for a ``torch.nn.Module`` or an ExportedProgram in the place of a module of graphc."""
    known = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(value).__mro__}
    if known & {("torch", "Module"), ("torch", "ExportedProgram")}:
        raise ArgumentError(
            f"{doing}: {type(value).__name__} is a model of PyTorch",
            remedy="graphc.from_torch(model, example_arguments) makes a module of graphc of it",
        )
