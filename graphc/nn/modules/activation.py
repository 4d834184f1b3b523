"""Activation layers."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ShapeError
from graphc.nn import functional as F
from graphc.nn import init
from graphc.nn.module import Module
from graphc.nn.parameter import Parameter, empty_parameter
from graphc.tensors.tensor import Tensor


class _InPlace(Module):
    """An activation without other options than working in place."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """``inplace=True`` where it is."""
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """The larger of x and 0."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.relu(input, self.inplace)


class ReLU6(_InPlace):
    """x limited to 0..6."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.relu6(input, self.inplace)


class SiLU(_InPlace):
    """x times its logistic sigmoid."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """x times tanh(softplus(x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.mish(input, self.inplace)


class SELU(_InPlace):
    """The scaled ELU that keeps mean 0 and variance 1."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.selu(input, self.inplace)


class Hardsigmoid(_InPlace):
    """``(x + 3) / 6`` limited to 0..1."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.hardsigmoid(input, self.inplace)


class Hardswish(_InPlace):
    """x times hardsigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.hardswish(input, self.inplace)


class Hardtanh(Module):
    """x limited to ``min_val``..``max_val``."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The limits."""
        return f"min_val={self.min_val}, max_val={self.max_val}{', inplace=True' if self.inplace else ''}"


class LeakyReLU(Module):
    """x where positive, else ``negative_slope * x``."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """The slope."""
        return f"negative_slope={self.negative_slope}{', inplace=True' if self.inplace else ''}"


class ELU(Module):
    """x where positive, else ``alpha (exp(x) - 1)``."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """The scale."""
        return f"alpha={self.alpha}{', inplace=True' if self.inplace else ''}"


class CELU(ELU):
    """x where positive, else ``alpha (exp(x / alpha) - 1)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.celu(input, self.alpha, self.inplace)


class PReLU(Module):
    """x where positive, else a learned slope times x: one slope, or one per channel (dimension 1)."""

    weight: Parameter

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty_parameter((num_parameters,), dtype, device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Every slope is ``init``."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Any shape, with channels in dimension 1 where there are several slopes."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"


class GELU(Module):
    """x times the normal distribution function at x; ``approximate="tanh"`` for the form with tanh."""

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        """The form."""
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """``log(1 + exp(beta x)) / beta``; x itself where ``beta x`` exceeds ``threshold``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Steepness and threshold."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.tanh(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """The logarithm of the logistic sigmoid."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.logsigmoid(input)


class Softsign(Module):
    """``x / (1 + |x|)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.softsign(input)


class GLU(Module):
    """The first half along ``dim`` times the sigmoid of the second."""

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Any shape; ``dim`` is halved."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class _AlongDim(Module):
    """A function along one dimension; None lets the function guess, with a warning."""

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) divided by its sum along ``dim``."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.softmax(input, self.dim, 5)


class LogSoftmax(_AlongDim):
    """The logarithm of softmax along ``dim``."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.log_softmax(input, self.dim, 5)


class Softmin(_AlongDim):
    """Softmax of -x along ``dim``."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape."""
        return F.softmin(input, self.dim, 5)


class Softmax2d(Module):
    """Softmax over the channels of [batch, channels, height, width] (or without the batch)."""

    def forward(self, input: Tensor) -> Tensor:
        """Three or four dimensions; raises ShapeError for others."""
        if len(input.shape) not in (3, 4):
            raise ShapeError(f"Softmax2d: the input {list(input.shape)} has not 3 or 4 dimensions")
        return F.softmax(input, -3)
