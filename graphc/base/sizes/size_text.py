"""Text of symbolic sizes: sums of products, with quotients in parentheses, and ``max(size, 0)``."""

from __future__ import annotations

import re
from typing import Any

LOOP = re.compile(r"[a-z](r|c|j|y|moved)?_?[0-9]+(_some)?|once_[0-9]+")
"""Names of kernel loops."""
NAME = r"`[^`\n]*`|[A-Za-z_]\w*"
"""Pattern of the name of a dimension in texts: quoted unless it is a word that names no kernel loop, nor ``max``."""
_WORD = re.compile(r"[A-Za-z_]\w*")


def quoted(name: str) -> str:
    """Return the name of a dimension as texts have it: ``batch``, `` `batch size` ``."""
    return name if _WORD.fullmatch(name) and not LOOP.fullmatch(name) and name != "max" else f"`{name}`"


def text_of(terms: Any) -> str:
    """Return the text of the terms of a size (see base.sizes.size)."""
    return " + ".join(_term_text(monomial, coefficient) for monomial, coefficient in terms).replace("+ -", "- ")


def as_operand(value: Any) -> str:
    """Return the text of a size as an operand of a division, in parentheses unless it is a number or an atom."""
    plain = type(value) is int or is_atom(value.terms)
    return str(value) if plain else f"({value})"


def is_atom(terms: Any) -> bool:
    """Return whether terms are a single atom."""
    monomial, coefficient = terms[0]
    return len(terms) == 1 and coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1


def _term_text(monomial: Any, coefficient: int) -> str:
    factors = [str(atom) for atom, power in monomial for _ in range(power)]
    if not factors:
        return str(coefficient)
    head = [] if coefficient == 1 else ["-"] if coefficient == -1 else [f"{coefficient}*"]
    return "".join([*head, "*".join(factors)])
