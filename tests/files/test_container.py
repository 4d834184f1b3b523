"""Containers: round trip, refusal of every kind of damage, and atomic replacement."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import signal
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphc.errors import ArtifactError
from graphc.files import container
from tests.architecture.scan import ROOT

HEADER = struct.Struct("<8sIIQ8x32s")
ENTRY = struct.Struct("<16sQQ32s")
PARTS = {"first": [b"hello", b" world"], "second": [np.arange(40, dtype=np.uint8)], "empty": [], "last": [b"!"]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.gcm"
    container.write_sections(path, PARTS)
    return path


def forge(sections: list[tuple[bytes, int, int, bytes]], size: int, body: bytes, version: int = 2) -> bytes:
    """A file whose table says what is asked for and whose digests of header and table are right."""
    table = b"".join(ENTRY.pack(*s) for s in sections)
    header = HEADER.pack(container.MAGIC, version, len(sections), size, b"")[:32]
    return header + hashlib.sha256(header + table).digest() + table + body


def refused(path: Path, content: bytes, match: str | None = None) -> str:
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=match) as caught:
        container.read_sections(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_sections_come_back(file: Path):
    sections = container.read_sections(file)
    assert {name: s.tobytes() for name, s in sections.items()} == {
        name: b"".join(bytes(p) for p in parts) for name, parts in PARTS.items()
    }
    for section in sections.values():
        assert not section.flags.writeable
        assert section.ctypes.data % container.ALIGNMENT == 0 or not section.size


def test_equal_content_gives_equal_bytes(file: Path, tmp_path: Path):
    container.write_sections(tmp_path / "b.gcm", PARTS)
    assert (tmp_path / "b.gcm").read_bytes() == file.read_bytes()


def test_the_layout_is_as_documented(file: Path):
    content = file.read_bytes()
    magic, version, count, size, digest = HEADER.unpack(content[:64])
    assert (magic, version, count, size) == (b"\x89GCM\r\n\x1a\n", 2, 4, len(content))
    assert digest == hashlib.sha256(content[:32] + content[64 : 64 + 64 * count]).digest()
    name, offset, length, digest = ENTRY.unpack(content[64:128])
    assert (name.rstrip(b"\0"), offset, length) == (b"first", 64 * 5, 11)
    assert content[offset : offset + length] == b"hello world"
    assert digest == hashlib.sha256(b"hello world").digest()


def test_every_flipped_bit_is_refused(file: Path):
    content = bytearray(file.read_bytes())
    assert len(content) > 320
    for position in range(len(content)):
        for mask in (1 << position % 8, 0xFF):
            content[position] ^= mask
            refused(file, bytes(content))
            content[position] ^= mask


def test_every_truncation_is_refused_and_named(file: Path):
    content = file.read_bytes()
    assert "is not a graphc model file but empty" in refused(file, b"")
    for length in range(1, len(content)):
        refused(file, content[:length], "truncated")


def test_bytes_behind_the_end_are_refused(file: Path):
    refused(file, file.read_bytes() + b"\0", "followed by foreign bytes")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400))
def test_random_bytes_are_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes):
    path = tmp_path_factory.getbasetemp() / "random.gcm"
    refused(path, content)
    refused(path, container.MAGIC + content)


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"PK\x03\x04....", "a zip archive"),
        (b"\x93NUMPY\x01\x00", "a NumPy .npy file"),
        (b"\x7fELF\x02", "an ELF object"),
        (b"\x80\x04\x95", "a pickle"),
        (b"plain text", "a file of unknown format"),
    ],
)
def test_foreign_files_are_named(tmp_path: Path, start: bytes, kind: str):
    refused(tmp_path / "f.gcm", start + bytes(100), f"not a graphc model file but {kind}")


def test_a_newer_format_asks_for_a_newer_graphc(tmp_path: Path):
    message = refused(
        tmp_path / "f.gcm", forge([], 64, b"", version=3), "format version 3, this graphc reads versions 1 to 2"
    )
    assert "try    install a newer graphc" in message


DIGEST = hashlib.sha256(b"abcd").digest()


@pytest.mark.parametrize(
    ("sections", "size", "message"),
    [
        ([(b"a", 192, 4, DIGEST), (b"b", 192, 4, DIGEST)], 196, "overlaps the one before"),
        ([(b"a", 64, 4, DIGEST)], 132, "overlaps the one before"),
        ([(b"a", 256, 4, DIGEST)], 132, "does not fit"),
        ([(b"a", 128, 1 << 63, DIGEST)], 132, "does not fit"),
        ([(b"a", (1 << 64) - 4, 8, DIGEST)], 132, "does not fit"),
        ([(b"a", 128, (1 << 64) - 128, DIGEST)], 132, "does not fit"),
        ([(b"a", 128, 2, DIGEST)], 132, "does not describe the whole file"),
        ([(b"a", 192, 0, DIGEST), (b"a", 192, 4, DIGEST)], 196, "does not describe the whole file"),
        ([(b"a", 128, 4, bytes(32))], 132, "digest of section 'a' differs"),
    ],
)
def test_forged_tables_are_refused(tmp_path: Path, sections: list, size: int, message: str):
    start = 64 + 64 * len(sections)
    refused(tmp_path / "f.gcm", forge(sections, size, b"abcd".rjust(size - start, b"\0")), message)


def test_a_forged_count_allocates_nothing(tmp_path: Path):
    content = bytearray(forge([], 64, b""))
    content[12:16] = struct.pack("<I", (1 << 32) - 1)
    refused(tmp_path / "f.gcm", bytes(content), "too large: 64 bytes, 4294967295 sections")


def test_a_sparse_giant_is_refused_by_its_size(tmp_path: Path):
    path = tmp_path / "giant.gcm"
    size = container.MAX_BYTES + 64
    path.write_bytes(forge([(b"a", 128, size - 128, DIGEST)], size, b""))
    os.truncate(path, size)
    with pytest.raises(ArtifactError, match="too large"):
        container.read_sections(path)


def test_only_regular_files_are_read_and_replaced(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(ArtifactError, match="not a regular file"):
            container.read_sections(path)
        with pytest.raises(ArtifactError, match="not a regular file"):
            container.write_sections(path, PARTS)
    with pytest.raises(FileNotFoundError):
        container.read_sections(tmp_path / "missing.gcm")


def test_a_name_that_does_not_fit_is_refused(tmp_path: Path):
    with pytest.raises(ArtifactError, match="at most 16 bytes"):
        container.write_sections(tmp_path / "a.gcm", {"a name that is too long": []})


def test_an_error_leaves_the_old_file_and_no_other(file: Path):
    before = file.read_bytes()
    with pytest.raises(KeyboardInterrupt), container.replacing(file) as out:
        out.write(b"half")
        raise KeyboardInterrupt
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_replacing_keeps_the_mode_and_follows_links(file: Path, tmp_path: Path):
    file.chmod(0o640)
    link = tmp_path / "link.gcm"
    link.symlink_to(file)
    container.write_sections(link, {"a": [b"new"]})
    assert link.is_symlink()
    assert container.read_sections(file)["a"].tobytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


SAVER = """
import sys, numpy as np
from graphc.files import container
blocks = [np.full(1 << 20, n, np.uint8) for n in range(2)]
print("ready", flush=True)
for n in range(1 << 30):
    container.write_sections(sys.argv[1], {"a": [blocks[n % 2]], "b": [blocks[n % 2]]})
