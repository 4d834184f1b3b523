"""Tables of the loader: hashes that are known, and every name is found through them."""

from __future__ import annotations

import struct

import pytest

from graphc.codegen.link.dynamic import by_bucket, gnu_hash, gnu_table, system_v_hash, system_v_table

NAMES = [f"name_{i}" for i in range(50)]


def test_hashes_of_known_names():
    assert (gnu_hash(""), gnu_hash("printf"), gnu_hash("exit")) == (0x1505, 0x156B2BB8, 0x7C967E3F)
    assert (system_v_hash(""), system_v_hash("printf"), system_v_hash("exit")) == (0, 0x077905A6, 0x0006CF04)


def found_by_gnu_table(table: bytes, names: list[str], first: int, name: str) -> int:
    """The number of a symbol, looked up as the loader does."""
    count, start, words, shift, bloom = struct.unpack_from("<IIIIQ", table)
    assert (start, words) == (first, 1)
    h = gnu_hash(name)
    if not (bloom >> h % 64 & 1 and bloom >> (h >> shift) % 64 & 1):
        return 0
    number = struct.unpack_from("<I", table, 24 + 4 * (h % count))[0]
    while number:
        link = struct.unpack_from("<I", table, 24 + 4 * (count + number - first))[0]
        if link | 1 == h | 1 and names[number - first] == name:
            return number
        number = 0 if link & 1 else number + 1
    return 0


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_the_gnu_table_finds_each_name_and_no_other(count: int):
    names = by_bucket(NAMES[:count])
    table = gnu_table(names, 4)
    assert [found_by_gnu_table(table, names, 4, name) for name in names] == [4 + i for i in range(count)]
    assert found_by_gnu_table(table, names, 4, "other") == 0


@pytest.mark.parametrize("count", [0, 1, 50])
def test_the_table_of_system_v_finds_each_name(count: int):
    names = ["", *NAMES[:count]]
    table = system_v_table(names)
    buckets, chain = struct.unpack_from("<II", table)
    assert chain == len(names) and len(table) == 4 * (2 + buckets + chain)
    for number, name in enumerate(names[1:], 1):
        at = struct.unpack_from("<I", table, 4 * (2 + system_v_hash(name) % buckets))[0]
        while at and names[at] != name:
            at = struct.unpack_from("<I", table, 4 * (2 + buckets + at))[0]
        assert at == number
