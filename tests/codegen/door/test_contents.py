"""LLVM text of the function that compares blocks of memory with what they held."""

from __future__ import annotations

import ctypes

import numpy as np

from graphc.codegen.door.contents import BLOCK, CHANGED, COMPARE, FLAG, SPAN_WORDS, UNCHANGED, emit_compare
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import host_target
from graphc.compiler.ready import prepare_threads
from graphc.runtime.loader import host, link_forever, load_object

RANDOM = np.random.default_rng(0)


def nh(data: np.ndarray, key: np.ndarray) -> int:
    """The formula of the sum, for data of a multiple of 64 bytes."""
    words = (data.view(np.uint32) + key.view(np.uint32)[: len(data) // 4]).astype(object)
    return int(sum(words[::2] * words[1::2])) % 2**64


def test_sums_are_those_of_the_formula_with_zeros_behind_the_last_byte():
    library = load_object(build_object(emit_compare(host_target()), host_target()), COMPARE, host())
    keys = RANDOM.integers(0, 256, 2 * BLOCK, np.uint8)
    data = RANDOM.integers(0, 256, BLOCK + 100, np.uint8)
    sums = np.zeros((2, 2), np.uint64)
    span = np.array([data.ctypes.data, data.nbytes, sums.ctypes.data, 0, 0], np.int64)
    table = np.array([1, 2, keys.ctypes.data, span.ctypes.data, 0], np.int64)
    assert len(span) == SPAN_WORDS
    library.entry(ctypes.c_void_p(table.ctypes.data))
    padded = np.concatenate([data, np.zeros(28, np.uint8)])
    expected = [[nh(part, keys[k : k + BLOCK]) for k in (0, BLOCK)] for part in (padded[:BLOCK], padded[BLOCK:])]
    assert sums.tolist() == expected and table[CHANGED] == span[FLAG] == 1
    table[CHANGED] = span[FLAG] = 0
    library.entry(ctypes.c_void_p(table.ctypes.data))
    assert not table[CHANGED] and not span[FLAG]


def test_what_has_changed_is_told_without_a_trace():
    code = build_object(emit_compare(host_target()), host_target())
    prepare_threads(code)
    found = link_forever(code, (COMPARE, UNCHANGED), host())
    compare = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(found[COMPARE])
    unchanged = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(found[UNCHANGED])
    keys = RANDOM.integers(0, 256, 2 * BLOCK, np.uint8)
    blocks = [RANDOM.integers(0, 256, size, np.uint8) for size in (2 * BLOCK + 5, 0, 7, BLOCK)]
    sums = [np.zeros((-(-b.nbytes // BLOCK), 2), np.uint64) for b in blocks]
    firsts = np.cumsum([0, *map(len, sums)]).tolist()
    rows = [(b.ctypes.data, b.nbytes, s.ctypes.data, f, 0) for b, s, f in zip(blocks, sums, firsts, strict=False)]
    spans = np.array(rows, np.int64)
    table = np.array([len(blocks), firsts[-1], keys.ctypes.data, spans.ctypes.data, 0], np.int64)
    assert not unchanged(table.ctypes.data)
    compare(table.ctypes.data)
    assert unchanged(table.ctypes.data)
    for block in (blocks[0], blocks[2], blocks[3]):
        for at in {0, len(block) // 2, len(block) - 1}:
            before = [s.copy() for s in sums]
            block[at] ^= 64
            assert not unchanged(table.ctypes.data) and not unchanged(table.ctypes.data)
            assert all(map(np.array_equal, before, sums))
            block[at] ^= 64
            assert unchanged(table.ctypes.data)
