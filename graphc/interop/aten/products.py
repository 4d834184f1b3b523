"""Rules of ATen's sums of products: matrices, vectors, attention."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

from graphc.base.dtypes import bool_
from graphc.base.errors import UnsupportedError
from graphc.interop.aten.pointwise import safe_softmax
from graphc.interop.aten.registry import rule, same
from graphc.nn import functional as F
from graphc.tensors import free_functions as free
from graphc.tensors import functions
from graphc.tensors.tensor import Tensor

same("mm bmm mv dot matmul outer vdot addmm addmv baddbmm addbmm linear bilinear cross kron")
same("scaled_dot_product_attention")


@rule("addr")
def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    result = functions.addr(self, vec1, vec2, beta=beta, alpha=alpha)
    return result.to(bool_) if self.dtype is vec1.dtype is vec2.dtype is bool_ else result


@rule("einsum")
def einsum(equation: str, tensors: Any, *, path: Any = None) -> Tensor:
    return free.einsum(equation, *tensors)


@rule("_trilinear")
def trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """Multiply three tensors, each expanded by its missing dimensions, and sum over some dimensions."""
    letters = string.ascii_letters[: i1.dim() + len(expand1)]
    dropped = (expand1, expand2, expand3, sumdim)
    *operands, result = ["".join(c for d, c in enumerate(letters) if d not in dims) for dims in dropped]
    return free.einsum(f"{','.join(operands)}->{result}", i1, i2, i3)


@rule("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute scaled dot-product attention. Several query heads may share one key-value head, as in PyTorch's kernel.

    The second result, the logarithms of the sums (0 where a mask hides all keys), serves PyTorch's own backward pass.
    The backward rule of this table recomputes them.
    """
    shared = query.shape[-3] != key.shape[-3]
    attended = F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, shared)
    logarithms = functions.logsumexp(_scores(query, key, attn_mask, is_causal, scale), -1)
    return attended, functions.masked_fill(logarithms, functions.eq(logarithms, -math.inf), 0.0)


@rule("_scaled_dot_product_attention_math")
def math_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Tensor | None = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Compute scaled dot-product attention with a mask added to the scores, booleans as zeros and ones.

    The second result is the weights.
    """
    if dropout_mask is not None:
        raise UnsupportedError("graphc has no attention with a dropout mask")
    mask = None if attn_mask is None else attn_mask.to(query.dtype)
    attended = F.scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa)
    return attended, None if dropout_p else safe_softmax(_scores(query, key, mask, is_causal, scale), -1)


def _scores(query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None) -> Tensor:
    """Return the scores from which softmax makes the attention weights. Each key serves several queries where
    needed."""
    if query.dim() > 3 and key.shape[-3] != query.shape[-3]:
        key = functions.repeat_interleave(key, query.shape[-3] // key.shape[-3], -3)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = functions.tril(scores.new_ones(scores.shape[-2:], dtype=bool_))
    if mask is None:
        return scores
    return free.where(mask, scores, -math.inf) if mask.dtype is bool_ else scores + mask
