"""Dropout layers."""

from __future__ import annotations

from graphc.base.errors import AttributeValueError
from graphc.nn import functional as F
from graphc.nn.module import Module
from graphc.tensors.tensor import Tensor

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Module):
    """Base of dropout layers."""

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise AttributeValueError(f"{self._get_name()}: p must be a probability between 0 and 1, got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Zeros elements with probability p in training and scales the others up.

    Example:
        >>> import graphc as gc
        >>> layer = gc.nn.Dropout(p=0.5)
        >>> set(layer(gc.ones(100)).tolist()) == {0.0, 2.0}
        True
        >>> layer.eval()(gc.ones(3))
        tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape (any shape)."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """Zeros whole channels of [batch, channels, length] with probability p in training."""

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape [batch, channels, length]."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Zeros whole channels of [batch, channels, height, width] with probability p in training."""

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape [batch, channels, height, width]."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """Zeros whole channels of [batch, channels, depth, height, width] with probability p in training."""

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape [batch, channels, depth, height, width]."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean 0 and variance 1 of selu's outputs."""

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape (any shape)."""
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """AlphaDropout of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape [batch, channels, ...]."""
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
