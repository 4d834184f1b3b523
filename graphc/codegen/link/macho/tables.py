"""Tables of a library for the loader of macOS: words that depend on its address, exports, and the signature.

Sources: Apple's mach-o/loader.h (rebase opcodes, export trie) and the kernel's bsd/sys/codesign.h.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct

from graphc.codegen.link.layout import align
from graphc.codegen.link.wasm_format import unsigned_leb, with_size
from graphc.codegen.machine.linkage import WORD

_SET_TYPE, _SET_POSITION, _REBASE_MANY, _DONE = 0x10, 0x20, 0x60, 0x00
"""Opcodes of rebasing: set the type; set segment and offset; rebase that many words in a row; end."""
_BLOBS = Struct(">IIIII4x")
"""Magic and bytes of all blobs, their count; type and offset of the only one; zeros."""
_DIRECTORY = Struct(">IIIIIIIIIBBBBIIIIQQQQ")
"""Magic, bytes, version, flags, offsets of hashes and identifier, counts of special slots and pages, bytes of code;
bytes and type of a hash, platform, binary logarithm of a page; four unused fields, bytes of code beyond 4 GB; start,
bytes and flags of the executable segment."""
_SIGNATURE, _CODE_DIRECTORY, _VERSION = 0xFADE0CC0, 0xFADE0C02, 0x20400
_AD_HOC_BY_LINKER = 0x20002
_SHA256, _PAGE_SHIFT = 2, 12
_HASH_BYTES = 32
SIGNATURE_ALIGNMENT = 16
"""Alignment of the signature, and of the hashes in it."""


def rebase_opcodes(words: Mapping[int, Iterable[int]], kind: int) -> bytes:
    """Return the opcodes that add the library's address to words. ``words`` holds the offsets in each segment by its
    number, ``kind`` is the type of words. Empty without words."""
    code = bytearray()
    for segment, offsets in words.items():
        counts, start = dict[int, int](), -1
        for offset in sorted(offsets):
            start = start if start in counts and offset == start + counts[start] * WORD else offset
            counts[start] = counts.get(start, 0) + 1
        for start, count in counts.items():
            code += bytes([_SET_POSITION | segment]) + unsigned_leb(start)
            code += bytes([_REBASE_MANY]) + unsigned_leb(count)
    return bytes([_SET_TYPE | kind]) + code + bytes([_DONE]) if code else b""


def _shared(first: bytes, last: bytes) -> int:
    """Return the number of bytes that two names, and all between them in order, begin with."""
    pairs = enumerate(zip(first, last, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(last)))


class _Node:
    """Node of a trie: the names, in order, that share their first ``depth`` bytes."""

    def __init__(self, names: Sequence[bytes], depth: int, addresses: Mapping[bytes, int]):
        self.offset, self.exported, self.edges = 0, b"", list[tuple[bytes, _Node]]()
        if names[0][depth:] == b"":
            self.exported, names = unsigned_leb(0) + unsigned_leb(addresses[names[0]]), names[1:]
        groups = dict[int, list[bytes]]()
        for name in names:
            groups.setdefault(name[depth], []).append(name)
        for group in groups.values():
            end = _shared(group[0], group[-1])
            self.edges.append((group[0][depth:end], _Node(group, end, addresses)))

    def all_nodes(self) -> Iterable[_Node]:
        """Yield this node and those below it."""
        yield self
        for _, node in self.edges:
            yield from node.all_nodes()

    @property
    def data(self) -> bytes:
        """Bytes of the node, with the offsets that the others have now."""
        edges = b"".join(label + b"\0" + unsigned_leb(node.offset) for label, node in self.edges)
        return with_size(self.exported) + bytes([len(self.edges)]) + edges


def export_trie(addresses: Mapping[str, int]) -> bytes:
    """Return the trie of exported symbols and their addresses, relative to the image. Empty without symbols."""
    names = {name.encode(): address for name, address in addresses.items()}
    if not names:
        return b""
    nodes, changes = [*_Node(sorted(names), 0, names).all_nodes()], True
    while changes:  # offsets take more bytes the larger they are
        end, changes = 0, False
        for node in nodes:
            changes, node.offset = changes or node.offset != end, end
            end += len(node.data)
    return b"".join(node.data for node in nodes)


def signature_bytes(name: str, limit: int) -> int:
    """Return the bytes of the signature of ``limit`` bytes of a file with this name."""
    return _head_bytes(name) + _pages(limit) * _HASH_BYTES


def _head_bytes(name: str) -> int:
    """Return the offset of the hashes."""
    return align(_BLOBS.size + _DIRECTORY.size + len(name.encode()) + 1, SIGNATURE_ALIGNMENT)


def _pages(limit: int) -> int:
    return -(-limit >> _PAGE_SHIFT)


def ad_hoc_signature(name: str, code: bytes, executable: int) -> bytes:
    """Return a signature without an identity: SHA-256 of each page of the file ``code`` up to the signature.
    ``executable`` bytes of it are the segment with code, which comes first. Apple's processors run no other code."""
    count, hashes = _pages(len(code)), _head_bytes(name) - _BLOBS.size
    identifier = name.encode().ljust(hashes - _DIRECTORY.size, b"\0")
    nbytes = hashes + count * _HASH_BYTES
    starts = range(0, len(code), 1 << _PAGE_SHIFT)
    pages = [hashlib.sha256(code[start : start + (1 << _PAGE_SHIFT)]).digest() for start in starts]
    directory = _DIRECTORY.pack(
        *(_CODE_DIRECTORY, nbytes, _VERSION, _AD_HOC_BY_LINKER, hashes, _DIRECTORY.size, 0, count, len(code)),
        *(_HASH_BYTES, _SHA256, 0, _PAGE_SHIFT, 0, 0, 0, 0, 0, 0, executable, 0),
    )
    head = _BLOBS.pack(_SIGNATURE, _BLOBS.size + nbytes, 1, 0, _BLOBS.size)
    return b"".join([head, directory, identifier, *pages])
