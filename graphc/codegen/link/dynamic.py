"""What the loader reads of a shared library: its symbols, how they are found, and what is to be completed in it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import reduce

_BLOOM_SHIFT, _BLOOM_BITS = 26, 64
"""Of the filter that says of most names at once that they are not there: one word, two bits of it for each name."""


def gnu_hash(name: str) -> int:
    """The hash of a name in the table that the GNU loader prefers: h = 33 h + c from 5381 on, 32 bits."""
    return reduce(lambda h, c: h * 33 + c & 0xFFFFFFFF, name.encode(), 5381)


def system_v_hash(name: str) -> int:
    """The hash of a name in the table that all loaders know (System V ABI, chapter 5)."""
    found = 0
    for c in name.encode():
        found = (found << 4) + c
        high = found & 0xF0000000
        found = (found ^ high >> 24) & ~high
    return found & 0xFFFFFFFF


def _buckets(count: int) -> int:
    return max(1, count // 2)


def by_bucket(names: Sequence[str]) -> list[str]:
    """The order that the GNU table wants of names."""
    return sorted(names, key=lambda name: (gnu_hash(name) % _buckets(len(names)), name))


def gnu_table(names: Sequence[str], first: int) -> bytes:
    """The table of names in the order of ``by_bucket``, of which the first is so many entries from the start of the
    table of symbols."""
    count, hashes = _buckets(len(names)), [gnu_hash(name) for name in names]
    bloom = reduce(lambda bits, h: bits | 1 << h % _BLOOM_BITS | 1 << (h >> _BLOOM_SHIFT) % _BLOOM_BITS, hashes, 0)
    starts, chain = [0] * count, []
    for i, h in enumerate(hashes):
        bucket = h % count
        starts[bucket] = starts[bucket] or first + i
        last = i + 1 == len(hashes) or hashes[i + 1] % count != bucket
        chain.append(h & ~1 | last)
    head = struct.pack("<IIIIQ", count, first, 1, _BLOOM_SHIFT, bloom)
    return head + struct.pack(f"<{count + len(chain)}I", *starts, *chain)


def system_v_table(names: Sequence[str]) -> bytes:
    """The table of all symbols, whose first has no name."""
    count, chain = _buckets(len(names)), [0] * len(names)
    starts = [0] * count
    for i, name in enumerate(names):
        if name:
            bucket = system_v_hash(name) % count
            chain[i], starts[bucket] = starts[bucket], i
    return struct.pack(f"<{2 + count + len(chain)}I", count, len(chain), *starts, *chain)
