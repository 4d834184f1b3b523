"""A file of named sections in which every byte is covered by a digest, and files that are never half written."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import mmap
import os
import secrets
import stat
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from graphc.base.errors import ArtifactError

MAGIC = b"\x89GCM\r\n\x1a\n"
"""First bytes of a file; a transfer in text mode damages them."""
FORMAT_VERSION = 2
"""Version of the layout of the file and of the fields of its manifest, which is written."""
OLDEST_VERSION = 1
"""The oldest one that is read: the layout is the same."""
ALIGNMENT = 64
"""Sections, and tensors inside of them, begin at multiples of this."""
MAX_BYTES = 1 << 36
"""Largest file."""
MAPPED_FROM = 1 << 20
"""Bytes from which it pays to map a file: to read fewer takes a tenth of a millisecond."""
_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
MAX_SECTIONS = 4096
STALE_SECONDS = 60.0
"""Age from which a temporary file that nobody holds locked is taken to be left by a process that died."""
_OPEN_FILES = "/proc/self/fd"
"""Where the open files of a process can be named."""
_MODE = 0o666
"""What new files may be used for, less the process's umask."""
_TEMPORARY, _LINKED = ".tmp", ".linked"
"""How names of temporary files end: of those that have one from the begin, and of those that get it when they are
whole."""
_NAME_KEPT = 50
"""Characters of a file's name that its temporary files keep."""

_HEADER = struct.Struct("<8sIIQ8x32s")
_NAME_BYTES = 16
_ENTRY = struct.Struct(f"<{_NAME_BYTES}sQQ32s")
FOREIGN = {
    b"PK\x03\x04": "a zip archive (.npz, a PyTorch checkpoint, or a .pt2, which graphc.from_pt2 reads)",
    b"\x93NUMPY": "a NumPy .npy file",
    b"\x7fELF": "an ELF object or library",
    b"\x80": "a pickle",
    b"\x08": "an ONNX model, which graphc.from_onnx reads",
    b"\x89HDF": "an HDF5 file",
    b"GGUF": "a GGUF file",
}
"""What other files are, by their first bytes."""
_COPY_AGAIN = "copy or export the file again"
Section = tuple[str, int, int, bytes]
"""Name, offset, length and SHA-256 of a section."""


@contextmanager
def replacing(path: str | os.PathLike[str], durable: bool = True, named: bool = False) -> Iterator[BinaryIO]:
    """A binary file that takes the place of ``path`` when the block ends without an error; otherwise nothing changes.

    It is written as a file without a name where the file system has such files (a process that is killed leaves nothing
    of it, but for the instant in which an old file is replaced), else, and where it has to be ``named``, beside
    ``path``, synced, and given the name; a file that is there already passes its mode on. What is not ``durable`` is
    not synced: after a loss of power it may be damaged. What writers of ``path`` that were killed left beside it is
    removed.
    Raises ArtifactError when ``path`` is a device or a folder; OSError.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ArtifactError(f"{os.fspath(path)!r} is not a regular file and will not be replaced")
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder to write to", str(target.parent))
    sweep(target)
    temporary = target.parent / f"{_temporary_prefix(target)}{secrets.token_hex(8)}{_TEMPORARY}"
    try:
        file = None if named else _open_unnamed(target.parent)
        unnamed = file is not None
        temporary = temporary.with_suffix(_LINKED) if unnamed else temporary
        with file or open(temporary, "xb") as file:
            _hold(file.fileno())
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
            if not (unnamed and _is_linked(file, target)):
                if unnamed:
                    _link(file, temporary)
                os.replace(temporary, target)
    # NOTE: also Ctrl-C, and whatever the block that writes raises; it is raised again.
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if not durable:
        return
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _open_unnamed(folder: Path) -> BinaryIO | None:
    """A file in a folder that has no name yet, and is gone with the process; None where there are no such files."""
    kind = getattr(os, "O_TMPFILE", 0)
    if not kind or not os.path.isdir(_OPEN_FILES):
        return None
    try:
        return open(os.open(folder, kind | os.O_RDWR | os.O_CLOEXEC, _MODE), "wb")
    except OSError:  # A file system without them; another error comes again with the name.
        return None


def _link(file: BinaryIO, path: Path) -> None:
    """Gives a file without a name one."""
    # NOTE: links are followed only where a descriptor is given, which an absolute path leaves unused.
    os.link(f"{_OPEN_FILES}/{file.fileno()}", path, src_dir_fd=file.fileno())


def _is_linked(file: BinaryIO, target: Path) -> bool:
    """Whether a file without a name has got this one, at once; False where another file has it."""
    try:
        _link(file, target)
    except FileExistsError:
        return False
    return True


def _temporary_prefix(target: Path) -> str:
    return f".{target.name[:_NAME_KEPT]}."


def _hold(file: int) -> bool:
    """Marks a temporary file as one whose writer lives; False when another process has done so."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # A file system without locks: age alone decides.
        return True
    return True


