"""Files of wrong programs: each case has a title, the expected message and the text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Case:
    """One wrong program."""

    message: str
    """``parse``: the whole first line of the ParseError. ``verify N``: the message that stands under line N."""
    line: int
    """0 for a parse error."""
    text: str


def read_cases(name: str, mark: str) -> list:
    """The cases of a file in this folder, as parameters named by their titles.

    A case starts with ``<mark> ----- title`` and ``<mark> parse: message`` or ``<mark> verify N: message``.
    """
    text = (Path(__file__).parent / name).read_text()
    cases = []
    for part in text.split(f"{mark} ----- ")[1:]:
        title, expected, program = part.split("\n", 2)
        kind, _, message = expected.removeprefix(f"{mark} ").partition(": ")
        line = int(kind.split()[1]) if kind.startswith("verify") else 0
        cases.append(pytest.param(Case(message, line, program.strip("\n") + "\n"), id=title.replace(" ", "-")))
    return cases


def message_under(where: str, line: int) -> str:
    """Return the message shown by an excerpt under a line."""
    shown = where.split("\n")
    (position,) = [i for i, text in enumerate(shown) if text.startswith(f"{line:>5} | ")]
    return shown[position + 1].partition("^ ")[2]
