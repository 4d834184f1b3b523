"""Activation layers that cut off small values, thresholds, random slopes."""

from __future__ import annotations

from graphc.nn import functional as F
from graphc.nn.module import Module
from graphc.tensors.tensor import Tensor

__all__ = ["Hardshrink", "RReLU", "Softshrink", "Tanhshrink", "Threshold"]


class Hardshrink(Module):
    """``0 if -lambd <= x <= lambd else x``.

    Shape: any; the output has the input's shape.
    """

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """``sign(x) * max(|x| - lambd, 0)``.

    Shape: any; the output has the input's shape.
    """

    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Tanhshrink(Module):
    """``x - tanh(x)``.

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Threshold(Module):
    """``x if x > threshold else value``.

    Shape: any; the output has the input's shape.
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}{', inplace=True' if self.inplace else ''}"


class RReLU(Module):
    """``x if x > 0 else slope * x`` with a random slope in training (Xu et al. 2015).

    The slope is uniform in ``lower``..``upper``; in evaluation it is their mean.

    Shape: any; the output has the input's shape.
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{', inplace=True' if self.inplace else ''}"
