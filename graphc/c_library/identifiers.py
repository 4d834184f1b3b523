"""Convert names of models, entries, inputs and sizes to C and C++ identifiers."""

from __future__ import annotations

from collections.abc import Iterable

_WORDS = """\
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl const
    const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern false
    float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast restrict return short signed sizeof static static_assert static_cast
    struct switch template this thread_local throw true try typedef typeid typename typeof union unsigned using virtual
    void volatile wchar_t while xor xor_eq int32_t int64_t uint8_t int8_t size_t main linux unix errno NULL"""
_RESERVED = frozenset(_WORDS.split())
"""Keywords of C and C++, and names defined by common headers."""


def identifier(name: str) -> str:
    """Replace characters that C identifiers cannot have by ``_``, and append ``_`` to keywords."""
    cleaned = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name).strip("_") or "x"
    if cleaned[0].isdigit():
        cleaned = f"x{cleaned}"
    return f"{cleaned}_" if cleaned in _RESERVED else cleaned


def distinct(names: Iterable[str], reserved: Iterable[str] = ()) -> list[str]:
    """Return an identifier for each name, unique up to case and not in ``reserved``; later duplicates get a number."""
    used, identifiers = {name.lower() for name in reserved}, []
    for name in names:
        candidate = base = identifier(name)
        number = 1
        while candidate.lower() in used:
            number += 1
            candidate = f"{base}_{number}"
        used.add(candidate.lower())
        identifiers.append(candidate)
    return identifiers
