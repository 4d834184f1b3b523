"""Activation layers that cut small values off, thresholds, random slopes."""

from __future__ import annotations

from graphc.nn import functional as F
from graphc.nn.module import Module
from graphc.tensors.tensor import Tensor


class Hardshrink(Module):
    """x, but 0 from -lambd to lambd."""

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The limit."""
        return f"{self.lambd}"


class Softshrink(Module):
    """x moved towards 0 by lambd."""

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The limit."""
        return f"{self.lambd}"


class Tanhshrink(Module):
    """x minus its hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.tanhshrink(input)


class Threshold(Module):
    """x where it exceeds a threshold, else a value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """Threshold and value."""
        return f"threshold={self.threshold}, value={self.value}{', inplace=True' if self.inplace else ''}"


class RReLU(Module):
    """x where positive, else x times a slope that is drawn in training (Xu et al. 2015)."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The range of slopes."""
        return f"lower={self.lower}, upper={self.upper}{', inplace=True' if self.inplace else ''}"
