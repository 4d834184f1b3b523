"""Registration of rules."""

import pytest

from graphc.interop.stablehlo import registry
from graphc.interop.stablehlo.table import TABLE, TARGETS


def test_names_without_a_dialect_are_of_stablehlo():
    assert "stablehlo.add" in TABLE and TABLE["stablehlo.add"].pointwise and not TABLE["stablehlo.reduce"].pointwise
    assert "lapack_dgetrf_ffi" in TARGETS


def test_a_name_has_one_rule():
    with pytest.raises(KeyError, match="already"):
        registry.rule("add")(lambda call: None)


def test_functions_take_the_operands_only(monkeypatch):
    monkeypatch.setattr(registry, "TABLE", {})
    registry.same("twice=f", lambda name: lambda x: (name, x))
    assert registry.TABLE["stablehlo.twice"].rule("call", 3) == ("f", 3)
