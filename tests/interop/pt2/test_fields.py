"""Fields of JSON: values of the right types come out, all others are named with their paths."""

from __future__ import annotations

import math

import pytest

from graphc.errors import ArtifactError, UnsupportedError
from graphc.interop.pt2.fields import Field, parse
from tests.interop.pt2.kept import field


def test_values_come_out_by_their_types():
    found = parse(b'{"a": "x", "b": [1, true, 2.5, null], "c": {"as_int": 3}}', "model").record("a b c", "d")
    number, flag, real, none = found["b"].items()
    assert (found["a"].text(), number.integer(), flag.flag(), real.real(), none.is_none) == ("x", 1, True, 2.5, True)
    assert found["d"].is_none
    kind, content = found["c"].union()
    assert (kind, content.integer()) == ("as_int", 3)


def test_numbers_that_json_lacks_are_texts():
    assert field("Infinity").real() == math.inf and field("-Infinity").real() == -math.inf
    assert math.isnan(field("NaN").real())


@pytest.mark.parametrize(
    ("value", "method"),
    [
        *((1, "text"), (1, "flag"), (True, "integer"), ("1", "integer"), (1.0, "integer"), (1 << 63, "integer")),
        *(("1", "real"), (True, "real"), (1 << 70, "real"), ({}, "items"), ([], "entries"), ([1], "union")),
        *(({"a": 1, "b": 2}, "union"), ({}, "union"), (None, "text")),
    ],
)
def test_other_types_are_refused_with_the_path(value: object, method: str):
    with pytest.raises(ArtifactError, match=r"^it\[0\] is "):
        getattr(field([value]).items()[0], method)()


def test_records_have_the_fields_they_need_and_no_others_that_say_anything():
    with pytest.raises(ArtifactError, match="it lacks 'b'"):
        field({"a": 1}).record("a b")
    assert set(field({"a": 1, "new": None, "list": []}).record("a")) >= {"a"}
    with pytest.raises(UnsupportedError, match="'new' is newer"):
        field({"a": 1, "new": 0.5}).record("a")


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"[1,]", b"NaN", b"[Infinity]", b"1e999", b"9" * 5000, b"\xff", b'{"x": 1, "x": 2}'),
        *(b"[" * 100000, b'{"a":' * 100000),
    ],
)
def test_what_is_no_json_text_is_refused(text: bytes):
    with pytest.raises(ArtifactError, match=r"^model is not valid JSON"):
        parse(text, "model")


def test_repeated_names_are_found_in_time_that_grows_with_the_text():
    text = "{" + ",".join(f'"n{i}": 1' for i in range(100000)) + ',"n99999": 2}'
    with pytest.raises(ArtifactError, match="duplicate name 'n99999'"):
        parse(text.encode(), "model")


def test_long_values_are_cut_in_messages():
    with pytest.raises(ArtifactError) as error:
        Field("x" * 10000, "it").integer()
    assert len(str(error.value)) < 300
