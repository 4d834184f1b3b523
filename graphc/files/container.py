"""Container files: named sections, every byte covered by a SHA-256 digest, and atomic replacement of files."""

from __future__ import annotations

import errno
import fcntl
import io
import mmap
import os
import stat
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO

import numpy as np

from graphc.base.errors import ArtifactError
from graphc.files.digests import digest_of, sha256

MAGIC = b"\x89GCM\r\n\x1a\n"
"""First bytes of a container; transfers in text mode damage them, so that they are detected."""
FORMAT_VERSION = 2
"""Version of the file layout and of the manifest's fields that this graphc writes."""
OLDEST_VERSION = 1
"""Oldest version that this graphc reads; its layout is the same."""
ALIGNMENT = 64
"""Bytes; sections, and tensors inside them, begin at multiples of it."""
MAX_BYTES = 1 << 36
"""Largest file."""
MAPPED_FROM = 1 << 20
"""Bytes from which mapping a file is faster than reading it, which takes a tenth of a millisecond for fewer."""
CONCURRENT_FROM = 1 << 22
"""Bytes of a section from which its digest, 2 ms or more, is worth a thread."""
_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
MAX_SECTIONS = 4096
STALE_SECONDS = 60.0
"""Age from which a temporary file without a lock counts as left by a process that died."""
_OPEN_FILES = "/proc/self/fd"
"""Folder with the open files of this process."""
_MODE = 0o666
"""Permissions of new files, before the umask."""
_TEMPORARY, _LINKED = ".tmp", ".linked"
"""Suffixes of temporary files: of files that have a name from the start, and of files that get it once complete."""
_NAME_LIMIT = 50
"""Characters of a file's name in the names of its temporary files."""

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
"""Descriptions of other file formats, by their first bytes."""
_COPY_AGAIN = "copy or export the file again"
Section = tuple[str, int, int, bytes]
"""Name, offset, length and SHA-256 of a section."""


@contextmanager
def replacing(path: str | os.PathLike[str], durable: bool = True, named: bool = False) -> Iterator[BinaryIO]:
    """Yield a binary file that replaces ``path`` atomically when the block ends; after an error nothing changes.

        durable: sync file and folder. Otherwise a power failure may leave a damaged file.
        named: give the temporary file a name from the start.

    The temporary file has no name if the file system supports that, so a killed process leaves nothing behind (except
    in the instant that replaces an old file). Otherwise it is a hidden file next to ``path``. An existing file passes
    its permissions on. Temporary files of killed writers of ``path`` are removed. Raises ArtifactError if ``path`` is a
    device or a folder; OSError.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ArtifactError(f"{os.fspath(path)!r} is not a regular file and will not be replaced")
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the folder to write to does not exist", str(target.parent))
    sweep(target)
    temporary = target.parent / f"{_temporary_prefix(target)}{os.urandom(8).hex()}{_TEMPORARY}"
    try:
        file = None if named else _open_unnamed(target.parent)
        unnamed = file is not None
        temporary = temporary.with_suffix(_LINKED) if unnamed else temporary
        with file or open(temporary, "xb") as file:
            _lock(file.fileno())
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
    # NOTE: Ctrl-C too, and any exception of the block.
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(temporary):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error  # the name that the user knows
        raise
    if not durable:
        return
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _open_unnamed(folder: Path) -> BinaryIO | None:
    """Open a file without a name in a folder, which disappears with the process; None if the file system has no such
    files."""
    kind = getattr(os, "O_TMPFILE", 0)
    if not kind or not os.path.isdir(_OPEN_FILES):
        return None
    try:
        return open(os.open(folder, kind | os.O_RDWR | os.O_CLOEXEC, _MODE), "wb")
    except OSError:  # Not supported here; any other error recurs when a named file is opened.
        return None


def _link(file: BinaryIO, path: Path) -> None:
    """Give a name to a file without one."""
    # NOTE: os.link follows the symbolic link in /proc only if src_dir_fd is given; the absolute path leaves it unused.
    os.link(f"{_OPEN_FILES}/{file.fileno()}", path, src_dir_fd=file.fileno())


def _is_linked(file: BinaryIO, target: Path) -> bool:
    """Give ``target`` as name to a file without one; return False if another file has that name."""
    try:
        _link(file, target)
    except FileExistsError:
        return False
    return True


def _temporary_prefix(target: Path) -> str:
    return f".{target.name[:_NAME_LIMIT]}."


def _lock(file: int) -> bool:
    """Lock a temporary file, as a mark that its writer lives; return False if another process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # A file system without locks: age alone decides.
        return True
    return True


