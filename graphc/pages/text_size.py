"""Texts of boxes: estimated widths, shortened texts, and shapes as people write them."""

from __future__ import annotations

import re

_WIDTHS = {
    0.25: "ijl'|",
    0.33: " !,./:;I[]\\ftr()-`",
    0.4: '"*{}^',
    0.55: "abcdeghknopqsuvxyzJL_$#?FTZ",
    0.56: "0123456789",
    0.7: "ABEKPSVXY&CDHNRUw<>=+~×−",
    0.85: "GOQmM",
    1.0: "W%@→…",
}
"""Widths of characters of sans-serif fonts, as fractions of the font size."""
_WIDTH_OF = {character: width for width, characters in _WIDTHS.items() for character in characters}
_SLACK = 1.15
"""DejaVu Sans, the widest of the usual fonts, is this much wider than Helvetica."""
_BOLD = 1.12


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the estimated width of a text in a sans-serif font of ``size`` pixels; wide fonts take no more."""
    width = sum(_WIDTH_OF.get(character, 0.9) for character in text)
    return width * size * _SLACK * (_BOLD if bold else 1.0)


def clip(text: str, most: int) -> str:
    """Shorten a text to ``most`` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shape_text(type_text: str) -> str:
    """Return ``1×64×56×56`` for ``f32[1,64,56,56]``; other element types stand before the shape."""
    match = re.fullmatch(r"(\w+)\[(.*)\]", type_text)
    if not match:
        return type_text
    shape = match[2].replace(",", "×") or "scalar"
    return shape if match[1] == "f32" else f"{match[1]} {shape}"


def literal_text(text: str) -> str:
    """Return ``1.0`` for ``f32(1.0)``."""
    match = re.fullmatch(r"\w+\((.*)\)", text)
    return match[1] if match else text


def last_name(path: str) -> str:
    """Return the last component of a dotted path that is not a number."""
    return next((name for name in reversed(path.split(".")) if name and not name.isdigit()), path)
