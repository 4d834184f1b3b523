"""The import path that users know for functions of functions: gradients, and modules as functions of parameters."""

from graphc.autograd.transforms import grad, vjp
from graphc.nn.utils.stateless import functional_call

__all__ = ["functional_call", "grad", "vjp"]
