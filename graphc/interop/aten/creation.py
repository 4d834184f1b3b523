"""Rules of ATen operators that create tensors, also random ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.dtypes import bool_, float32, int64
from graphc.interop.aten.registry import rule, same
from graphc.nn import functional as F
from graphc.tensors import creation
from graphc.tensors.tensor import Tensor

same("full_like zeros_like ones_like rand_like randn_like tril_indices triu_indices")


@rule("arange", "arange.start", "arange.start_step")
def arange(*bounds: Any, dtype: Any = None) -> Tensor:
    return creation.arange(*bounds, dtype=dtype)


@rule("full")
def full(size: Sequence[int], fill_value: Any, *, dtype: Any = None) -> Tensor:
    return creation.full(tuple(size), fill_value, dtype=dtype)


@rule("zeros", "empty.memory_format", "empty_permuted", "empty_strided")
def zeros(size: Sequence[int], order: Any = None, *, dtype: Any = None) -> Tensor:
    return creation.zeros(tuple(size), dtype=dtype)


@rule("ones")
def ones(size: Sequence[int], *, dtype: Any = None) -> Tensor:
    return creation.ones(tuple(size), dtype=dtype)


@rule("empty_like")
def empty_like(self: Tensor, *, dtype: Any = None) -> Tensor:
    return creation.zeros_like(self, dtype=dtype)


@rule("new_zeros", "new_empty", "new_empty_strided")
def new_zeros(self: Tensor, size: Sequence[int], stride: Any = None, *, dtype: Any = None) -> Tensor:
    return creation.zeros(tuple(size), dtype=dtype or self.dtype)


@rule("new_ones")
def new_ones(self: Tensor, size: Sequence[int], *, dtype: Any = None) -> Tensor:
    return creation.ones(tuple(size), dtype=dtype or self.dtype)


@rule("new_full")
def new_full(self: Tensor, size: Sequence[int], fill_value: Any, *, dtype: Any = None) -> Tensor:
    return creation.full(tuple(size), fill_value, dtype=dtype or self.dtype)


@rule("scalar_tensor")
def scalar_tensor(s: Any, *, dtype: Any = None) -> Tensor:
    """Return a scalar, by default f32 whatever the type of the number."""
    return creation.full((), s, dtype=dtype or float32)


@rule("eye", "eye.m")
def eye(n: int, m: int | None = None, *, dtype: Any = None) -> Tensor:
    return creation.eye(n, m, dtype=dtype)


@rule("linspace")
def linspace(start: float, end: float, steps: int, *, dtype: Any = None) -> Tensor:
    return creation.linspace(start, end, steps, dtype=dtype)


@rule("one_hot")
def one_hot(self: Tensor, num_classes: int = -1) -> Tensor:
    return F.one_hot(self, num_classes)


@rule("rand")
def rand(size: Sequence[int], *, dtype: Any = None) -> Tensor:
    return creation.rand(tuple(size), dtype=dtype)


@rule("randn")
def randn(size: Sequence[int], *, dtype: Any = None) -> Tensor:
    return creation.randn(tuple(size), dtype=dtype)


@rule("randint")
def randint(high: int, size: Sequence[int], *, dtype: Any = None) -> Tensor:
    return creation.randint(0, high, tuple(size), dtype=dtype or int64)


@rule("randint.low")
def randint_from(low: int, high: int, size: Sequence[int], *, dtype: Any = None) -> Tensor:
    return creation.randint(low, high, tuple(size), dtype=dtype or int64)


@rule("randperm")
def randperm(n: int, *, dtype: Any = None) -> Tensor:
    return creation.randperm(n, dtype=dtype or int64)


@rule("bernoulli")
def bernoulli(self: Tensor, *, generator: Any = None) -> Tensor:
    return creation.bernoulli(self)


@rule("bernoulli.p")
def bernoulli_like(self: Tensor, p: float = 0.5, *, generator: Any = None) -> Tensor:
    return creation.bernoulli(creation.full(self.shape, p, dtype=self.dtype))


@rule("native_dropout")
def native_dropout(self: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Drop elements unless ``train`` is False. None means True."""
    if train is False:
        return self.clone(), creation.ones(self.shape, dtype=bool_)
    mask = creation.rand(self.shape) >= p
    return self * mask * (0.0 if p == 1 else 1 / (1 - p)), mask


@rule("dropout")
def dropout(self: Tensor, p: float, train: bool) -> Tensor:
    return F.dropout(self, p, train)


@rule("feature_dropout")
def feature_dropout(self: Tensor, p: float, train: bool) -> Tensor:
    """Drop entire channels of [batch, channels, ...]."""
    if not train or p == 0:
        return self
    mask = F.dropout(creation.ones((*self.shape[:2], *(1,) * (self.dim() - 2)), dtype=self.dtype), p, True)
    return self * mask


@rule("alpha_dropout")
def alpha_dropout(self: Tensor, p: float, train: bool) -> Tensor:
    return F.alpha_dropout(self, p, train)


@rule("feature_alpha_dropout")
def feature_alpha_dropout(self: Tensor, p: float, train: bool) -> Tensor:
    return F.feature_alpha_dropout(self, p, train)


@rule("rrelu")
def rrelu(self: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    return F.rrelu(self, lower, upper, training)
