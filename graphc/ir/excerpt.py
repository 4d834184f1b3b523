"""Excerpts of program texts, with an error message under the faulty line."""

from __future__ import annotations

from collections.abc import Sequence


def excerpt(lines: Sequence[str], number: int, message: str, around: int = 3) -> str:
    """Return lines ``number - around .. number + around`` (counted from 0), with ``^ message`` under line ``number``.

    The result, which starts with the line number, is the ``where`` part of an error.
    """
    first, last = max(0, number - around), min(len(lines), number + around + 1)
    lines_out = []
    for i in range(first, last):
        lines_out.append(f"{i + 1:>5} | {lines[i]}".rstrip())
        if i == number:
            margin = len(lines[i]) - len(lines[i].lstrip())
            lines_out.append(f"{'':>5} | {' ' * margin}^ {message}")
    return "\n".join([f"line {number + 1}", *lines_out])
