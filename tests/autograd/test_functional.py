"""PyTorch's import path of derivatives of functions."""

from __future__ import annotations

import pytest

import graphc
from graphc.autograd import functional
from graphc.func import functional as own


@pytest.mark.parametrize("name", ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"])
def test_the_known_path_has_what_users_name(name: str):
    assert graphc.autograd.functional is functional
    assert getattr(functional, name) is getattr(own, name)