def _has_locks(file: int) -> bool:
    """Whether the file system has locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def sweep(target: Path) -> None:
    """Removes the temporary files of ``target`` whose writers died; where that fails they stay."""
    prefix, oldest = _temporary_prefix(target), time.time() - STALE_SECONDS
    with suppress(OSError), os.scandir(target.parent) as items:
        for item in items:
            if item.name.startswith(prefix) and item.name.endswith((_TEMPORARY, _LINKED)):
                with suppress(OSError):
                    _sweep_one(item, oldest)


def _sweep_one(item: os.DirEntry[str], oldest: float) -> None:
    status = item.stat(follow_symlinks=False)
    # NOTE: a file that got its name late was locked before: where there are locks, no age is needed to tell.
    is_young = status.st_mtime > oldest and not item.name.endswith(_LINKED)
    if not stat.S_ISREG(status.st_mode) or is_young or status.st_uid != os.geteuid():
        return
    file = os.open(item.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if _hold(file) and (status.st_mtime <= oldest or _has_locks(file)):
            os.unlink(item.path)
    finally:
        os.close(file)


def align(offset: int) -> int:
    """The next multiple of ALIGNMENT."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _bytes(part: Any) -> memoryview:
    view = memoryview(part)
    return view.cast("B") if view.nbytes else memoryview(b"")


def write_sections(path: str | os.PathLike[str], sections: Mapping[str, Sequence[Any]], durable: bool = True) -> None:
    """Writes a container as ``replacing`` does. A section is a sequence of bytes-like parts, one after the other.

    Layout: a header of 64 bytes (magic, format version, number of sections, file size, SHA-256 of the header and the
    table), one table entry of 64 bytes per section (name, offset, length, SHA-256), then the sections in order, each at
    the next multiple of 64 with zeros before it.
    """
    if any(len(name.encode()) > _NAME_BYTES for name in sections):
        raise ArtifactError(f"names of sections have at most {_NAME_BYTES} bytes: {', '.join(sections)}")
    parts = {name: [_bytes(part) for part in content] for name, content in sections.items()}
    position = _HEADER.size + _ENTRY.size * len(parts)
    table, starts = b"", []
    for name, content in parts.items():
        digest = hashlib.sha256()
        for part in content:
            digest.update(part)
        starts.append(align(position))
        length = sum(part.nbytes for part in content)
        table += _ENTRY.pack(name.encode(), starts[-1], length, digest.digest())
        position = starts[-1] + length
    header = _HEADER.pack(MAGIC, FORMAT_VERSION, len(parts), position, b"")
    header = header[:-32] + hashlib.sha256(header[:-32] + table).digest()
    with replacing(path, durable) as file:
        file.write(header + table)
        for start, content in zip(starts, parts.values(), strict=True):
            file.write(bytes(start - file.tell()))
            for part in content:
                file.write(part)


