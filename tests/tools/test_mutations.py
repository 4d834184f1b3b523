"""Mechanical changes of a source, by kind."""

from __future__ import annotations

import pytest

from tools.mutations import find_mutations, is_python


def changes(source: str) -> set[tuple[str, str]]:
    """Return kind and changed source of all changes, of which each is Python."""
    texts = {(m.kind, m.apply(source)) for m in find_mutations(source)}
    assert all(is_python(text) for _, text in texts)
    assert all(text != source for _, text in texts)
    return texts


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", {("compare", "a <= b")}),
        ("(a) == (b)", {("compare", "(a) != (b)")}),
        ("a is not None", {("compare", "a is None")}),
        ("a in b", {("compare", "a not in b")}),
        ("a < b <= c", {("compare", "a <= b <= c"), ("compare", "a < b < c")}),
        ("a - b", {("operator", "((a) + (b))"), ("swap", "((b) - (a))")}),
        ("a * b", {("operator", "((a) + (b))")}),
        ("a and b", {("and/or", "((a) or (b))"), ("part", "((a))"), ("part", "((b))")}),
        ("not a", {("negation", "(a)")}),
        ("x = 3", {("constant", "x = 4"), ("constant", "x = (2)")}),
        ("x = True", {("constant", "x = False")}),
        ("x = 0.5", {("constant", "x = 2.0")}),
        ("a if b else c", {("condition", "a if True else c"), ("condition", "a if False else c")}),
        ("[a for a in b if c]", {("filter", "[a for a in b if True]")}),
        ("f(a)", {("dropped", "pass")}),
        ("f(a, b)", {("dropped", "pass"), ("arguments", "f(b, a)")}),
        ("x = min(a)", {("function", "x = max(a)")}),
        ("self.x = a", {("dropped", "pass")}),
        ("x = a", set()),
    ],
)
def test_kinds_of_changes(source: str, expected: set[tuple[str, str]]):
    assert changes(source) == expected


def test_statements_of_functions():
    source = "def f(x: int = A) -> None:\n    while x:\n        x += y\n        break\n    return x\n"
    texts = changes(source)
    assert ("dropped", source.replace("x += y", "pass")) in texts
    assert ("dropped", source.replace("break", "pass")) in texts
    assert ("condition", source.replace("while x", "while False")) in texts
    assert ("returned", source.replace("return x", "return None")) in texts
    assert len(texts) == 4


def test_texts_annotations_and_errors_are_left_alone():
    source = '"""One."""\nimport a\nx: Literal[1]\ndef f(x: Literal[2]) -> Literal[3]:\n    raise E(f"{1 + 2}", 4)\n'
    assert not find_mutations(source)


def test_places_count_characters_and_not_bytes():
    source = 'x = "äöü", 3\ny = "ß" < z\n'
    assert ("constant", source.replace("3", "4")) in changes(source)
    assert ("compare", source.replace("<", "<=")) in changes(source)


def test_a_change_is_described_on_one_line():
    source = "x = (a\n     and b)"
    (first, *_) = [m for m in find_mutations(source) if m.kind == "and/or"]
    assert first.describe(source) == "a and b -> ((a) or (b))"
    assert first.line == 1
