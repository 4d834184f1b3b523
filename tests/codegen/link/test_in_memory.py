"""Images of code for memory: ranges, imports, what is refused; tests.runtime.code.test_linked_code runs them."""

from __future__ import annotations

import itertools
import random

import pytest

from graphc.codegen.link.in_memory import MemoryImage
from graphc.codegen.link.layout import SectionFlag
from graphc.errors import CompileError, GraphcError
from tests.codegen.link.objects import TARGETS, built
from tests.codegen.link.test_shared import code

IMPORTS = {"memset": 0x7000_1000, "fmod": 0x7000_2000, "table": 0x7000_3000}


@pytest.mark.parametrize("name", TARGETS)
def test_ranges_are_whole_pages_that_no_two_permissions_share(name: str):
    image = MemoryImage([built(name)])
    assert set(image.imports) == set(IMPORTS)
    assert [flags for _, _, flags in image.ranges] == [SectionFlag.EXECUTE, SectionFlag(0), SectionFlag.WRITE]
    ends = [0, *(offset + nbytes for offset, nbytes, _ in image.ranges)]
    assert [offset for offset, _, _ in image.ranges] == ends[:-1] and ends[-1] == image.nbytes
    assert all(offset % image.alignment == 0 for offset, _, _ in image.ranges)


@pytest.mark.parametrize("name", TARGETS)
def test_sections_lie_in_their_ranges_and_words_hold_addresses(name: str):
    base, image = 0x5000_0000, MemoryImage([built(name)])
    image.link(base, IMPORTS)
    contents = dict(image.contents())
    ends = sorted((offset, offset + len(data)) for offset, data in contents.items())
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ends)), "no two sections overlap"
    assert all(offset + len(data) <= image.nbytes for offset, data in contents.items())
    (text_offset, text_bytes, _), *_ = image.ranges
    address = image.address("call")
    assert base + text_offset <= address < base + text_offset + text_bytes
    joined = b"".join(contents.values())
    for imported in IMPORTS.values():
        assert imported.to_bytes(8, "little") in joined, "the table has the address of each import"


def test_the_address_decides_nothing_but_words():
    images = [MemoryImage([built("sse2")]) for _ in range(2)]
    for image, base in zip(images, (0x5000_0000, 0x5000_0000 + (1 << 40)), strict=True):
        image.link(base, IMPORTS)
    low, high = ([data for _, data in image.contents()] for image in images)
    assert low != high and low[0] == high[0], "code refers to its neighbours by distances"
    assert images[1].address("call") - images[0].address("call") == 1 << 40


def test_what_is_no_function_has_no_address():
    image = MemoryImage([code("@number = global i32 5\ndefine void @f() {\n  ret void\n}")])
    image.link(0, {})
    assert image.address("f") == 0
    for name in ("number", "missing", ""):
        with pytest.raises(CompileError, match=f"defines no function {name}"):
            image.address(name)


def test_code_that_may_be_written_to_is_refused():
    changed = bytearray(code("define void @f() {\n  ret void\n}"))
    flags = (SectionFlag.IN_MEMORY | SectionFlag.EXECUTE).to_bytes(8, "little")
    assert changed.count(flags) == 1, "the section of the code"
    changed[changed.index(flags)] |= SectionFlag.WRITE
    with pytest.raises(CompileError, match="may be written to and executed"):
        MemoryImage([bytes(changed)])


@pytest.mark.parametrize("name", TARGETS)
def test_object_code_with_other_bytes_is_refused_or_linked(name: str):
    choice, outcomes = random.Random(11), set()
    for _ in range(300):
        changed = bytearray(built(name))
        for _ in range(choice.choice((1, 1, 4))):
            changed[choice.randrange(len(changed))] = choice.randrange(256)
        try:
            image = MemoryImage([bytes(changed)])
            image.link(1 << 30, dict.fromkeys(image.imports, 1 << 40))
            assert all(offset + len(data) <= image.nbytes for offset, data in image.contents())
            image.address("call")
            outcomes.add("linked")
        except GraphcError:
            outcomes.add("refused")
    assert outcomes == {"linked", "refused"}
