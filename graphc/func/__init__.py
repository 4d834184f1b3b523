"""Function transforms under PyTorch's import path: derivatives, Jacobians, gradient checks, vectorized functions."""

from graphc.autograd.transforms import grad, grad_and_value, jvp, linearize, value_and_grad, vjp
from graphc.control.vmap import vmap
from graphc.func.jacobian import hessian, jacfwd, jacrev
from graphc.nn.utils.stateless import functional_call, stack_module_state

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize"]
__all__ += ["stack_module_state", "value_and_grad", "vjp", "vmap"]