def is_container(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a file which begins as ``write_sections`` writes them; False for a folder. Raises
    ArtifactError for what is neither a file nor a folder; OSError."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        return False
    if not stat.S_ISREG(mode):
        raise ArtifactError(f"{os.fspath(path)}: it is not a regular file")
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_sections(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The sections of a container as read-only byte arrays, 64-byte aligned, after every digest has been checked.

    Nothing is allocated before the sizes are known to fit the file. Raises ArtifactError for a file that is foreign,
    damaged, truncated, or of a newer format; OSError when it cannot be read.
    """
    return read_with_digest(path)[0]


def read_with_digest(path: str | os.PathLike[str], mapped: bool | None = False) -> tuple[dict[str, np.ndarray], bytes]:
    """The sections as ``read_sections`` gives them, and the SHA-256 that stands for all of them.

    ``mapped``: they are the pages of the file itself, which processes share, and not a copy in memory. The file may be
    replaced and removed meanwhile, but must not be written to: who makes it shorter ends this process with SIGBUS, and
    other bytes would not be noticed. None maps a file of MAPPED_FROM bytes or more that nobody may write to.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ArtifactError("it is not a regular file")
        with open(path, "rb") as file:
            return _read_checked(file, mapped)
    except ArtifactError as error:
        error.what = f"{os.fspath(path)}: {error.what}"
        raise


def _read_checked(file: io.BufferedReader, mapped: bool | None) -> tuple[dict[str, np.ndarray], bytes]:
    size = os.fstat(file.fileno()).st_size
    head = file.read(_HEADER.size)
    count = _check_header(head, size)
    table = file.read(_ENTRY.size * count)
    if len(table) < _ENTRY.size * count:
        raise ArtifactError(f"the file is truncated inside its section table ({size} bytes)", remedy=_COPY_AGAIN)
    if hashlib.sha256(head[:-32] + table).digest() != head[-32:]:
        raise ArtifactError("the file is damaged: the digest of its section table differs", remedy=_COPY_AGAIN)
    entries = _check_table(table, size)
    if size >= MAPPED_FROM and is_fixed(file.fileno()) if mapped is None else mapped:
        body = np.frombuffer(mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ), np.uint8)
    else:
        body = _read_body(file, head + table, size)
    return _check_bodies(entries, body), head[-32:]


def _read_body(file: io.BufferedReader, start: bytes, size: int) -> np.ndarray:
    """All bytes of a file of which the first ones have been read already."""
    body = np.empty(size + ALIGNMENT, dtype=np.uint8)
    body = body[-body.ctypes.data % ALIGNMENT :][:size]
    body[: len(start)] = np.frombuffer(start, dtype=np.uint8)
    if file.readinto(body.data[len(start) :]) != size - len(start):
        raise ArtifactError("the file changed while it was read")
    body.flags.writeable = False
    return body


def is_fixed(file: int) -> bool:
    """Whether nobody may write to an open file: it has no mode for that, or lies on a file system that is read-only."""
    return not stat.S_IMODE(os.fstat(file).st_mode) & _WRITE or bool(os.fstatvfs(file).f_flag & os.ST_RDONLY)


def _check_header(head: bytes, size: int) -> int:
    """Number of sections of a well-formed header; raises ArtifactError."""
    if head[: len(MAGIC)] != MAGIC[: len(head)] or not head:
        kind = next((name for start, name in FOREIGN.items() if head.startswith(start)), "something else")
        raise ArtifactError(
            f"it is not a graphc model file but {kind if head else 'empty'}",
            remedy="a file written by graphc.export; graphc.load_state reads state dictionaries",
        )
    if len(head) < _HEADER.size:
        raise ArtifactError(f"the file is truncated: it has only {size} bytes", remedy=_COPY_AGAIN)
    _, version, count, length, _ = _HEADER.unpack(head)
    if not OLDEST_VERSION <= version <= FORMAT_VERSION:
        raise ArtifactError(
            f"the file has format version {version}, this graphc reads versions {OLDEST_VERSION} to {FORMAT_VERSION}",
            remedy="a newer graphc, or export the model again with this one",
        )
    if length != size:
        kind = "truncated" if size < length else "followed by foreign bytes"
        raise ArtifactError(f"the file is {kind}: it has {size} bytes and should have {length}", remedy=_COPY_AGAIN)
    if size > MAX_BYTES or count > MAX_SECTIONS:
        raise ArtifactError(f"the file is too large: {size} bytes, {count} sections")
    return count


def _check_table(table: bytes, size: int) -> list[Section]:
    """(name, offset, length, digest) of every section, in order, without gaps or overlap; raises ArtifactError."""
    entries, end = [], _HEADER.size + len(table)
    for raw, offset, length, digest in _ENTRY.iter_unpack(table):
        name = raw.rstrip(b"\0").decode("ascii", "replace")
        if offset < end:
            raise ArtifactError(f"section {name!r} overlaps the one before it")
        if offset != align(end) or length > size - offset:
            raise ArtifactError(
                f"section {name!r} (offset {offset}, length {length}) does not fit a file of {size} bytes"
            )
        end = offset + length
        entries.append((name, offset, length, digest))
    if end != size or len({e[0] for e in entries}) != len(entries):
        raise ArtifactError("the section table does not describe the whole file")
    return entries


def _check_bodies(entries: list[Section], body: np.ndarray) -> dict[str, np.ndarray]:
    sections = {}
    end = _HEADER.size + _ENTRY.size * len(entries)
    for name, offset, length, digest in entries:
        section = body[offset : offset + length]
        if hashlib.sha256(section.data).digest() != digest or body[end:offset].any():
            raise ArtifactError(f"the file is damaged: the digest of section {name!r} differs", remedy=_COPY_AGAIN)
        sections[name] = section
        end = offset + length
    return sections
