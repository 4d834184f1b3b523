"""Tokens with their places, and what the cursor refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphc.errors import ParseError
from graphc.ir.lexer import Cursor


def test_kinds_and_places():
    cursor = Cursor('graph @"a b" %x.1\n  ->1.5e-07 sha256:0123456789abcdef nan:7fc0 "s\\"" // end', "//")
    found = []
    while cursor.token.kind != "end":
        token = cursor.take()
        found.append((token.kind, token.text, token.line, token.column))
    assert found == [
        ("word", "graph", 1, 1),
        ("symbol", '@"a b"', 1, 7),
        ("value", "%x.1", 1, 14),
        ("mark", "->", 2, 3),
        ("number", "1.5e-07", 2, 5),
        ("digest", "sha256:0123456789abcdef", 2, 13),
        ("number", "nan:7fc0", 2, 37),
        ("string", '"s\\""', 2, 46),
    ]
    assert cursor.trailing_comment() == "end"


def test_ranges_are_no_decimals():
    cursor = Cursor("0..9", "#")
    assert [cursor.take().text for _ in range(3)] == ["0", "..", "9"]


def test_double_slash_is_a_comment_only_where_it_is_said():
    assert Cursor("a // b", "//").peek().kind == "end"
    assert Cursor("a // b", "#").peek().text == "//"


def test_trailing_comment_must_be_on_the_line():
    cursor = Cursor("a // one\n// two\nb", "//")
    cursor.take()
    assert cursor.trailing_comment() == "one"
    assert cursor.token.text == "b"
    assert cursor.trailing_comment() == "one"
    cursor.take()
    assert cursor.trailing_comment() == ""


def test_the_end_stays_the_end():
    cursor = Cursor("a")
    assert [cursor.take().kind for _ in range(4)] == ["word", "end", "end", "end"]
    cursor.expect_end()


@pytest.mark.parametrize(
    ("text", "read", "message"),
    [
        ("a ? b", lambda c: c, "line 1, column 3: unexpected character '?'"),
        ('\n "open', lambda c: c, "line 2, column 2: unexpected character '\"'"),
        ("b", lambda c: c.expect("a"), "line 1, column 1: expected 'a', found b"),
        ("b", lambda c: c.expect("a", "{"), "line 1, column 1: expected 'a' or '{', found b"),
        ("", lambda c: c.expect("a"), "line 1, column 1: expected 'a', the text ends"),
        ("a b", lambda c: (c.take(), c.expect_end()), "line 1, column 3: expected the end of the text, found b"),
        ("x", lambda c: c.name("value", "a value"), "line 1, column 1: expected a value, found x"),
        ("%x", lambda c: c.string(), "line 1, column 1: expected a string, found %x"),
        (r'"\q"', lambda c: c.string(), r'line 1, column 1: "\q" has a wrong escape'),
        ("f12", lambda c: c.dtype(), "line 1, column 1: expected an element type, found f12"),
        ("1.5", lambda c: c.integer(), "line 1, column 1: expected an integer, found 1.5"),
        ("-x", lambda c: c.integer(), "line 1, column 2: expected an integer, found x"),
        ("[2,-3]", lambda c: c.shape(), "line 1, column 4: expected a dimension, found -"),
        ("[2 3]", lambda c: c.shape(), "line 1, column 4: expected ',', found 3"),
        ("f32(x)", lambda c: c.scalar(), "line 1, column 5: expected a number, found x"),
        ("i8(200)", lambda c: c.scalar(), "line 1, column 4: 200 is not of type i8"),
        ("f32[2](1.0)", lambda c: c.array(), "line 1, column 1: f32[2] has 2 elements, not 1"),
    ],
)
def test_refusals(text: str, read: Callable, message: str):
    with pytest.raises(ParseError) as error:
        read(Cursor(text))
    assert error.value.what == message


def test_where_is_the_source_line_and_near_words_are_the_remedy():
    with pytest.raises(ParseError) as error:
        Cursor("  maximun x  ").lookup({"maximum": 1, "maximal": 2, "add": 3}, "an op")
    assert (error.value.where, error.value.remedy) == ("maximun x", "write maximum or maximal")


def test_a_shape_may_begin_with_a_negative_multiple():
    cursor = Cursor("dim n = 1..9 [-2*(n // 2) + n, n - 1]")
    cursor.declare_dims()
    assert [str(size) for size in cursor.shape()] == ["-2*(n // 2) + n", "n - 1"]


def test_scalars_and_arrays():
    assert Cursor("f32(-inf)").scalar()[0] == float("-inf")
    assert Cursor("bool(true)").scalar()[0] == True  # noqa: E712  (a numpy bool)
    array = Cursor("i64[2,2](1, 2, -3, 4)").array()
    assert array.tolist() == [[1, 2], [-3, 4]] and array.dtype == "int64"
    assert Cursor("f64(0.5)").array().shape == ()
