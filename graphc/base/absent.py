"""Names of PyTorch that graphc does not have, each with the replacement that error messages suggest."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import MemberError

_CPU = "leave it out: tensors live on the cpu"
PACKAGE = {
    "jit": "use graphc.compile or graphc.export",
    "mps": _CPU,
    "onnx": "use graphc.export",
}
"""Attributes of the ``torch`` package."""
TENSOR = {
    "resize_": "call reshape, or make a new tensor",
    "set_": "assign tensor.data = other",
    "storage": "call tensor.numpy()",
    "to_sparse": "leave it out: all tensors are dense",
    "untyped_storage": "call tensor.numpy()",
}
"""Attributes of ``torch.Tensor``."""


def missing(owner: str, name: str, replacements: dict[str, str], obj: Any) -> AttributeError:
    """Return the error for an attribute that ``obj`` lacks: a MemberError that suggests its replacement, or a plain
    AttributeError.

    For a plain AttributeError, Python itself suggests attributes with similar names.
    """
    what = f"{owner} has no attribute {name!r}"
    error = MemberError(what, remedy=replacements[name]) if name in replacements else AttributeError(what)
    error.name, error.obj = name, obj
    return error
