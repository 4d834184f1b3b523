"""Files of libraries: digests tell builds apart, names of functions can be left out, permissions never mix."""

from __future__ import annotations

import pytest

from graphc.codegen.link.image import BLANK_NOTE
from graphc.codegen.link.segments import SegmentFlag, SegmentType
from graphc.codegen.link.shared import link_shared
from tests.codegen.link.objects import TABLE, TARGETS, built, need, output, segments

ALLOWED = ("memset", "fmod")


def library(name: str = "sse2", **options) -> bytes:
    return link_shared([built(name)], ["call", "clear"], data={"table": TABLE}, allowed=ALLOWED, **options)


def build_id(code: bytes) -> bytes:
    start = code.index(BLANK_NOTE[:16]) + 16
    return code[start : start + 20]


def test_the_digest_is_that_of_the_contents():
    assert build_id(library()) == build_id(library()) != build_id(library(soname="other.so"))
    assert build_id(library()) != bytes(20)


@pytest.mark.parametrize("name", TARGETS)
def test_no_memory_is_written_to_and_executed(name: str):
    found = segments(library(name))
    both = SegmentFlag.WRITE | SegmentFlag.EXECUTE
    assert all(flags & both != both for _, flags, *_ in found)
    kinds = [kind for kind, *_ in found]
    assert kinds.count(SegmentType.LOAD) == 5 and kinds.count(SegmentType.READ_ONLY_LATER) == 1
    assert [flags for kind, flags, *_ in found if kind == SegmentType.STACK] == [SegmentFlag.READ | SegmentFlag.WRITE]
    page = {s[7] for s in found if s[0] == SegmentType.LOAD}
    assert page == {65536 if name == "neon" else 4096}


def test_names_of_functions_can_be_left_out(tmp_path):
    need("nm")
    (tmp_path / "with.so").write_bytes(library())
    (tmp_path / "without.so").write_bytes(library(symbols=False))
    shown = {line.split()[-1]: line.split()[-2] for line in output("nm", tmp_path / "with.so").splitlines()}
    assert shown["add"] == "t" and shown["call"] == "T" and shown["table"] == "r"
    assert b"look" in library() and b"look" not in library(symbols=False)
    assert "call" in output("nm", "-D", tmp_path / "without.so")