def _has_locks(file: int) -> bool:
    """Return whether the file system supports locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def sweep(target: Path) -> None:
    """Remove the temporary files of ``target`` whose writers died; ignore files that cannot be removed."""
    prefix, oldest = _temporary_prefix(target), time.time() - STALE_SECONDS
    with suppress(OSError), os.scandir(target.parent) as items:
        for item in items:
            if item.name.startswith(prefix) and item.name.endswith((_TEMPORARY, _LINKED)):
                with suppress(OSError):
                    _sweep_one(item, oldest)


def _sweep_one(item: os.DirEntry[str], oldest: float) -> None:
    status = item.stat(follow_symlinks=False)
    # NOTE: a file that got its name late was locked before, so if the lock is free, its writer is dead at any age.
    is_young = status.st_mtime > oldest and not item.name.endswith(_LINKED)
    if not stat.S_ISREG(status.st_mode) or is_young or status.st_uid != os.geteuid():
        return
    file = os.open(item.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if _lock(file) and (status.st_mtime <= oldest or _has_locks(file)):
            os.unlink(item.path)
    finally:
        os.close(file)


def align(offset: int) -> int:
    """Round up to a multiple of ALIGNMENT."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _bytes(block: Any) -> memoryview:
    view = memoryview(block)
    return view.cast("B") if view.nbytes else memoryview(b"")


def write_sections(path: str | os.PathLike[str], sections: Mapping[str, Sequence[Any]], durable: bool = True) -> None:
    """Write a container atomically, see ``replacing``. A section is a sequence of bytes-like blocks.
    Layout: a header of 64 bytes (magic, format version, number of sections, file size, SHA-256 of the header and the
    table), one table entry of 64 bytes per section (name, offset, length, SHA-256), then the sections in order, each at
    the next multiple of 64 after zeros.
    """
    if any(len(name.encode()) > _NAME_BYTES for name in sections):
        raise ArtifactError(f"names of sections have at most {_NAME_BYTES} bytes: {', '.join(sections)}")
    blocks = {name: [_bytes(block) for block in content] for name, content in sections.items()}
    position = _HEADER.size + _ENTRY.size * len(blocks)
    table, starts = b"", []
    for name, content in blocks.items():
        starts.append(align(position))
        length = sum(block.nbytes for block in content)
        table += _ENTRY.pack(name.encode(), starts[-1], length, digest_of(content))
        position = starts[-1] + length
    header = _HEADER.pack(MAGIC, FORMAT_VERSION, len(blocks), position, b"")
    header = header[:-32] + sha256(header[:-32], table)
    with replacing(path, durable) as file:
        file.write(header + table)
        for start, content in zip(starts, blocks.values(), strict=True):
            file.write(bytes(start - file.tell()))
            for block in content:
                file.write(block)


