"""The table of operators: what it is made of, and that ONNX knows what stands in it."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections import defaultdict

import pytest

from graphc.interop.onnx.registry import HOST, TABLE, Rule
from graphc.interop.onnx.table import families, find, has_domain, host_function

FAMILIES = families()
ONNX = ("", "ai.onnx.ml")
"""Domains of which ONNX has schemas."""
EXPERIMENTS = ["Affine", "Crop", "DynamicSlice", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh"]
FOREIGN = {("", name) for name in ("SimplifiedLayerNormalization", *EXPERIMENTS)}
"""Operators of ONNX Runtime in the domain of ONNX, which does not know them, or no longer."""


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
    assert [key for key in (*TABLE, *HOST) if key[0] in ONNX and key not in known | FOREIGN] == []


def test_rules_take_attributes_by_the_names_that_onnx_has():
    onnx = pytest.importorskip("onnx")
    known: dict[tuple[str, str], set[str]] = defaultdict(set)
    for schema in onnx.defs.get_all_schemas_with_history():
        known[schema.domain, schema.name] |= schema.attributes.keys()
    allowed: dict[Rule, set[str]] = defaultdict(set)
    for key, entries in TABLE.items():
        for entry in entries:
            allowed[entry.rule] |= known[key]
    wrong = []
    for (domain, name), entries in TABLE.items():
        for entry in entries:
            if (
                domain in ONNX
                and (domain, name) not in FOREIGN
                and entry.rule.__module__.startswith("graphc.interop.onnx")
            ):
                parameters = inspect.signature(entry.rule).parameters.values()
                named = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - {"call"}
                wrong += [f"{name}.{n}" for n in named - allowed[entry.rule]]
    assert wrong == []


def test_operators_are_found_by_domain():
    assert has_domain("com.microsoft") and has_domain("") and not has_domain("own")
    assert host_function("", "Add") is HOST["", "Add"] and host_function("", "Ununtrium") is None


def test_a_model_loads_the_rules_of_its_operators_only():
    pytest.importorskip("onnx")
    code = """
import sys
from graphc.interop.onnx.table import find
assert find("", "Gemm", 13) and not find("", "Ununtrium", 13)
print([n for n in sys.modules if n.endswith((".ops.products", ".ops.attention", ".ops.classical.trees"))])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['graphc.interop.onnx.ops.products']"
