"""Names of models, entries, inputs and sizes as identifiers of C and C++."""

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
"""Words of C and C++, and names that headers give a meaning."""


def identifier(name: str) -> str:
    """The name with ``_`` for what no identifier of C has, and behind words of C and C++."""
    made = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name).strip("_") or "x"
    if made[0].isdigit():
        made = f"x{made}"
    return f"{made}_" if made in _RESERVED else made


def distinct(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """An identifier for each name: they differ in more than case and are none of ``taken``; later ones get a number."""
    used, found = {name.lower() for name in taken}, []
    for name in names:
        made = base = identifier(name)
        number = 1
        while made.lower() in used:
            number += 1
            made = f"{base}_{number}"
        used.add(made.lower())
        found.append(made)
    return found
