"""Reading of GGUF files: content, and errors for damaged ones."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from graphc.errors import ArtifactError, UnsupportedError
from graphc.llm.gguf_file import read_gguf
from tools.gguf_files import gguf_bytes, random_blocks

METADATA = {"a": 3, "b": "text", "c": ["x", "yz"], "d": 1.5, "e": True, "f": np.arange(4, dtype=np.int32)}
TENSORS = {"w": ("Q4_0", random_blocks("Q4_0", 2, 64)), "v": ("F32", np.arange(3, dtype=np.float32))}


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_content(tmp_path: Path):
    file = read_gguf(write(tmp_path / "a.gguf", gguf_bytes(METADATA, TENSORS)))
    assert {k: v for k, v in file.metadata.items() if k != "f"} == {k: v for k, v in METADATA.items() if k != "f"}
    np.testing.assert_array_equal(file.metadata["f"], METADATA["f"])
    for name, (kind, blocks) in TENSORS.items():
        assert file.tensors[name].format.name == kind
        np.testing.assert_array_equal(file.tensors[name].blocks, blocks)
    assert file.tensors["w"].shape == (2, 64)


def test_content_is_that_of_the_package_gguf(tmp_path: Path):
    gguf = pytest.importorskip("gguf", reason="compares with gguf")
    path = write(tmp_path / "a.gguf", gguf_bytes(METADATA, TENSORS))
    reader, file = gguf.GGUFReader(path), read_gguf(path)
    assert [t.name for t in reader.tensors] == list(file.tensors)
    for tensor in reader.tensors:
        assert bytes(tensor.data.tobytes()) == file.tensors[tensor.name].blocks.tobytes()
    assert reader.fields["c"].contents() == file.metadata["c"]


def test_every_cut_is_an_error(tmp_path: Path):
    whole = gguf_bytes(METADATA, TENSORS)
    end = len(whole) - 20  # the last tensor has 12 bytes, and 20 follow it
    for size in range(end):
        with pytest.raises(ArtifactError):
            read_gguf(write(tmp_path / "a.gguf", whole[:size]))
    assert read_gguf(write(tmp_path / "a.gguf", whole[:end])).tensors.keys() == TENSORS.keys()


def header(version: int = 3, tensors: int = 0, pairs: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, pairs)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


ENTRY = text("w") + struct.pack("<I", 2)
HUGE = 1 << 62


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", ArtifactError, "not a regular file"),
        (b"GGML" + bytes(20), ArtifactError, "not a GGUF file"),
        (header(2), UnsupportedError, "version 2"),
        (header(1 << 24), UnsupportedError, "version"),
        (header(pairs=HUGE), ArtifactError, "ends inside"),
        (header(tensors=HUGE), ArtifactError, "ends inside"),
        (header(pairs=1) + struct.pack("<Q", HUGE), ArtifactError, "ends inside"),
        (header(pairs=1) + text("k") + struct.pack("<I", 77), ArtifactError, "unknown type 77"),
        (header(pairs=1) + text("k") + struct.pack("<IIQ", 9, 8, HUGE), ArtifactError, "ends inside"),
        (header(pairs=1) + text("k") + struct.pack("<IIQ", 9, 4, HUGE), ArtifactError, "ends inside"),
        (header(pairs=1) + text("k") + struct.pack("<IIQ", 9, 9, 1), ArtifactError, "unknown type 9"),
        (header(pairs=2) + 2 * (text("k") + struct.pack("<II", 4, 1)), ArtifactError, "twice"),
        (header(pairs=1) + struct.pack("<Q", 1) + b"\xff", ArtifactError, "not UTF-8"),
        (header(tensors=1) + text("w") + struct.pack("<I", 9), ArtifactError, "9 dimensions"),
        (header(tensors=1) + ENTRY + struct.pack("<QQIQ", 32, 1, 99, 0), UnsupportedError, "block format 99"),
        (header(tensors=1) + ENTRY + struct.pack("<QQIQ", 33, 1, 2, 0), ArtifactError, "not blocks of 32"),
        (header(tensors=1) + ENTRY + struct.pack("<QQIQ", 32, HUGE, 2, 0), ArtifactError, "not inside the file"),
        (header(tensors=1) + ENTRY + struct.pack("<QQIQ", 32, 1, 2, HUGE), ArtifactError, "not inside the file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_headers(tmp_path: Path, data: bytes, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        read_gguf(write(tmp_path / "a.gguf", data))


def test_alignment_must_be_a_power_of_two(tmp_path: Path):
    data = gguf_bytes({"general.alignment": 24}, TENSORS)
    with pytest.raises(ArtifactError, match=r"general\.alignment is 24"):
        read_gguf(write(tmp_path / "a.gguf", data))
