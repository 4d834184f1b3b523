"""The import path that users know for functions of functions: derivatives, and modules as functions of parameters."""

from graphc.autograd.jacobian import hessian, jacfwd, jacrev
from graphc.autograd.transforms import grad, jvp, vjp
from graphc.batched import vmap
from graphc.nn.utils.stateless import functional_call

__all__ = ["functional_call", "grad", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"]
