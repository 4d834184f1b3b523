"""Contents of an excerpt."""

from __future__ import annotations

from graphc.ir.excerpt import excerpt

LINES = ["head {", "  a", "", "    c", "  d", "}"]


def test_middle():
    assert excerpt(LINES, 3, "wrong", around=1) == ("line 4\n    3 |\n    4 |     c\n      |     ^ wrong\n    5 |   d")


def test_first_and_last_line():
    assert excerpt(LINES, 0, "m", around=1) == "line 1\n    1 | head {\n      | ^ m\n    2 |   a"
    assert excerpt(LINES, 5, "m", around=1) == "line 6\n    5 |   d\n    6 | }\n      | ^ m"


def test_everything_when_the_text_is_short():
    assert excerpt(LINES, 2, "m").count("\n") == len(LINES) + 1
