"""What users of PyTorch look for in vain, and what there is instead, for the messages of errors."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import MemberError

_CPU = "nothing: tensors live on the cpu"
_NARROW = "float32; compile(precision='bf16') and export(precision='bf16') store weights narrow"
PACKAGE = {
    "amp": _NARROW,
    "autocast": _NARROW,
    "bfloat16": _NARROW,
    "float16": _NARROW,
    "half": _NARROW,
    "int16": "int32",
    "jit": "graphc.compile and graphc.export",
    "mps": _CPU,
    "onnx": "graphc.export",
    "short": "int32",
    "HalfTensor": _NARROW,
}
"""Names of PyTorch's package."""
TENSOR = {
    "bfloat16": _NARROW,
    "half": _NARROW,
    "resize_": "reshape, or a new tensor",
    "set_": "tensor.data = other",
    "short": "tensor.int()",
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
