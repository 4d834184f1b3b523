"""Names of autograd that are loaded at first use."""

from __future__ import annotations

from graphc import autograd
from graphc.base.lazy import imported_by


def test_all_names_but_two_modules_are_public():
    names = {*imported_by("graphc.autograd.names")}
    assert names - {*autograd.__all__} == {"function", "grad_mode"}
    assert all(hasattr(autograd, name) for name in names)
