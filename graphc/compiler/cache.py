"""The disk cache of compiled programs: one file per program, found by a digest of all that its code depends on.

An entry is trusted because of where it lies: in a folder that belongs to the user and that nobody else can write to.
Every byte is checked against its digest before it is used. Whatever goes wrong, programs are compiled as if there were
no cache, and one warning says so.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import stat
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np
from llvmlite import binding

from graphc.base import config
from graphc.base.errors import ArtifactError
from graphc.base.version import VERSION
from graphc.files.container import read_sections, write_sections
from graphc.files.device_plan import DevicePlan
from graphc.files.manifest import Manifest, TargetSpec, from_json, to_json

SUFFIX, TUNED = ".program", ".tuned"
_CHOICES = "choices"
LOCKS = ".locks"
"""Folder with the lock files, of which there are at most 256."""
LOCK_SECONDS = 120.0
"""How long to wait for another process that compiles the same program, before compiling it here too."""
STALE_SECONDS = 3600.0
"""Age of a temporary file from which its writer is taken to be dead."""
KEEP = 0.9
"""Part of the limit that is kept when the oldest entries are removed."""
_MODE = 0o700
_OTHERS_WRITE = 0o022
_PAUSE = 0.01
_KEY = "key"
"""Section with the key of an entry, which says so under any name."""
_SECTIONS = ["manifest", "constants", "object"]
_ON_DEVICE = ["plan", "text"]
"""Sections that follow in programs for devices."""
_FIRST = "first_"
"""How the names of a prepacking's sections begin."""


@dataclass(frozen=True)
class OnDevice:
    """What a program for a device has besides."""

    plan: DevicePlan
    """What runs it."""
    text: str
    """CUDA C of its kernels."""


@dataclass(frozen=True)
class Entry:
    """A compiled program as the cache holds it."""

    manifest: Manifest
    object: bytes
    """Object code; a cubin for a GPU, nothing for a device that takes text."""
    constants: np.ndarray
    """The constant block, as bytes."""
    prepacking: Entry | None = field(default=None, kw_only=True)
    """What runs once for many calls: its outputs are params of the program whose paths begin with PREPACKED."""
    on_device: OnDevice | None = field(default=None, kw_only=True)
    """Where it was made for a device."""


@dataclass(frozen=True)
class Usage:
    """What lies in a cache."""

    folder: str
    entries: int
    bytes: int
    limit: int


