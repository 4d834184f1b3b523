"""Samples of PyTorch's tables as calls of graphc, and why some of them are none."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

import graphc as gc
from tools.trees import mapped


class NotMappedError(Exception):
    """A sample that graphc has no call for; the text is the reason."""


@dataclass(frozen=True)
class Slot:
    """The place of a tensor among the arguments of a call."""

    number: int


class Call(NamedTuple):
    """Arguments with slots in the place of tensors, and the tensors."""

    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    tensors: list[gc.Tensor]
    sources: list[torch.Tensor]
    """Tensors of PyTorch from which the operands were converted; a tensor passed twice is one operand."""

    def filled(self, tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with these tensors in the slots."""
        return mapped(
            (self.arguments, self.keywords), lambda leaf: tensors[leaf.number] if isinstance(leaf, Slot) else leaf
        )


_NO_MEANING = {"layout": (torch.strided,), "pin_memory": (None, False), "non_blocking": (None, False, True)}
_MOST_DIMENSIONS = 64
_FORMATS = (torch.contiguous_format, torch.preserve_format)
_REFUSED = {"generator": "generators of PyTorch"}


def call_of(sample: Any) -> Call:
    """Return the call of a sample (``SampleInput``, or anything with input, args and kwargs)."""
    sources: list[torch.Tensor] = []
    arguments = tuple([_ours(v, sources) for v in (sample.input, *sample.args)])
    keywords = {}
    for key, value in sample.kwargs.items():
        if key in _REFUSED and value is not None:
            raise NotMappedError(_REFUSED[key])
        if key in _NO_MEANING and value in _NO_MEANING[key]:
            continue
        keywords[key] = _ours(value, sources)
    return Call(
        arguments, {k: v for k, v in keywords.items() if v is not _FORMATS}, [*map(tensor_of, sources)], sources
    )


def type_of(dtype: torch.dtype) -> Any:
    """Return the element type of that name."""
    name = str(dtype).removeprefix("torch.")
    own_type = getattr(gc, "bool_" if name == "bool" else name, None)
    if own_type is None:
        raise NotMappedError(f"elements of {name}")
    return own_type


def tensor_of(tensor: torch.Tensor) -> gc.Tensor:
    """Return a tensor with the same elements and the same need of a gradient, in memory of its own."""
    if tensor.layout is not torch.strided:
        raise NotMappedError("sparse tensors")
    if tensor.is_quantized:
        raise NotMappedError("quantized tensors")
    if tensor.device.type != "cpu":
        raise NotMappedError(f"tensors on {tensor.device.type}")
    if tensor.ndim > _MOST_DIMENSIONS:
        raise NotMappedError(f"more than {_MOST_DIMENSIONS} dimensions, which numpy has not")
    dtype = type_of(tensor.dtype)
    plain = tensor.detach().resolve_conj().resolve_neg()
    if dtype.long_name in ("float16", "bfloat16"):
        own_tensor = gc.from_numpy(plain.float().numpy().copy()).to(dtype)
    else:
        own_tensor = gc.from_numpy(plain.numpy(force=True).copy())
    return own_tensor.requires_grad_() if tensor.requires_grad else own_tensor


def _ours(value: Any, sources: list[torch.Tensor]) -> Any:
    def own(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return _plain(leaf)
        index = next((i for i, t in enumerate(sources) if t is leaf), None)
        if index is None:
            sources.append(leaf)
        return Slot(len(sources) - 1 if index is None else index)

    return mapped(value, own)


def _plain(value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return type_of(value)
    if isinstance(value, torch.device):
        if value.type != "cpu":
            raise NotMappedError(f"tensors on {value.type}")
        return value.type
    if isinstance(value, torch.memory_format):
        if value not in _FORMATS:
            raise NotMappedError("memory formats")
        return _FORMATS
    if isinstance(value, complex) and not hasattr(gc, "complex64"):
        raise NotMappedError("complex numbers")
    if isinstance(value, torch.layout):
        raise NotMappedError("layouts as arguments")
    fields = getattr(type(value), "__dataclass_fields__", None)
    own = getattr(gc.nn, type(value).__name__, None) if fields is not None else None
    if own is not None:
        return own(**{name: _plain(getattr(value, name)) for name in fields or ()})
    if type(value).__module__.startswith("torch") or (callable(value) and not isinstance(value, type)):
        raise NotMappedError("functions and objects of PyTorch as arguments")
    return value


def wide(value: Any) -> Any:
    """Return the same value with f64 in place of f32."""

    def widened(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().double() if leaf.dtype == torch.float32 else leaf
        return torch.float64 if leaf is torch.float32 else leaf

    return mapped(value, widened)


def copied(sample: Any) -> Any:
    """Return a sample whose tensors are others, for operators that write."""

    def cloned(leaf: Any) -> Any:
        return leaf.detach().clone().requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf

    clone = copy.copy(sample)
    clone.input, clone.args, clone.kwargs = mapped((sample.input, sample.args, sample.kwargs), cloned)
    return clone


def array_of(value: Any) -> np.ndarray:
    """Return the elements of a tensor of either library, or a number; f32 for narrower floats."""
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        return (value.float() if value.dtype in (torch.float16, torch.bfloat16) else value).numpy(force=True)
    if isinstance(value, gc.Tensor):
        value = value.detach()
        return (value.float() if value.dtype.long_name in ("float16", "bfloat16") else value).numpy()
    return np.asarray(value)
