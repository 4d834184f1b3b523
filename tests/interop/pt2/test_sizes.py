"""Sizes: PyTorch's expressions become sizes of named dimensions, and nothing in them is run."""

from __future__ import annotations

from typing import Any

import pytest

from graphc.base.sizes.size import LARGEST, bounds, hint
from graphc.errors import ArtifactError, GraphcError, UnsupportedError
from graphc.interop.pt2.sizes import ProgramSizes
from tests.interop.pt2.kept import field


def ranges(**known: tuple[int | None, int | None]) -> ProgramSizes:
    return ProgramSizes(field({n: {"min_val": low, "max_val": high} for n, (low, high) in known.items()}))


def read(text: str, sizes: ProgramSizes | None = None, number: int | None = None) -> Any:
    expected = None if number is None else {"as_int": number}
    return (sizes or ranges(s0=(1, 40), s1=(1, 40))).of(field({"as_expr": {"expr_str": text, "hint": expected}}))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s0", "size_s0"),
        ("Symbol('s0', positive=True, integer=True)", "size_s0"),
        ("2*s0", "2*size_s0"),
        ("s0 + 1", "size_s0 + 1"),
        ("Add(Mul(Integer(2), Symbol('s0')), Integer(-3))", "2*size_s0 - 3"),
        ("FloorDiv(s0 + s1, Integer(2))", "((size_s0 + size_s1) // 2)"),
        ("(s0 // 2)", "(size_s0 // 2)"),
        ("Pow(s0, Integer(2))", "size_s0*size_s0"),
        ("s0 - s0", "0"),
        ("Max(3, s0 - 4)", "max(size_s0 - 7, 0) + 3"),
        ("Min(s0, Integer(8), 9)", "size_s0 - max(size_s0 - 8, 0)"),
        ("7", "7"),
    ],
)
def test_expressions_are_sizes(text: str, shown: str):
    assert str(read(text)) == shown


def test_a_symbol_is_one_dimension_with_its_range_and_what_it_was_in_the_export():
    sizes = ranges(s0=(3, 8))
    size = read("s0", sizes, 5)
    assert (bounds(size), hint(size)) == ((3, 8), 5)
    assert str(read("s0", sizes) - size) == "0"
    assert hint(read("s9", ranges(s9=(3, 8)), 100)) == 8


def test_a_lower_end_of_2_is_what_pytorch_takes_for_granted():
    assert bounds(read("s0", ranges(s0=(2, None)))) == (1, LARGEST)
    assert bounds(read("s0", ranges(s0=(0, None)))) == (0, LARGEST)
    assert bounds(read("s0", ranges(s0=(None, None)))) == (1, LARGEST)
    assert read("s0", ranges(s0=(4, 4))) == 4


def test_shapes_hold_no_negative_sizes():
    sizes = ranges(s0=(1, 4))
    whole, negative = {"as_int": 3}, {"as_int": -1}
    symbolic = {"as_expr": {"expr_str": "s0 - 2", "hint": None}}
    assert sizes.shape(field([whole])) == (3,)
    for wrong in (negative, symbolic, {"as_int": 1 << 40}):
        with pytest.raises(ArtifactError, match="which is not in 0"):
            sizes.shape(field([whole, wrong]))


@pytest.mark.parametrize(
    "text",
    [
        *("__import__('os').system('true')", "s0.real", "s0[0]", "lambda: 1", "[s0]", "s0 if s0 else 1", "1.5*s0"),
        *("Rational(1, 2)", "Foo(s0)", "s0 / 2", "s0 // 0", "s0 % 0", "True", "Pow(s0, s1)", "Pow(2, -1)", "Add()"),
        *("Symbol('for i')", "Symbol(3.5)", "Integer(1 << 99)", "Pow(Pow(Integer(9), Integer(64)), Integer(64))"),
        *("9" * 30, "(s0 + s1 + 1)" + "*(s0 + s1 + 2)" * 60, "s0**64", "FloorDiv(s0)", "Sub(s0, s0, s0)"),
    ],
)
def test_what_is_no_expression_of_sizes_is_refused(text: str):
    with pytest.raises(UnsupportedError, match="the size"):
        read(text)


@pytest.mark.parametrize("text", ["", "s0 +", "(" * 900, "s0; s0", "\0", "s0 = 1"])
def test_what_is_no_expression_at_all_is_refused(text: str):
    with pytest.raises(ArtifactError, match="is not a size"):
        read(text)


@pytest.mark.parametrize("text", ["s0" + " + s0" * 400, "-" * 990 + "1", "+".join("s0" for _ in range(300))])
def test_long_expressions_are_refused_before_they_are_computed(text: str):
    with pytest.raises(GraphcError):
        read(text)


def test_wrong_ranges_and_kinds_are_refused():
    for low, high in ((5, 3), ("1", 3), (1 << 70, None)):
        with pytest.raises(ArtifactError):
            ranges(s0=(low, high))  # type: ignore[arg-type]
    with pytest.raises(ArtifactError, match="not one of as_int, as_expr"):
        ranges().of(field({"as_float": 1.0}))