class Cache:
    """A folder of compiled programs. Where the file system fails, ``get``, ``load`` and ``store`` warn and go on."""

    def __init__(self, folder: Path, limit: int):
        self.folder = folder
        self.limit = limit
        """Bytes that the entries may take together."""
        self._usable: bool | None = None

    def get(self, key: str, target: TargetSpec, build: Callable[[], Entry]) -> tuple[Entry, bool]:
        """The entry of a key and True, or what ``build`` returns, which is stored, and False. Of several threads and
        processes that ask for one key at the same time, one builds."""
        found = self.load(key, target)
        if found is not None:
            return found, True
        with self._lock(key):
            found = self.load(key, target)
            if found is not None:
                return found, True
            made = build()
            self.store(key, made)
            return made, False

    def load(self, key: str, target: TargetSpec) -> Entry | None:
        """The entry of a key; None when there is none or it cannot be trusted, in which case it is removed."""
        path = self.path(key)
        try:
            if not path.exists() or not self._is_usable():
                return None
            _check_owner(path, stat.S_ISREG)
            entry = _read(path, key)
            if any(e.manifest.target != target for e in (entry, entry.prepacking) if e is not None):
                raise ArtifactError(f"{path}: it was built for another machine")
        except (OSError, ArtifactError) as error:
            _warn(error)
            _remove(path)
            return None
        with suppress(OSError):  # A cache that cannot be written to can be read.
            os.utime(path)
        return entry

    def store(self, key: str, entry: Entry) -> None:
        """Keeps an entry; the least recently used ones go when there is too much."""
        parts = {_KEY: key.encode(), **_sections(entry)}
        size = sum(len(part) for part in parts.values())
        if size > self.limit or not self._is_usable():
            return
        try:
            sections = {name: [part] for name, part in parts.items()}
            write_sections(self.path(key), sections, durable=False)  # Damaged entries are found and removed.
            self.evict()
        except (OSError, ArtifactError) as error:
            _warn(error)

    def path(self, key: str) -> Path:
        """The file of a key."""
        return self.folder / f"{key}{SUFFIX}"

    def evict(self) -> None:
        """Removes what dead writers left, and the least recently used entries when all together take too much."""
        files = self._files()
        total = sum(size for _, size, _ in files)
        if total <= self.limit:
            return
        for _, size, path in sorted(files):
            if total <= KEEP * self.limit:
                break
            _remove(path)
            total -= size

    def _files(self) -> list[tuple[float, int, Path]]:
        """(time of last use, bytes, path) of every entry; stale temporary files are removed."""
        found = []
        oldest = time.time() - STALE_SECONDS
        with os.scandir(self.folder) as items:
            for item in items:
                try:
                    status = item.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if item.name.endswith(SUFFIX):
                    found.append((status.st_mtime, status.st_size, Path(item.path)))
                elif item.name.endswith(".tmp") and status.st_mtime < oldest:
                    _remove(Path(item.path))
        return found

    def choices(self, target: TargetSpec) -> dict[str, str]:
        """What was measured to be faster than the schedule's own choice, by the keys of codegen.schedule.pipeline."""
        path = self._choices_path(target)
        try:
            if not path.exists() or not self._is_usable():
                return {}
            _check_owner(path, stat.S_ISREG)
            found = json.loads(read_sections(path)[_CHOICES].tobytes())
            return {str(key): str(label) for key, label in found.items()}
        except (OSError, ArtifactError, ValueError, KeyError, AttributeError) as error:
            _warn(error)
            _remove(path)
            return {}

    def choose(self, target: TargetSpec, found: Mapping[str, str | None]) -> None:
        """Keeps choices from now on, and drops those that are None."""
        if not self._is_usable():
            return
        with self._lock("00"):
            kept = {**self.choices(target), **found}
            text = json.dumps({key: label for key, label in sorted(kept.items()) if label is not None})
            try:
                write_sections(self._choices_path(target), {_CHOICES: [text.encode()]})
            except (OSError, ArtifactError) as error:
                _warn(error)

    def _choices_path(self, target: TargetSpec) -> Path:
        return self.folder / f"{hashlib.sha256(repr(target).encode()).hexdigest()}{TUNED}"

    def clear(self, unused: float = 0.0) -> int:
        """Removes the entries that were not used for so many seconds, or all of them and the choices; returns how many
        entries. Raises OSError."""
        if not self.folder.exists():
            return 0
        last = time.time() - unused
        files = [path for used, _, path in self._files() if not unused or used < last]
        for path in [] if unused else self.folder.glob(f"*{TUNED}"):
            path.unlink(missing_ok=True)
        for path in files:
            path.unlink(missing_ok=True)
        return len(files)

    def entries(self) -> list[tuple[str, int, float]]:
        """(key, bytes, time of last use) of every entry, the last used one first. Raises OSError."""
        files = self._files() if self.folder.exists() else []
        return [(path.name.removesuffix(SUFFIX), size, used) for used, size, path in sorted(files, reverse=True)]

    def fault(self) -> str:
        """Why the folder, if it exists, is not one that only this user writes to; an empty text where it is."""
        try:
            if self.folder.exists():
                _check_owner(self.folder, stat.S_ISDIR)
                _check_parents(self.folder)
            return ""
        except OSError as error:
            return str(error)
        except ArtifactError as error:
            return error.what

    def usage(self) -> Usage:
        """What lies in the cache now. Raises OSError."""
        files = self._files() if self.folder.exists() else []
        return Usage(str(self.folder), len(files), sum(size for _, size, _ in files), self.limit)

    def _is_usable(self) -> bool:
        """Whether the folder exists (it is made) and only its owner, who is this user, can write to it."""
        if self._usable is None:
            try:
                self.folder.mkdir(mode=_MODE, parents=True, exist_ok=True)
                _check_owner(self.folder, stat.S_ISDIR)
                _check_parents(self.folder)
                self._usable = True
            except (OSError, ArtifactError) as error:
                _warn(error)
                self._usable = False
        return self._usable

    @contextmanager
    def _lock(self, key: str) -> Iterator[None]:
        """Keeps other threads and processes away from a key, for LOCK_SECONDS at most."""
        file = self._open_lock(key)
        if file < 0:
            yield
            return
        try:
            _acquire(file)
            yield
        finally:
            # NOTE: a child forked meanwhile has the file open too; unlocking, unlike closing, does not wait for it.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)
            os.close(file)

    def _open_lock(self, key: str) -> int:
        """A file descriptor, or -1 where there can be no locks."""
        if not self._is_usable():
            return -1
        try:
            folder = self.folder / LOCKS
            folder.mkdir(mode=_MODE, exist_ok=True)
            _check_owner(folder, stat.S_ISDIR)
            return os.open(folder / key[:2], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except (OSError, ArtifactError) as error:
            _warn(error)
            return -1


def _acquire(file: int) -> None:
    """Locks a file, or gives up after LOCK_SECONDS and where files cannot be locked."""
    end = time.monotonic() + LOCK_SECONDS
    while time.monotonic() < end:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(_PAUSE)
        except OSError:
            return


def _check_owner(path: Path, is_kind: Callable[[int], bool]) -> None:
    status = os.lstat(path)
    if not is_kind(status.st_mode):
        raise ArtifactError(f"{path} is a link or of another kind")
    if status.st_uid != os.geteuid():
        raise ArtifactError(f"{path} belongs to another user")
    if status.st_mode & _OTHERS_WRITE:
        raise ArtifactError(f"{path} can be written by other users")


def _check_parents(folder: Path) -> None:
    """Raises ArtifactError when others could put a folder of their own in the place of one that leads to ``folder``."""
    for parent in Path(os.path.realpath(folder)).parents:
        status = os.stat(parent)
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            raise ArtifactError(f"{parent}, in which {folder} lies, can be written by all users and is not sticky")
        if status.st_uid not in (0, os.geteuid()):
            raise ArtifactError(f"{parent}, in which {folder} lies, belongs to another user")


def _sections(entry: Entry) -> dict[str, Any]:
    """An entry as named bytes."""
    found = {"manifest": to_json(entry.manifest), "constants": entry.constants, "object": entry.object}
    if entry.on_device is not None:
        found |= {"plan": to_json(entry.on_device.plan), "text": entry.on_device.text.encode()}
    if entry.prepacking is not None:
        found |= {_FIRST + name: part for name, part in _sections(entry.prepacking).items()}
    return found


def _read(path: Path, key: str) -> Entry:
    sections = read_sections(path)
    if sections.pop(_KEY, np.empty(0, np.uint8)).tobytes() != key.encode():
        raise ArtifactError(f"{path}: it is the entry of another key")
    names = list(sections)
    first, on_device = [*_SECTIONS, *(_FIRST + name for name in _SECTIONS)], [*_SECTIONS, *_ON_DEVICE]
    if names not in (_SECTIONS, first, on_device):
        raise ArtifactError(f"{path}: it has the sections {', '.join(sections)}")
    entry = _entry(path, sections)
    if names == on_device:
        plan: DevicePlan = from_json(DevicePlan, sections["plan"].tobytes())
        return replace(entry, on_device=OnDevice(plan, _text(path, sections["text"])))
    return replace(entry, prepacking=_entry(path, sections, _FIRST)) if names == first else entry


def _text(path: Path, section: np.ndarray) -> str:
    try:
        return section.tobytes().decode()
    except UnicodeDecodeError as error:
        raise ArtifactError(f"{path}: its text is not valid UTF-8: {error}") from None


def _entry(path: Path, sections: dict[str, np.ndarray], prefix: str = "") -> Entry:
    manifest: Manifest = from_json(Manifest, sections[f"{prefix}manifest"].tobytes())
    if sections[f"{prefix}constants"].size != manifest.constants:
        raise ArtifactError(f"{path}: the constant block has the wrong size")
    return Entry(manifest, sections[f"{prefix}object"].tobytes(), sections[f"{prefix}constants"])


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _warn(error)


_warned = threading.Event()


def _warn(error: Exception) -> None:
    """Warns, the first time in this process."""
    if not _warned.is_set():
        _warned.set()
        what = error.what if isinstance(error, ArtifactError) else str(error)
        warnings.warn(
            f"the cache of compiled programs cannot be used as it should: {what} (GRAPHC_CACHE=off turns it off)",
            RuntimeWarning,
            stacklevel=2,
        )


# ---- keys

_NO_CODE = frozenset(
    {
        *("verify", "dump", "print_after", "threads", "compile_threads", "spin_us", "logs"),
        *("programs", "program_memory", "warn_programs"),
        *("progress", "explain_recompiles", "debug", "emulator", "cache", "cache_dir", "cache_size"),
    }
)
"""Options that do not change the code of a program; all others are part of its key."""


def key_of(target: TargetSpec, parts: Iterable[str | bytes | np.ndarray]) -> str:
    """The key of a program for a target that depends on ``parts`` besides the options and the compiler itself."""
    options = {name: value for name, value in asdict(config.read()).items() if name not in _NO_CODE}
    state = hashlib.sha256(_LOADED)
    for part in (repr(target), repr(sorted(options.items())), *parts):
        data = _bytes(part)
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


def _bytes(part: str | bytes | np.ndarray) -> Any:
    if isinstance(part, np.ndarray):
        return np.ascontiguousarray(part).reshape(-1).view(np.uint8)
    return part.encode() if isinstance(part, str) else part


def _compiler() -> bytes:
    """A digest of versions, and of names, sizes and times of all source files, which change more often."""
    state = hashlib.sha256(repr(sorted(versions().items())).encode())
    stack = [os.path.dirname(os.path.dirname(config.__file__))]
    while stack:
        with os.scandir(stack.pop()) as items:
            for item in sorted(items, key=lambda i: i.name):
                if item.is_dir(follow_symlinks=False):
                    stack.append(item.path)
                elif item.name.endswith(".py"):
                    status = item.stat()
                    state.update(f"{item.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return state.digest()


def versions() -> dict[str, str]:
    """Versions of what builds native code."""
    llvm = ".".join(map(str, binding.llvm_version_info))
    return {"graphc": VERSION, "llvmlite": llvmlite.__version__, "llvm": llvm}


# NOTE: taken when this module is loaded, because the code that runs is the one that was there then.
_LOADED = _compiler()


# ---- the cache of this process


def current() -> Cache | None:
    """The cache that the options ask for; None when it is off, or when somebody wants to see each step of a compile."""
    options = config.read()
    if not options.cache or options.dump or options.print_after or options.verify == "pass":
        return None
    return _open(options.cache_dir, options.cache_size)


@functools.cache
def _open(folder: str, limit: int) -> Cache:
    return Cache(Path(os.path.expanduser(folder)), limit)


def choices(target: TargetSpec) -> dict[str, str]:
    """The choices of the cache of this process; none where there is no cache."""
    disk = current()
    return {} if disk is None else disk.choices(target)
