"""The whole table."""

from __future__ import annotations

from graphc.interop.aten.table import FAMILIES, TABLE


def test_every_family_has_rules():
    modules = {f.__module__ for f in TABLE.values()}
    assert {f.__name__ for f in FAMILIES} <= modules and len(TABLE) > 400
