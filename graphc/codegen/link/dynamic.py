"""Hash tables with which the loader finds the symbols of a shared library."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import reduce

_BLOOM_SHIFT, _BLOOM_BITS = 26, 64
"""Shift and bits of the Bloom filter, which rejects most absent names at once: one word, two of its bits for each
name."""


def gnu_hash(name: str) -> int:
    """Return the hash of a name in the GNU hash table: h = 33 h + c from 5381 on, 32 bits."""
    return reduce(lambda h, c: h * 33 + c & 0xFFFFFFFF, name.encode(), 5381)


def system_v_hash(name: str) -> int:
    """Return the hash of a name in the table that all loaders know (System V ABI, chapter 5)."""
    h = 0
    for c in name.encode():
        h = (h << 4) + c
        high = h & 0xF0000000
        h = (h ^ high >> 24) & ~high
    return h & 0xFFFFFFFF


def _buckets(count: int) -> int:
    return max(1, count // 2)


def by_bucket(names: Sequence[str]) -> list[str]:
    """Return names in the order required by the GNU table."""
    return sorted(names, key=lambda name: (gnu_hash(name) % _buckets(len(names)), name))


def gnu_table(names: Sequence[str], first: int) -> bytes:
    """Return the GNU hash table of names in the order of ``by_bucket``. The first one is entry ``first`` of the symbol
    table."""
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
    """Return the hash table of all symbols, the first of which has no name."""
    count, chain = _buckets(len(names)), [0] * len(names)
    starts = [0] * count
    for i, name in enumerate(names):
        if name:
            bucket = system_v_hash(name) % count
            chain[i], starts[bucket] = starts[bucket], i
    return struct.pack(f"<{2 + count + len(chain)}I", count, len(chain), *starts, *chain)
