"""LEB128 integers, and reads beyond the end of an object."""

from __future__ import annotations

import pytest

from graphc.base.errors import ArtifactError
from graphc.codegen.link.wasm_format import ByteReader, counted, signed_leb, text, unsigned_leb

NUMBERS = (0, 1, 63, 64, 127, 128, 8191, 8192, 624485, (1 << 31) - 1, (1 << 32) - 1)


def test_integers_are_read_as_written():
    for number in NUMBERS:
        assert ByteReader(unsigned_leb(number)).unsigned() == number
        for signed in (number, -number, -number - 1):
            assert ByteReader(signed_leb(signed)).signed(64) == signed
    assert unsigned_leb(624485) == bytes([0xE5, 0x8E, 0x26]) and signed_leb(-123456) == bytes([0xC0, 0xBB, 0x78])


def test_padded_integers_are_read():
    assert ByteReader(b"\x81\x80\x80\x80\x00").unsigned() == 1
    assert ByteReader(b"\xff\xff\xff\xff\x7f").signed() == -1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "1 bytes are expected, 0 are left at byte 0"),
        (b"\x80\x80\x80\x80\x80\x00", "an integer is too long"),
        (b"\xff\xff\xff\xff\x7f", "an integer is too large"),
    ],
)
def test_damaged_integers_are_refused(data: bytes, message: str):
    with pytest.raises(ArtifactError, match=f"the object code is damaged: {message}"):
        ByteReader(data).unsigned()


def test_signed_integers_have_32_bits():
    assert ByteReader(b"\x80\x80\x80\x80\x78").signed() == -(1 << 31)
    with pytest.raises(ArtifactError, match="an integer is too large"):
        ByteReader(b"\x80\x80\x80\x80\x08").signed()


def test_vectors_and_names():
    assert counted([b"ab", b"c"]) == b"\2abc" and text("x") == b"\1x"
    assert ByteReader(b"\4k0\0\0").text() == "k0"
    with pytest.raises(ArtifactError, match="a name is not UTF-8"):
        ByteReader(b"\1\xff").text()
    with pytest.raises(ArtifactError, match="5 bytes are expected, 2 are left"):
        ByteReader(b"\5ab").inner("a section")
