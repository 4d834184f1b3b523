"""Shows a line of a program among its neighbours, with a message under it."""

from __future__ import annotations

from collections.abc import Sequence


def excerpt(lines: Sequence[str], number: int, message: str, around: int = 3) -> str:
    """Lines ``number - around .. number + around`` (counted from 0); ``^ message`` stands under line ``number``.

    The result, which starts with the line number, stands in the ``where`` part of an error.
    """
    first, last = max(0, number - around), min(len(lines), number + around + 1)
    shown = []
    for i in range(first, last):
        shown.append(f"{i + 1:>5} | {lines[i]}".rstrip())
        if i == number:
            margin = len(lines[i]) - len(lines[i].lstrip())
            shown.append(f"{'':>5} | {' ' * margin}^ {message}")
    return "\n".join([f"line {number + 1}", *shown])
