"""The table of operators: what it is made of, and that ONNX knows what stands in it."""

from __future__ import annotations

import inspect

import pytest

from graphc.interop.onnx.registry import HOST, MICROSOFT
from graphc.interop.onnx.table import FAMILIES, TABLE, find


def test_entries_stand_from_the_newest_version_down():
    for entries in TABLE.values():
        versions = [e.since for e in entries]
        assert versions == sorted(set(versions), reverse=True)


def test_the_entry_for_a_version_is_the_newest_that_is_not_newer():
    (entry,) = TABLE["", "Gelu"]
    assert find("", "Gelu", entry.since) is entry and find("", "Gelu", entry.since - 1) is None


def test_every_family_enters_rules():
    modules = {e.rule.__module__ for entries in TABLE.values() for e in entries}
    modules |= {rule.__module__ for rule in HOST.values()}
    assert {f.__name__ for f in FAMILIES} - modules <= {f.__name__ for f in FAMILIES if hasattr(f, "same")}


def test_onnx_knows_the_operators_of_its_domains():
    onnx = pytest.importorskip("onnx")
    known = {(s.domain, s.name) for s in onnx.defs.get_all_schemas_with_history()}
    assert [key for key in (*TABLE, *HOST) if key not in known and key[0] != MICROSOFT] == []


def test_rules_take_attributes_by_the_names_that_onnx_has():
    onnx = pytest.importorskip("onnx")
    wrong = []
    for (domain, name), entries in TABLE.items():
        if domain == MICROSOFT:
            continue
        schemas = [s for s in onnx.defs.get_all_schemas_with_history() if (s.domain, s.name) == (domain, name)]
        attributes = {a for s in schemas for a in s.attributes}
        for entry in entries:
            named = [p.name for p in inspect.signature(entry.rule).parameters.values() if p.kind is p.KEYWORD_ONLY]
            if entry.rule.__module__.startswith("graphc.interop.onnx"):
                wrong += [f"{name}.{n}" for n in named if n not in attributes and n != "call"]
    assert wrong == []
