"""Occupancy of the arena: storages in use at once, and the pairs of them that must not overlap."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from functools import lru_cache

from graphc.base.sizes.size import hint, is_size
from graphc.base.sizes.size_relations import at_most
from graphc.base.sizes.size_terms import REMEMBERED
from graphc.ir.kernel.statements import Storage, aligned


def ends_before(storage: Storage, offset: int) -> bool:
    """Check whether a storage ends before an offset in the arena. Run-time offsets are sums of rounded sizes, so the
    proof is easier for the storage including its padding."""
    if type(storage.offset) is int and type(storage.nbytes) is int and type(offset) is int:
        return storage.offset + storage.nbytes <= offset
    return _end_before(storage.offset, storage.nbytes, offset)


@lru_cache(maxsize=REMEMBERED)
def _end_before(offset: int, nbytes: int, limit: int) -> bool:
    if at_most(offset + nbytes, limit):
        return True
    return is_size(nbytes) and at_most(offset + aligned(nbytes), limit)


class FixedArena:
    """Storages in use, in the order of their offsets."""

    def __init__(self) -> None:
        self.order: list[tuple[int, str]] = []
        self.storages: dict[str, Storage] = {}

    def add(self, storage: Storage) -> Iterator[tuple[Storage, Storage]]:
        """Insert a storage; yield the pairs of which the first must end before the second begins."""
        self.storages[storage.name] = storage
        entry = (storage.offset, storage.name)
        insort(self.order, entry)
        position = bisect_left(self.order, entry)
        for lower, upper in ((position - 1, position), (position, position + 1)):
            if lower >= 0 and upper < len(self.order):
                yield self.storages[self.order[lower][1]], self.storages[self.order[upper][1]]

    def remove(self, storage: Storage) -> None:
        """Remove a storage."""
        del self.order[bisect_left(self.order, (storage.offset, storage.name))]


class SizedArena:
    """Storages in use whose offsets have no order: sizes known only at run time."""

    def __init__(self) -> None:
        self.storages: dict[str, tuple[Storage, int, int]] = {}
        """Storages with their expected start and end."""

    def add(self, storage: Storage) -> Iterator[tuple[Storage, Storage]]:
        """Insert a storage; yield the pairs of which the first must end before the second begins."""
        start, end = hint(storage.offset), hint(storage.offset + storage.nbytes)
        for other, low, high in self.storages.values():
            # A storage that comes later for expected sizes is not tried in front.
            behind = high <= start and (end > low or ends_before(other, storage.offset))
            yield (other, storage) if behind else (storage, other)
        self.storages[storage.name] = storage, start, end

    def remove(self, storage: Storage) -> None:
        """Remove a storage."""
        del self.storages[storage.name]
