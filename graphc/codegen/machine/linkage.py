"""How object code of a family of processors is linked: its relocations, its stubs, the size of its pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

PAGE = 4096
"""Bytes of the pages that instructions with an address in two parts count in."""
WORD = 8
"""Bytes of an address."""


@dataclass(frozen=True)
class Relocation:
    """What a linker writes at a place of object code, in the words of the processor's ABI: S is the address of a
    symbol, A the addend, P the place, and G the address of the symbol's word in the table of addresses (the GOT)."""

    name: str
    """As the ABI calls it."""
    value: str
    """What is written, one of VALUES."""
    nbytes: int = 0
    """Bytes at the place that are read and written."""
    patch: Callable[[int, int], int] = lambda old, value: value
    """(what stood there, value) -> what is to stand there, both without sign."""
    limits: tuple[int, int] = (0, 0)
    """The least value that fits and the first one beyond those that do; any does where they are equal."""

    def fits(self, value: int) -> bool:
        """Whether the place can hold a value."""
        low, high = self.limits
        return low == high or low <= value < high


VALUES = {
    "nothing": "a hint",
    "address": "S + A as a whole word, which the loader completes",
    "absolute": "S + A, of which only what does not depend on where the library lies may be kept",
    "relative": "S + A - P",
    "page": "the page of S + A less the page of P",
    "got": "G + A - P",
    "got page": "the page of G + A less the page of P",
    "got absolute": "G + A, as with absolute",
    "pair": "the value of the relocation that stands at the address S, of which this holds the lower part",
}
"""Kinds of values. A symbol of another library has a stub, whose address is S."""


@dataclass(frozen=True, kw_only=True)
class Linkage:
    """The rules of one family, from its ELF ABI."""

    machine: int
    """``e_machine`` of its files."""
    page_bytes: int
    """Bytes of the largest pages that Linux may have there: what has other permissions starts on another one."""
    relocations: Mapping[int, Relocation]
    """By the number of their type."""
    relative: int
    """Type with which the loader adds the address of the library."""
    absolute: int
    """Type with which the loader writes the address of a symbol into a word."""
    slot: int
    """The same for a word of the GOT."""
    stub_bytes: int
    """Bytes of a stub."""
    stub: Callable[[int, int], bytes]
    """(address of the stub, that of its word of the GOT) -> code that jumps to the address in that word."""


def signed(bits: int) -> tuple[int, int]:
    """The limits of a value with so many bits, one of them its sign."""
    return -(1 << bits - 1), 1 << bits - 1


def either(bits: int) -> tuple[int, int]:
    """The limits of a value with so many bits, whether one of them is its sign or not."""
    return -(1 << bits - 1), 1 << bits
