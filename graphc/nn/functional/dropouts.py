"""Dropout of elements and of whole channels."""

from __future__ import annotations

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.random import sampling
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability ``p`` and scale the others by ``1 / (1 - p)``; only in training."""
    return _dropout("dropout", input, p, training, inplace, tuple(input.shape))


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Apply ``dropout`` to whole channels of [batch, channels, length] (or without the batch)."""
    return _dropout("dropout1d", input, p, training, inplace, _channels("dropout1d", input, 1))


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Apply ``dropout`` to whole channels of [batch, channels, height, width] (or without the batch)."""
    return _dropout("dropout2d", input, p, training, inplace, _channels("dropout2d", input, 2))


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Apply ``dropout`` to whole channels of [batch, channels, depth, height, width] (or without the batch)."""
    return _dropout("dropout3d", input, p, training, inplace, _channels("dropout3d", input, 3))


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Apply dropout that keeps mean 0 and variance 1 of selu's outputs (Klambauer et al. 2017)."""
    return _alpha_dropout("alpha_dropout", input, p, training, inplace, tuple(input.shape))


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Apply ``alpha_dropout`` to whole channels of [batch, channels, ...]."""
    if training and len(input.shape) < 2:
        raise ShapeError(f"feature_alpha_dropout: the input {list(input.shape)} has no channels")
    shape = (*input.shape[:2], *(1,) * (len(input.shape) - 2))
    return _alpha_dropout("feature_alpha_dropout", input, p, training, inplace, shape)


_SATURATION = 1.7580993408473766
"""Negative of selu's limit at minus infinity: its scale times its alpha."""


def _alpha_dropout(name: str, x: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    if not 0.0 <= p <= 1.0:
        raise AttributeValueError(f"{name}: p must be a probability between 0 and 1, got {p}")
    if not training or p == 0.0:
        return x
    if p == 1.0:
        result = ew.mul(x, 0.0)
    else:
        scale = ((1 - p) * (1 + p * _SATURATION**2)) ** -0.5
        keep = ew.ge(sampling.uniform_of_rows(shape, x), p)
        result = ew.add(ew.mul(ew.where(keep, x, -_SATURATION), scale), scale * p * _SATURATION)
    return x.copy_(result) if inplace else result


def _channels(name: str, input: Tensor, spatial: int) -> tuple[int, ...]:
    """Return the shape of a mask with one element per channel."""
    if len(input.shape) not in (spatial + 1, spatial + 2):
        raise ShapeError(f"{name}: the input {list(input.shape)} has {len(input.shape)} dimensions, not {spatial + 2}")
    return (*input.shape[: len(input.shape) - spatial], *(1,) * spatial)


def _dropout(name: str, x: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    if not 0.0 <= p <= 1.0:
        raise AttributeValueError(f"{name}: p must be a probability between 0 and 1, got {p}")
    if not training or p == 0.0:
        return x
    result = _dropped(x, sampling.uniform_of_rows(shape, x), p)
    return x.copy_(result) if inplace else result


@compiled_when_repeated
def _dropped(x: Tensor, drawn: Tensor, p: float) -> Tensor:
    scale = 0.0 if p == 1.0 else 1.0 / (1.0 - p)
    return ew.mul(x, ew.mul(ew.cast(ew.ge(drawn, p), dtype=x.dtype), scale))
