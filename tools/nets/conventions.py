"""Conventions in which graphc knowingly differs from PyTorch, and PyTorch's functions rewritten to follow graphc's.

- ``gelu(inf)`` is infinity; in vectors of f32 PyTorch returns NaN, elsewhere infinity.
- ``relu6`` and ``hardtanh`` have gradient 0 at NaN; so has PyTorch in full vectors, but 1 in the remainder.
- The gradient of a product is the product of the other elements; PyTorch divides by the element, even infinity or NaN.
- If the largest or smallest of all elements is NaN, so is its gradient; PyTorch distributes it over the NaN.
- Attention ignores elements hidden by a boolean mask; PyTorch adds -inf, so that infinities and NaN reach others.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

_ATTENTION = nn.functional.scaled_dot_product_attention
_GELU = nn.functional.gelu
_PROD = torch.prod


def _gelu(input: Tensor, approximate: str = "none") -> Tensor:
    if approximate != "none":
        return _GELU(input, approximate=approximate)
    return input * 0.5 * (torch.erf(input * math.sqrt(0.5)) + 1)


def _hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    inside = (input > min_val) & (input < max_val)
    clipped = torch.where(inside, input, input.detach().clamp(min_val, max_val))
    return input.copy_(clipped) if inplace else clipped


def _relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return _hardtanh(input, 0.0, 6.0, inplace)


def _prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    x = input if dtype is None else input.to(dtype)
    rows = x.reshape(-1) if dim is None else x
    axis = dim or 0
    if not x.is_floating_point() or not rows.ndim or not rows.shape[axis]:
        return _PROD(x) if dim is None else _PROD(x, dim, keepdim)
    product = functools.reduce(torch.mul, rows.unbind(axis))
    return product.unsqueeze(axis) if keepdim else product


def _attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, **options: Any) -> Tensor:
    if attn_mask is None or attn_mask.dtype is not torch.bool or set(options) - {"scale"}:
        return _ATTENTION(query, key, value, attn_mask, **options)
    scale = options.get("scale")
    scores = query @ key.transpose(-1, -2) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    visible = attn_mask.any(-1, keepdim=True)
    scores = torch.where(attn_mask, scores, torch.where(visible, -math.inf, 0.0).to(scores.dtype))
    return torch.where(visible, torch.softmax(scores, -1), 0.0) @ value


def _extreme(reduction: Callable[[Tensor], Tensor], other: Callable[..., Any]) -> Callable[..., Any]:
    def function(input: Tensor, *arguments: Any, **options: Any) -> Any:
        return other(input, *arguments, **options) if arguments or options else reduction(input)

    return function


_REWRITTEN = [
    (nn.functional, "gelu", _gelu),
    (nn.functional, "relu6", _relu6),
    (nn.functional, "hardtanh", _hardtanh),
    (nn.functional, "scaled_dot_product_attention", _attention),
    *((owner, "prod", _prod) for owner in (torch, Tensor)),
    *((owner, "max", _extreme(torch.amax, torch.max)) for owner in (torch, Tensor)),
    *((owner, "min", _extreme(torch.amin, torch.min)) for owner in (torch, Tensor)),
]


@contextmanager
def as_graphc() -> Iterator[None]:
    """Make PyTorch follow the conventions of graphc in the body."""
    with ExitStack() as stack:
        for owner, name, function in _REWRITTEN:
            stack.enter_context(mock.patch.object(owner, name, function))
        yield
