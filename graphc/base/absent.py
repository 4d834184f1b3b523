"""What users of PyTorch look for in vain, and what there is instead, for the messages of errors."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import MemberError

_CPU = "nothing: tensors live on the cpu"
PACKAGE = {
    "jit": "graphc.compile and graphc.export",
    "mps": _CPU,
    "onnx": "graphc.export",
}
"""Names of PyTorch's package."""
TENSOR = {
    "resize_": "reshape, or a new tensor",
    "set_": "tensor.data = other",
    "storage": "tensor.numpy()",
    "to_sparse": "nothing: tensors are dense",
    "untyped_storage": "tensor.numpy()",
}
"""Names of PyTorch's tensors."""


def missing(owner: str, name: str, known: dict[str, str], obj: Any) -> AttributeError:
    """The error for a name that ``obj`` has not, with what there is instead where that is known.

    Otherwise it is an AttributeError itself, for which Python looks for names like it.
    """
    what = f"{owner} has no attribute {name!r}"
    error = MemberError(what, remedy=known[name]) if name in known else AttributeError(what)
    error.name, error.obj = name, obj
    return error
