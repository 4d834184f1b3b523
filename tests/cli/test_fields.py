"""Fields of JSON, and how tests compare them with what is printed."""

from __future__ import annotations

import pytest

from graphc.cli.fields import Field, spec_fields
from tests.cli.field_check import mismatches

FIELDS = (
    Field("name", "string", "a name"),
    Field("calls[].seconds", "number", "a time", "s"),
    Field("calls[].sizes.*", "integer", "sizes", optional=True),
    Field("note", "string or null", "a note", optional=True),
)


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ({"name": "a", "calls": [{"seconds": 1.5, "sizes": {"batch": 3}}], "note": None}, []),
        ({"name": "a", "calls": [{"seconds": 2}]}, []),
        ({"name": 1, "calls": []}, ["name is int, stated is string"]),
        ({"calls": []}, ["name is absent"]),
        ({"name": "a", "calls": [{}]}, ["calls[].seconds is absent"]),
        ({"name": "a", "calls": [{"seconds": True}]}, ["calls[].seconds is bool, stated is number"]),
        ({"name": "a", "calls": [], "more": 1}, ["more is not stated"]),
        ({"name": "a", "calls": [{"seconds": 1, "sizes": {"n": "3"}}]}, ["calls[].sizes.* is str, stated is integer"]),
    ],
)
def test_what_is_not_as_stated_is_noticed(value: dict, wrong: list[str]):
    assert mismatches(value, FIELDS) == wrong


def test_types_of_inputs_have_fields():
    spec = {"name": "x", "dtype": "f32", "shape": [2, "batch"]}
    assert mismatches({"inputs": [spec]}, spec_fields("inputs", "an input")) == []
    assert mismatches({"inputs": [{**spec, "size": 3}]}, spec_fields("inputs", "an input")) == [
        "inputs[].size is not stated"
    ]
