"""The import path that users know."""

from __future__ import annotations

import graphc
from graphc import func
from graphc.autograd import transforms
from graphc.func import jacobian


def test_passes_on_the_same_functions():
    assert func.grad is transforms.grad and func.vjp is transforms.vjp
    assert func.jvp is transforms.jvp and func.jacfwd is jacobian.jacfwd and func.jacrev is jacobian.jacrev
    assert graphc.hessian is func.hessian is jacobian.hessian
    assert graphc.func.functional_call is graphc.nn.utils.stateless.functional_call
