"""The import path that users know."""

from __future__ import annotations

import graphc
from graphc import func
from graphc.autograd import transforms


def test_passes_on_the_same_functions():
    assert func.grad is transforms.grad and func.vjp is transforms.vjp
    assert graphc.func.functional_call is graphc.nn.utils.stateless.functional_call
