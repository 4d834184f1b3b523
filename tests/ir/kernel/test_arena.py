"""Pairs of storages that the arena asks about."""

from __future__ import annotations

import pytest

import graphc as gc
from graphc.base.dtypes import float32
from graphc.ir.kernel.arena import FixedArena, SizedArena, ends_before
from graphc.ir.kernel.statements import Storage


def _storage(name: str, nbytes: int, offset: int) -> Storage:
    return Storage(name, float32, (nbytes // 4,), "temp", offset=offset)


@pytest.mark.parametrize("kind", [FixedArena, SizedArena])
def test_neighbors_are_pairs_until_one_is_removed(kind: type) -> None:
    arena, (a, b, c) = kind(), (_storage(name, 64, 64 * i) for i, name in enumerate("abc"))
    assert list(arena.add(a)) == []
    assert list(arena.add(c)) == [(a, c)]
    assert (b, c) in list(arena.add(b))
    arena.remove(b)
    assert all(b not in pair for pair in list(arena.add(_storage("d", 64, 192))))


def test_ends_of_open_sizes() -> None:
    size = gc.Dim("n", 1, 100)
    assert ends_before(_storage("a", size * 4, 0), size * 4)
    assert ends_before(_storage("a", size * 4, 0), 448)
    assert not ends_before(_storage("a", size * 4, 0), 64)