def is_container(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins as ``write_sections`` writes it; False for a folder. Raises ArtifactError for other
    kinds of files; OSError."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        return False
    if not stat.S_ISREG(mode):
        raise ArtifactError(f"{os.fspath(path)}: it is not a regular file")
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_sections(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the sections of a container as read-only byte arrays, 64-byte aligned, after checking every digest.

    Sizes are checked against the file before memory is allocated. Raises ArtifactError for a foreign, damaged or
    truncated file, or a newer format; OSError.
    """
    return read_with_digest(path)[0]


def read_with_digest(path: str | os.PathLike[str], mapped: bool | None = False) -> tuple[dict[str, np.ndarray], bytes]:
    """Return the sections as ``read_sections`` does, and a SHA-256 digest of the whole file.

    ``mapped``: map the pages of the file, which processes share, instead of copying it. The file may be replaced and
    removed meanwhile, but must not be written to: truncation ends this process with SIGBUS, and other changes go
    undetected. ``None`` maps read-only files of MAPPED_FROM bytes or more.
    """
    with reading(path, mapped) as result:
        return result


@contextmanager
def reading(path: str | os.PathLike[str], mapped: bool | None = False) -> Iterator[tuple[dict[str, np.ndarray], bytes]]:
    """Yield what ``read_with_digest`` returns, while another thread computes the digests of large sections.

    The end of the block waits for it and raises ArtifactError for a damaged section: use no result of the block before.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ArtifactError("it is not a regular file")
        with open(path, "rb") as file:
            entries, body, digest = _read_checked(file, mapped)
        sections, large = _check_bodies(entries, body)
        damaged: list[str] = []
        thread = Thread(target=_find_damaged, args=(large, damaged)) if large else None
        if thread is not None:
            thread.start()
    except ArtifactError as error:
        error.what = f"{os.fspath(path)}: {error.what}"
        raise
    try:
        yield sections, digest
    finally:
        if thread is not None:
            thread.join()
    if damaged:
        raise ArtifactError(f"{os.fspath(path)}: {_damage(damaged[0])}", remedy=_COPY_AGAIN)


def _find_damaged(sections: list[tuple[str, np.ndarray, bytes]], damaged: list[str]) -> None:
    """Append the names of sections with other digests than expected."""
    damaged.extend(name for name, section, expected in sections if sha256(section) != expected)


def _damage(section: str) -> str:
    return f"the file is damaged: the digest of section {section!r} differs"


def _read_checked(file: io.BufferedReader, mapped: bool | None) -> tuple[list[Section], np.ndarray, bytes]:
    """Return the entries of the section table, which has been checked, all bytes, and the digest of the file."""
    size = os.fstat(file.fileno()).st_size
    head = file.read(_HEADER.size)
    count = _check_header(head, size)
    table = file.read(_ENTRY.size * count)
    if len(table) < _ENTRY.size * count:
        raise ArtifactError(f"the file is truncated inside its section table ({size} bytes)", remedy=_COPY_AGAIN)
    if sha256(head[:-32], table) != head[-32:]:
        raise ArtifactError("the file is damaged: the digest of its section table differs", remedy=_COPY_AGAIN)
    entries = _check_table(table, size)
    if size >= MAPPED_FROM and is_fixed(file.fileno()) if mapped is None else mapped:
        body = np.frombuffer(mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ), np.uint8)
    else:
        body = _read_body(file, head + table, size)
    return entries, body, head[-32:]


def _read_body(file: io.BufferedReader, start: bytes, size: int) -> np.ndarray:
    """Read the rest of a file after its first bytes into an aligned array of the whole file."""
    body = np.empty(size + ALIGNMENT, dtype=np.uint8)
    body = body[-body.ctypes.data % ALIGNMENT :][:size]
    body[: len(start)] = np.frombuffer(start, dtype=np.uint8)
    if file.readinto(body.data[len(start) :]) != size - len(start):
        raise ArtifactError("the file changed while it was read")
    body.flags.writeable = False
    return body


def is_fixed(file: int) -> bool:
    """Return whether nobody can write to an open file: no permission allows it, or its file system is read-only."""
    return not stat.S_IMODE(os.fstat(file).st_mode) & _WRITE or bool(os.fstatvfs(file).f_flag & os.ST_RDONLY)


def _check_header(head: bytes, size: int) -> int:
    """Return the number of sections of a well-formed header; raises ArtifactError."""
    if head[: len(MAGIC)] != MAGIC[: len(head)] or not head:
        kind = next((name for start, name in FOREIGN.items() if head.startswith(start)), "a file of unknown format")
        raise ArtifactError(
            f"it is not a graphc model file but {kind if head else 'empty'}",
            remedy="pass a file that graphc.export wrote; graphc.load_state reads state dictionaries",
        )
    if len(head) < _HEADER.size:
        raise ArtifactError(f"the file is truncated: it has only {size} bytes", remedy=_COPY_AGAIN)
    _, version, count, length, _ = _HEADER.unpack(head)
    if not OLDEST_VERSION <= version <= FORMAT_VERSION:
        raise ArtifactError(
            f"the file has format version {version}, this graphc reads versions {OLDEST_VERSION} to {FORMAT_VERSION}",
            remedy="install a newer graphc, or export the model again with this one",
        )
    if length != size:
        kind = "truncated" if size < length else "followed by foreign bytes"
        raise ArtifactError(f"the file is {kind}: it has {size} bytes and should have {length}", remedy=_COPY_AGAIN)
    if size > MAX_BYTES or count > MAX_SECTIONS:
        raise ArtifactError(f"the file is too large: {size} bytes, {count} sections")
    return count


def _check_table(table: bytes, size: int) -> list[Section]:
    """Return the entries of the section table, in order; raises ArtifactError for gaps or overlap."""
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


def _check_bodies(
    entries: list[Section], body: np.ndarray
) -> tuple[dict[str, np.ndarray], list[tuple[str, np.ndarray, bytes]]]:
    """Return the sections, and name, bytes and expected digest of the large ones, whose digests are not checked yet."""
    sections, large = {}, []
    end = _HEADER.size + _ENTRY.size * len(entries)
    for name, offset, length, digest in entries:
        section = body[offset : offset + length]
        is_large = length >= CONCURRENT_FROM
        if is_large:
            large.append((name, section, digest))
        if body[end:offset].any() or (not is_large and sha256(section) != digest):
            raise ArtifactError(_damage(name), remedy=_COPY_AGAIN)
        sections[name] = section
        end = offset + length
    return sections, large
