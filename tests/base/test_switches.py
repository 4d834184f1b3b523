"""Switches are kept and told again."""

from __future__ import annotations

import pytest

import graphc
from graphc.base.switches import Switches
from graphc.errors import ArgumentError, AttributeValueError, MemberError


def test_switches_of_a_kind_are_kept():
    module = Switches("graphc.some", "Some.", {"fast": False, "limit": 3}, version=lambda: None)
    module.fast, module.limit = True, 5
    assert module.fast and module.limit == 5 and module.version() is None
    with module.flags(fast=False):
        assert not module.fast
    assert module.fast


def test_others_are_refused():
    module = Switches("graphc.some", "Some.", {"fast": False})
    with pytest.raises(MemberError, match=r"graphc\.some has no switch 'fst'"):
        module.fst = True
    with pytest.raises(ArgumentError, match="is of type bool, got 3"):
        module.fast = 3


def test_precision_of_products():
    assert graphc.get_float32_matmul_precision() == "highest"
    graphc.set_float32_matmul_precision("high")
    assert graphc.get_float32_matmul_precision() == "high"
    graphc.set_float32_matmul_precision("highest")
    with pytest.raises(AttributeValueError, match="no precision 'exact'"):
        graphc.set_float32_matmul_precision("exact")


def test_deterministic_algorithms():
    graphc.use_deterministic_algorithms(True, warn_only=True)
    assert graphc.are_deterministic_algorithms_enabled() and graphc.get_deterministic_debug_mode() == 1
    assert graphc.is_deterministic_algorithms_warn_only_enabled()
    graphc.set_deterministic_debug_mode("error")
    assert not graphc.is_deterministic_algorithms_warn_only_enabled()
    graphc.use_deterministic_algorithms(False)
    assert not graphc.are_deterministic_algorithms_enabled()
    with pytest.raises(AttributeValueError):
        graphc.set_deterministic_debug_mode(7)


def test_what_is_as_it_is():
    graphc.set_warn_always(True)
    assert graphc.is_warn_always_enabled()
    graphc.set_warn_always(False)
    assert graphc.set_flush_denormal(True) is False and (graphc.tensor(1e-40) * 1).item() != 0
