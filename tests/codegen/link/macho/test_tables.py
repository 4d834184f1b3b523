"""Tables for the loader of macOS: rebases, exports, and the signature, each read by code of its own."""

from __future__ import annotations

import hashlib
import random
import struct

from graphc.codegen.link.macho.tables import ad_hoc_signature, export_trie, rebase_opcodes, signature_bytes
from tests.codegen.link.macho.macos_objects import exports, number


def rebased(code: bytes) -> list[tuple[int, int]]:
    """Return segment and offset of each rebased word."""
    words, at, segment, offset = list[tuple[int, int]](), 1, 0, 0
    assert code[0] == 0x11 and code[-1] == 0
    while code[at]:
        opcode, low, at = code[at] & 0xF0, code[at] & 15, at + 1
        value, at = number(code, at)
        if opcode == 0x20:
            segment, offset = low, value
        else:
            assert (opcode, low) == (0x60, 0)
            words += [(segment, offset + 8 * i) for i in range(value)]
    return words


def test_exports_are_found_by_their_prefixes():
    names = {"_net_run": 0x1230, "_net_run_inputs": 0x40_0000, "_net": 8, "_other": 0x7F, "b": 0x80}
    assert exports(export_trie(names)) == names
    assert export_trie({}) == b""


def test_large_tries_have_offsets_of_several_bytes():
    generator = random.Random(3)
    names = {f"_{generator.randrange(10**9):x}_{i}": generator.randrange(1 << 30) for i in range(3000)}
    assert exports(export_trie(names)) == names


def test_words_in_a_row_are_rebased_together():
    words = {1: [24, 8, 16, 400], 2: [0]}
    code = rebase_opcodes(words, 1)
    assert sorted(rebased(code)) == [(1, 8), (1, 16), (1, 24), (1, 400), (2, 0)]
    assert len(code) == 1 + 2 * 4 + 1 + 1 + 4 and rebase_opcodes({}, 1) == b""


def test_a_signature_has_the_digest_of_each_page():
    code = random.Random(5).randbytes(4096 * 2 + 100)
    blob = ad_hoc_signature("net.dylib", code, 8192)
    assert len(blob) == signature_bytes("net.dylib", len(code))
    magic, length, count, slot, start = struct.unpack_from(">5I", blob)
    assert (magic, length, count, slot, start) == (0xFADE0CC0, len(blob), 1, 0, 24)
    magic, length, version, flags, hashes, name, special, pages, limit = struct.unpack_from(">9I", blob, start)
    assert (magic, length, version, flags) == (0xFADE0C02, len(blob) - 24, 0x20400, 0x20002)
    assert blob[start + 36 : start + 40] == bytes([32, 2, 0, 12]) and special == 0
    assert blob[start + name :].startswith(b"net.dylib\0") and (pages, limit) == (3, len(code))
    assert struct.unpack_from(">3Q", blob, start + 64) == (0, 8192, 0)
    for page in range(pages):
        digest = blob[start + hashes + 32 * page :][:32]
        assert digest == hashlib.sha256(code[4096 * page : 4096 * (page + 1)]).digest()
