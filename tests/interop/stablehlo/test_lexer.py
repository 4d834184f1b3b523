"""Tokens of MLIR text."""

import pytest

from graphc.base.errors import ParseError
from graphc.interop.stablehlo.lexer import Cursor, tokens_of


def texts(text):
    return [(t.kind, t.text) for t in tokens_of(text)[:-1]]


def test_kinds_of_tokens():
    found = texts('%3#1 = stablehlo.add @"f(x)" -0x7F 1.5e-3 tensor<3xcomplex<f64>> "a\\"b" ^bb0 -> #stablehlo')
    assert found == [
        *(("value", "%3#1"), ("mark", "="), ("word", "stablehlo.add"), ("symbol", '@"f(x)"'), ("number", "-0x7F")),
        *(("number", "1.5e-3"), ("tensor", "tensor<3xcomplex<f64>>"), ("string", '"a\\"b"'), ("block", "^bb0")),
        *(("mark", "->"), ("alias", "#stablehlo")),
    ]


def test_locations_and_comments_are_left_out():
    text = '#loc = loc("a)b")\n// comment\nreturn %0 loc(callsite(#loc at "x.py":3:0))\n'
    assert texts(text) == [("word", "return"), ("value", "%0")]


def test_lines_count_from_one():
    assert [(t.text, t.line) for t in tokens_of('a "x\ny"\n\n  b')] == [("a", 1), ('"x\ny"', 1), ("b", 4), ("", 4)]


@pytest.mark.parametrize(("text", "message"), [("a\n\x01", "line 2: '.x01' is not a token"), ("x loc(", "no closing")])
def test_damage_is_an_error_with_the_line(text, message):
    with pytest.raises(ParseError, match=message):
        tokens_of(text)


def test_groups_are_passed_with_everything_inside():
    cursor = Cursor('{a = "}", b = [1, {c}]} rest')
    cursor.skip_group()
    assert cursor.next().text == "rest"
    with pytest.raises(ParseError, match="expected '}', found the end"):
        Cursor("{a [1]").skip_group()
