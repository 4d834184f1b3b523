"""Zip archives: whole members come back, and damaged, encrypted or lying ones are refused."""

from __future__ import annotations

import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from graphc.errors import ArtifactError
from graphc.files import archive as module
from graphc.files.archive import Archive


def make(path: Path, compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("folder/", "")
        archive.writestr("folder/a", bytes(range(256)) * 100)
        archive.writestr("../../b", b"")
    return path


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_come_back(tmp_path: Path, compression: int):
    with Archive(make(tmp_path / "a.zip", compression)) as archive:
        assert archive.names == ["folder/a", "../../b"]
        assert archive.size("folder/a") == 25600
        assert archive.read("folder/a").tobytes() == bytes(range(256)) * 100
        assert archive.read("../../b").size == 0
    assert os.listdir(tmp_path) == ["a.zip"]


def test_every_truncation_is_refused(tmp_path: Path):
    data = make(tmp_path / "a.zip").read_bytes()
    path = tmp_path / "cut.zip"
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(ArtifactError, match=r"cut\.zip"):
            Archive(path)


def test_flipped_content_is_refused(tmp_path: Path):
    path = make(tmp_path / "a.zip", zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    with Archive(path) as archive, pytest.raises(ArtifactError, match="'folder/a' is damaged"):
        archive.read("folder/a")


def test_every_flipped_byte_is_refused_or_harmless(tmp_path: Path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"hello, world" * 3)
    good = path.read_bytes()
    for position in range(len(good)):
        path.write_bytes(good[:position] + bytes([good[position] ^ 0x41]) + good[position + 1 :])
        try:
            with Archive(path) as archive:
                contents = {name: archive.read(name).tobytes() for name in archive.names}
        except ArtifactError:
            continue
        assert set(contents.values()) <= {b"hello, world" * 3}


def declare(path: Path, size: int) -> None:
    """Changes the declared size of the only member in the central directory."""
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = struct.pack("<I", size)
    path.write_bytes(data)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_huge_declared_sizes_are_refused_before_memory_is_taken(tmp_path: Path, compression: int):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("a", b"0123456789")
    declare(path, 0xFFFF0000)
    with pytest.raises(ArtifactError, match="more than the archive can hold"):
        Archive(path)


@pytest.mark.parametrize("size", [9, 11, 2000])
def test_wrong_declared_sizes_are_refused(tmp_path: Path, size: int):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"0123456789")
    declare(path, size)
    with Archive(path) as archive, pytest.raises(ArtifactError):
        archive.read("a")


def test_encrypted_members_and_other_compressions_are_refused(tmp_path: Path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a", b"0123456789")
    with pytest.raises(ArtifactError, match="by method 14"):
        Archive(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"0123456789")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match="encrypted"):
        Archive(path)


def test_two_members_of_one_name_are_refused(tmp_path: Path):
    path = tmp_path / "a.zip"
    with pytest.warns(UserWarning), zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"1")
        archive.writestr("a", b"2")
    with pytest.raises(ArtifactError, match="same name"):
        Archive(path)


def test_what_is_no_file_is_refused(tmp_path: Path):
    with pytest.raises(ArtifactError, match="regular file"):
        Archive(tmp_path)
    with pytest.raises(FileNotFoundError):
        Archive(tmp_path / "none")
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(ArtifactError, match="not a readable zip archive"):
        Archive(tmp_path / "a.npy")


def test_small_files_that_grow_without_measure_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    zeros = np.zeros(1 << 20, np.uint8)
    np.savez_compressed(tmp_path / "small.npz", a=zeros)
    with Archive(tmp_path / "small.npz") as archive:
        assert archive.size("a.npy") > 1 << 20
    monkeypatch.setattr(module, "FREE_BYTES", 1 << 20)
    np.savez_compressed(tmp_path / "large.npz", a=zeros)
    with pytest.raises(ArtifactError, match=r"bytes grow to (?s:.*)try .*without compression"):
        Archive(tmp_path / "large.npz")
    np.savez(tmp_path / "stored.npz", a=zeros)
    with Archive(tmp_path / "stored.npz") as archive:
        assert archive.size("a.npy") > 1 << 20
