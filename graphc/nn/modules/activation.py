"""Activation layers."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ShapeError
from graphc.nn import functional as F
from graphc.nn import init
from graphc.nn.module import Module
from graphc.nn.parameter import Parameter, empty_parameter
from graphc.tensors.tensor import Tensor

__all__ = ["CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU"]
__all__ += ["LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax"]
__all__ += ["Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold"]


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


class _InPlace(Module):
    """Base of activations whose only option is ``inplace``."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """``max(x, 0)``.

    Shape: any; the output has the input's shape.

    Example:
        >>> import graphc as gc
        >>> gc.nn.ReLU()(gc.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class ReLU6(_InPlace):
    """``min(max(x, 0), 6)``.

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, self.inplace)


class SiLU(_InPlace):
    """``x * sigmoid(x)``.

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """``x * tanh(softplus(x))``.

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class SELU(_InPlace):
    """``scale * (x if x > 0 else alpha (exp(x) - 1))`` with the constants that keep mean 0 and variance 1.

    ``scale`` is 1.0507 and ``alpha`` 1.6733 (Klambauer et al. 2017).

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class Hardsigmoid(_InPlace):
    """``min(max(x + 3, 0), 6) / 6``.

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Hardswish(_InPlace):
    """``x * hardsigmoid(x)``.

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Hardtanh(Module):
    """``min(max(x, min_val), max_val)``.

    Shape: any; the output has the input's shape.
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}{', inplace=True' if self.inplace else ''}"


class LeakyReLU(Module):
    """``x if x > 0 else negative_slope * x``.

    Shape: any; the output has the input's shape.
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}{', inplace=True' if self.inplace else ''}"


class ELU(Module):
    """``x if x > 0 else alpha (exp(x) - 1)``.

    Shape: any; the output has the input's shape.
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}{', inplace=True' if self.inplace else ''}"


class CELU(ELU):
    """``x if x > 0 else alpha (exp(x / alpha) - 1)``.

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class PReLU(Module):
    """``x if x > 0 else weight * x`` with a learned slope for all elements, or one per channel.

    Shape: any; with ``num_parameters`` > 1, [batch, num_parameters, ...]. The output has the input's shape.
    """

    weight: Parameter

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty_parameter((num_parameters,), dtype, device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set every slope to ``init``."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class GELU(Module):
    """``x * Phi(x)`` with the normal distribution function Phi; ``approximate="tanh"`` approximates it by tanh.

    Shape: any; the output has the input's shape.
    """

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """``log(1 + exp(beta x)) / beta``, and x itself where ``beta x`` exceeds ``threshold``.

    Shape: any; the output has the input's shape.
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Tanh(Module):
    """``tanh(x)``, the hyperbolic tangent.

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``.

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class LogSigmoid(Module):
    """``log(1 / (1 + exp(-x)))``, without overflow.

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(Module):
    """``x / (1 + |x|)``.

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class GLU(Module):
    """``a * sigmoid(b)`` for the halves a and b of the input along ``dim``.

    Shape: ``dim`` has an even size n in the input and size n / 2 in the output.
    """

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class _AlongDim(Module):
    """Base of functions along one dimension; None lets the function guess it, with a warning."""

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """``exp(x_i) / sum_j exp(x_j)`` along ``dim``.

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, 5)


class LogSoftmax(_AlongDim):
    """``log(exp(x_i) / sum_j exp(x_j))`` along ``dim``.

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, 5)


class Softmin(_AlongDim):
    """``exp(-x_i) / sum_j exp(-x_j)`` along ``dim``.

    Shape: any; the output has the input's shape.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, 5)


class Softmax2d(Module):
    """``exp(x_i) / sum_j exp(x_j)`` over the channels of images.

    Shape: [batch, channels, height, width] or [channels, height, width]; the output has the input's shape. Raises
    ShapeError for other numbers of dimensions.
    """

    def forward(self, input: Tensor) -> Tensor:
        if len(input.shape) not in (3, 4):
            raise ShapeError(f"Softmax2d: the input {list(input.shape)} does not have 3 or 4 dimensions")
        return F.softmax(input, -3)