"""


def test_a_kill_while_saving_leaves_the_old_or_the_new_file(tmp_path: Path):
    path = tmp_path / "a.gcm"
    container.write_sections(path, {"a": [b"\0"], "b": [b"\0"]})
    for attempt in range(6):
        child = subprocess.Popen([sys.executable, "-c", SAVER, str(path)], cwd=ROOT, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.02 + 0.013 * attempt)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        sections = container.read_sections(path)
        assert sections["a"].tobytes() == sections["b"].tobytes()
    assert container.read_sections(path)["a"].size == 1 << 20


def test_a_writer_that_is_killed_leaves_nothing_where_files_need_no_name(tmp_path: Path):
    path = tmp_path / "a.gcm"
    with container.replacing(path) as file:
        file.write(b"half")
        if list(tmp_path.iterdir()):
            pytest.skip("this file system has no files without a name")
    assert path.read_bytes() == b"half"
    code = f"import os, signal\nfrom graphc.files import container\nwith container.replacing({str(path)!r}) as file:\n"
    code += "    file.write(b'other')\n    file.flush()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert [p.name for p in tmp_path.iterdir()] == ["a.gcm"] and path.read_bytes() == b"half"


def test_a_file_that_is_to_have_a_name_can_be_read_before_it_is_whole(tmp_path: Path):
    with container.replacing(tmp_path / "a.gcm", named=True) as file:
        file.write(b"half")
        file.flush()
        assert Path(file.name).read_bytes() == b"half" and Path(file.name).parent == tmp_path


def test_what_a_kill_in_the_instant_of_replacing_left_is_removed_by_the_next_writer(tmp_path: Path):
    path, left = tmp_path / "a.gcm", tmp_path / ".a.gcm.0123.linked"
    path.write_bytes(b"old")
    left.write_bytes(b"new")
    with container.replacing(path) as file:
        file.write(b"newer")
    assert not left.exists() and path.read_bytes() == b"newer"
    left.write_bytes(b"new")
    with open(left, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        container.write_sections(path, PARTS)
        assert left.exists()


def test_files_have_the_mode_that_the_process_gives_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for place in ("/proc/self/fd", "/nowhere"):
        monkeypatch.setattr(container, "_OPEN_FILES", place)
        before = os.umask(0o027)
        try:
            container.write_sections(tmp_path / "a.gcm", PARTS)
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "a.gcm").stat().st_mode) == 0o640
        (tmp_path / "a.gcm").unlink()


NAMED_SAVER = SAVER.replace("blocks =", "container._OPEN_FILES = '/nowhere'\nblocks =")
"""As on a file system where all files have names."""


def test_what_killed_writers_left_is_removed_by_the_next_one(tmp_path: Path):
    path = tmp_path / "a.gcm"
    left = []
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", NAMED_SAVER, str(path)], cwd=ROOT, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        while not (left := list(tmp_path.glob("*.tmp"))):
            time.sleep(0.001)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    left = [*tmp_path.glob("*.tmp"), tmp_path / ".a.gcm.0.tmp"]
    left[-1].write_bytes(b"half")
    other = tmp_path / ".b.gcm.0123.tmp"
    other.write_bytes(b"of another file")
    for file in [*left, other]:
        os.utime(file, (0, 0))
    container.write_sections(path, {"a": [b"1"]})
    assert sorted(tmp_path.iterdir()) == sorted([other, path])


def test_what_living_writers_hold_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(container, "_OPEN_FILES", "/nowhere")
    path = tmp_path / "a.gcm"
    with container.replacing(path) as file:
        file.write(b"first")
        (held,) = tmp_path.glob("*.tmp")
        os.utime(held, (0, 0))
        container.write_sections(path, {"a": [b"second"]})
        assert held.exists()
    assert path.read_bytes() == b"first"


def test_fresh_files_of_writers_stay(tmp_path: Path):
    fresh = tmp_path / ".a.gcm.0123.tmp"
    fresh.write_bytes(b"")
    container.write_sections(tmp_path / "a.gcm", {"a": [b"1"]})
    assert fresh.exists()


def test_one_digest_stands_for_all_sections(tmp_path: Path):
    path = tmp_path / "a"
    digests = set()
    for content in (b"one", b"two", b"one"):
        container.write_sections(path, {"a": [content], "b": [b"same"]})
        sections, digest = container.read_with_digest(path)
        assert sections["a"].tobytes() == content and len(digest) == 32
        digests.add(digest)
    assert len(digests) == 2


@pytest.mark.parametrize("durable", [True, False])
def test_only_durable_files_are_synced(durable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced: list[int] = []
    monkeypatch.setattr(container.os, "fsync", synced.append)
    container.write_sections(tmp_path / "a.gcm", PARTS, durable)
    assert len(synced) == 2 * durable
    assert list(container.read_sections(tmp_path / "a.gcm")) == list(PARTS)


def test_a_mapped_file_gives_the_same_sections_and_is_checked_alike(file: Path):
    read, mapped = container.read_with_digest(file), container.read_with_digest(file, mapped=True)
    assert mapped[1] == read[1]
    assert {n: s.tobytes() for n, s in mapped[0].items()} == {n: s.tobytes() for n, s in read[0].items()}
    assert not any(s.flags.writeable or s.ctypes.data % container.ALIGNMENT for s in mapped[0].values() if s.size)
    damaged = bytearray(file.read_bytes())
    damaged[-1] ^= 1
    file.write_bytes(damaged)
    with pytest.raises(ArtifactError, match="damaged"):
        container.read_with_digest(file, mapped=True)


@pytest.mark.parametrize("mapped", [False, True])
def test_large_sections_are_checked_before_anything_is_returned(mapped: bool, tmp_path: Path):
    path, large = tmp_path / "large.gcm", bytes(container.CONCURRENT_FROM)
    container.write_sections(path, {"first": [large], "small": [b"small"], "last": [large]})
    assert [s.size for s in container.read_with_digest(path, mapped)[0].values()] == [len(large), 5, len(large)]
    content = bytearray(path.read_bytes())
    for position, name in ((-1, "last"), (-len(large) - 64, "small"), (-len(large) - 200, "first")):
        damaged = bytearray(content)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(ArtifactError, match=f"section '{name}'"):
            container.read_with_digest(path, mapped)
    with pytest.raises(KeyError), container.reading(path, mapped):
        raise KeyError("an error of the block, and not that of the section")


def test_a_mapped_file_that_is_replaced_or_removed_stays_what_it_was(file: Path):
    sections = container.read_with_digest(file, mapped=True)[0]
    container.write_sections(file, {"first": [b"another"]})
    file.unlink()
    assert sections["first"].tobytes() == b"hello world" and sections["last"].tobytes() == b"!"


def test_only_large_files_are_mapped_that_nobody_may_write_to(tmp_path: Path):
    def is_mapped(path: Path, **options: bool | None) -> bool:
        section = container.read_with_digest(path, **options)[0]["weights"]
        return str(path) in Path("/proc/self/maps").read_text() and section.size > 0

    small, large = tmp_path / "small.gcm", tmp_path / "large.gcm"
    container.write_sections(small, {"weights": [bytes(1000)]})
    container.write_sections(large, {"weights": [bytes(container.MAPPED_FROM)]})
    assert not is_mapped(large, mapped=None) and not is_mapped(large) and is_mapped(large, mapped=True)
    small.chmod(0o444)
    large.chmod(0o444)
    assert is_mapped(large, mapped=None) and not is_mapped(large) and not is_mapped(small, mapped=None)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no folder in which nobody creates files")
def test_errors_name_the_file_of_the_user():
    path = Path("/proc/self/net.gcm")
    with pytest.raises(OSError, match=re.escape(f"'{path}'")) as caught, container.replacing(path):
        raise AssertionError("the file cannot be opened")
    assert caught.value.filename == str(path)
