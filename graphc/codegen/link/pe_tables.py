"""Tables of a Windows library for its loader: exports, base relocations, and functions for the unwinder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from struct import Struct, pack

from graphc.codegen.link.pe_image import PAGE

_EXPORTS = Struct("<IIHHIIIIIII")
"""Flags, time, version, address of the library's name, first ordinal, counts of addresses and names, addresses of the
tables of addresses, names and ordinals."""
_BLOCK = Struct("<II")
"""Page and bytes of a block of base relocations."""
_TYPE_SHIFT = 12
FUNCTION_BYTES = 12
"""Bytes of a record of a function in ``.pdata``: addresses of its begin, its end and its unwind codes."""


def export_bytes(library: str, names: Sequence[str]) -> int:
    """Return the bytes of the export directory of these names."""
    return len(export_directory(library, names, [0] * len(names), 0))


def export_directory(library: str, names: Sequence[str], addresses: Sequence[int], start: int) -> bytes:
    """Return the export directory at the address ``start``: ``names``, which are sorted, and their addresses. All
    addresses are relative to the image."""
    count = len(names)
    table = start + _EXPORTS.size
    name_table = table + 4 * count
    ordinals = name_table + 4 * count
    text = ordinals + 2 * count
    texts, starts = bytearray(library.encode() + b"\0"), list[int]()
    for name in names:
        starts.append(text + len(texts))
        texts += name.encode() + b"\0"
    head = _EXPORTS.pack(0, 0, 0, 0, text, 1, count, count, table, name_table, ordinals)
    numbers = pack(f"<{count}I", *addresses), pack(f"<{count}I", *starts), pack(f"<{count}H", *range(count))
    return b"".join([head, *numbers, texts])


def base_relocations(addresses: Iterable[int], kind: int) -> bytes:
    """Return the table of the words to which the loader adds the distance from the preferred address of the image.
    ``addresses`` are relative to the image."""
    blocks = []
    for page, words in groupby(sorted(addresses), key=lambda address: address // PAGE):
        records = [kind << _TYPE_SHIFT | address % PAGE for address in words]
        records += [0] * (len(records) % 2)
        blocks.append(_BLOCK.pack(page * PAGE, _BLOCK.size + 2 * len(records)) + pack(f"<{len(records)}H", *records))
    return b"".join(blocks) or _BLOCK.pack(0, _BLOCK.size)


def sorted_functions(records: bytes) -> bytes:
    """Return the contents of ``.pdata`` in the order of addresses, which the unwinder searches by bisection."""
    functions = [records[at : at + FUNCTION_BYTES] for at in range(0, len(records), FUNCTION_BYTES)]
    return b"".join(sorted(functions, key=_start))


def _start(record: bytes) -> int:
    return int.from_bytes(record[:4], "little")
