"""The disk cache of compiled programs: one file per program, keyed by a digest of everything its code depends on.

Trust rests on location: the folder belongs to the user and nobody else can write to it. Every byte is checked against
its digest before use. On any error, programs are compiled as without a cache, and one warning reports it.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import stat
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base import config
from graphc.base.errors import ArtifactError, CompileError
from graphc.base.lazy import deferred
from graphc.base.records import dataclass
from graphc.base.sizes.size import Dimension, UndecidedSize
from graphc.base.version import VERSION
from graphc.files.cache_folders import cache_folders
from graphc.files.container import read_sections, write_sections
from graphc.files.digests import digest_of, sha256
from graphc.files.manifest import Extent, Manifest, TargetSpec, from_json, to_json
from graphc.files.private_folders import check_owner, check_parents
from graphc.runtime.code.host_facts import SUFFIX as RECORD
from graphc.runtime.code.host_facts import host_facts

if TYPE_CHECKING:
    from graphc.files.device_plan import DevicePlan

read_plan = deferred("graphc.files.device_plan:read_plan")

SUFFIX, PACK, ASKED, TUNED, MODEL = ".program", ".kernels", ".question", ".tuned", ".gcm"
"""Suffixes of programs, packs of kernels (see compiler.kernel_cache), questions, choices of tuning, and model files."""
_PROGRAMS = (SUFFIX, MODEL)
_CHOICES, _QUESTION = "choices", "question"
INDEX = "kernels.index"
"""File that names the pack of each kernel."""
LOCKS = ".locks"
"""Folder of the lock files, at most 256."""
LOCK_SECONDS = 120.0
"""Timeout for another process that compiles the same program; then compile it here too."""
STALE_SECONDS = 3600.0
"""Age from which the writer of a temporary file counts as dead."""
KEEP = 0.9
"""Fraction of the limit that remains after removing the oldest entries."""
_MODE = 0o700
_PAUSE = 0.01
_KEY = "key"
"""Section with the key of an entry, so that a renamed file is noticed."""
_SECTIONS = ["manifest", "constants", "object"]
_ON_DEVICE = ["plan", "text"]
"""Further sections in programs for devices."""
_FIRST = "first_"
"""Prefix of the sections of a prepacking."""


@dataclass(frozen=True)
class DeviceCode:
    """The additional parts of a program for a device."""

    plan: DevicePlan
    """The plan of launches."""
    text: str
    """CUDA C of its kernels."""


@dataclass(frozen=True)
class CacheEntry:
    """A compiled program in the cache."""

    manifest: Manifest
    object: bytes
    """Object code; a cubin for a GPU, empty for a device that compiles the text."""
    constants: np.ndarray
    """The constant block, as bytes."""
    prepacking: CacheEntry | None = field(default=None, kw_only=True)
    """Program that runs once for many calls: its outputs are params of this one, whose paths begin with PREPACKED."""
    on_device: DeviceCode | None = field(default=None, kw_only=True)
    """Set for programs of a device."""


@dataclass(frozen=True)
class Question:
    """Comparison of sizes that stopped a compilation."""

    what: str
    """The message of the error."""
    relation: str
    a: Extent
    b: Extent
    dims: tuple[Dimension, ...]

    def error(self) -> CompileError:
        """Return an error with this question as its cause, as the compilation raised it."""
        error = CompileError(self.what)
        error.__cause__ = UndecidedSize.of(self.relation, self.a, self.b)
        return error


@dataclass(frozen=True)
class Usage:
    """The size of a cache."""

    folder: str
    entries: int
    bytes: int
    limit: int


class Cache:
    """A folder of compiled programs. On errors of the file system, ``get``, ``load`` and ``store`` warn and go on."""

    def __init__(self, folder: Path, limit: int, shared: Sequence[Path] = ()):
        """Entries that ``folder`` lacks are also read from ``shared`` folders, which nothing is written to."""
        self.folder = folder
        self.shared = shared
        self.limit = limit
        """Limit on the bytes of all entries together."""
        self._usable: dict[Path, bool] = {}

    def get(self, key: str, target: TargetSpec, build: Callable[[], CacheEntry]) -> tuple[CacheEntry, bool]:
        """Return the entry of a key and True, or build and store one, and return it and False.

        Of several threads and processes with the same key at the same time, one builds.
        """
        entry = self.load(key, target)
        if entry is not None:
            return entry, True
        with self._lock(key):
            entry = self.load(key, target)
            if entry is not None:
                return entry, True
            built = build()
            self.store(key, built)
            return built, False

    def load(self, key: str, target: TargetSpec) -> CacheEntry | None:
        """Return the entry of a key, or None. Remove an entry that cannot be trusted."""
        try:
            path = self._located(f"{key}{SUFFIX}")
            if path is None:
                return None
            entry = _read(path, key)
            if any(e.manifest.target != target for e in (entry, entry.prepacking) if e is not None):
                raise ArtifactError(f"{path}: built for another machine")
        except (OSError, ArtifactError) as error:
            self._refuse(f"{key}{SUFFIX}", error)
            return None
        if path.parent == self.folder:
            with suppress(OSError):  # A cache that cannot be written to can be read.
                os.utime(path)
        return entry

    def _located(self, name: str) -> Path | None:
        """Return the file of a name in the first folder that has it, or None. Raise ArtifactError where others than
        this user, or root in shared folders, could have written it."""
        for folder in (self.folder, *self.shared):
            path = folder / name
            if path.exists() and self.is_usable(folder):
                check_owner(path, stat.S_ISREG, folder != self.folder)
                return path
        return None

    def _refuse(self, name: str, error: Exception) -> None:
        """Warn of a file that cannot be trusted, and remove that of the own folder."""
        warn(error)
        remove(self.folder / name)

    def store(self, key: str, entry: CacheEntry) -> None:
        """Store an entry. Remove the least recently used ones beyond the limit."""
        sections_of_entry = {_KEY: key.encode(), **_sections(entry)}
        size = sum(len(content) for content in sections_of_entry.values())
        if size > self.limit or not self.is_usable():
            return
        try:
            sections = {name: [content] for name, content in sections_of_entry.items()}
            write_sections(self.path(key), sections, durable=False)  # Damaged entries are found and removed.
            self.evict()
        except (OSError, ArtifactError) as error:
            warn(error)

    def path(self, key: str) -> Path:
        """Return the file of a key."""
        return self.folder / f"{key}{SUFFIX}"

    def evict(self) -> None:
        """Remove temporary files of dead writers, and the least recently used entries beyond the limit."""
        files = self._files()
        total = sum(size for _, size, _ in files)
        if total <= self.limit:
            return
        for _, size, path in sorted(files):
            if total <= KEEP * self.limit:
                break
            remove(path)
            total -= size

    def _files(self) -> list[tuple[float, int, Path]]:
        """Return (time of last use, bytes, path) of every program, pack of kernels, question, and model file. Remove
        stale temporary files."""
        entries = []
        oldest = time.time() - STALE_SECONDS
        with os.scandir(self.folder) as items:
            for item in items:
                try:
                    status = item.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if item.name.endswith((SUFFIX, PACK, ASKED, MODEL)):
                    entries.append((status.st_mtime, status.st_size, Path(item.path)))
                elif item.name.endswith(".tmp") and status.st_mtime < oldest:
                    remove(Path(item.path))
        return entries

    def model(self, key: str) -> Path | None:
        """Return the model file of a key, or None. The caller checks its content."""
        name = f"{key}{MODEL}"
        try:
            path = self._located(name)
        except (OSError, ArtifactError) as error:
            self._refuse(name, error)
            return None
        if path is not None and path.parent == self.folder:
            with suppress(OSError):
                os.utime(path)
        return path

    def store_model(self, key: str, write: Callable[[Path], Any]) -> bool:
        """Let ``write`` write the model file of a key. Return whether the folder can be written to and holds the file.

        Several processes may write it at the same time: each file is complete, and the last one stays.
        """
        path = self.folder / f"{key}{MODEL}"
        if not self.is_usable():
            return False
        try:
            write(path)
            self.evict()
        except OSError as error:
            warn(error)
        return path.exists()

    def refuse_model(self, key: str, error: Exception) -> None:
        """Warn of a damaged model file, and remove it."""
        self._refuse(f"{key}{MODEL}", error)

    def question(self, key: str) -> Question | None:
        """Return the question that stopped the compilation of a key before, or None."""
        try:
            path = self._located(f"{key}{ASKED}")
            return None if path is None else from_json(Question, read_sections(path)[_QUESTION].tobytes())
        except (OSError, ArtifactError, KeyError) as error:
            self._refuse(f"{key}{ASKED}", error)
            return None

    def ask(self, key: str, question: Question) -> None:
        """Store the question that stopped the compilation of a key."""
        if self.is_usable():
            try:
                write_sections(self.folder / f"{key}{ASKED}", {_QUESTION: [to_json(question)]}, durable=False)
            except (OSError, ArtifactError) as error:
                warn(error)

    def choices(self, target: TargetSpec) -> dict[str, str]:
        """Return the schedule choices that tuning measured as faster, by the keys of codegen.schedule.pipeline."""
        name = self._choices_path(target).name
        try:
            path = self._located(name)
            if path is None:
                return {}
            stored = json.loads(read_sections(path)[_CHOICES].tobytes())
            return {str(key): str(label) for key, label in stored.items()}
        except (OSError, ArtifactError, ValueError, KeyError, AttributeError) as error:
            self._refuse(name, error)
            return {}

    def choose(self, target: TargetSpec, measured: Mapping[str, str | None]) -> None:
        """Store choices, and drop choices of None."""
        if not self.is_usable():
            return
        with self._lock("00"):
            merged = {**self.choices(target), **measured}
            text = json.dumps({key: label for key, label in sorted(merged.items()) if label is not None})
            try:
                write_sections(self._choices_path(target), {_CHOICES: [text.encode()]})
            except (OSError, ArtifactError) as error:
                warn(error)

    def _choices_path(self, target: TargetSpec) -> Path:
        return self.folder / f"{sha256(repr(target).encode()).hex()}{TUNED}"

    def clear(self, unused: float = 0.0) -> int:
        """Remove programs and kernels unused for this many seconds, or all of them, the choices and the records of
        machines. Return the number of programs and model files.

        Raise OSError.
        """
        if not self.folder.exists():
            return 0
        last = time.time() - unused
        files = [path for used, _, path in self._files() if not unused or used < last]
        others = (path for suffix in (TUNED, RECORD) for path in self.folder.glob(f"*{suffix}"))
        for path in [] if unused else [self.folder / INDEX, *others]:
            path.unlink(missing_ok=True)
        for path in files:
            path.unlink(missing_ok=True)
        return sum(path.suffix in _PROGRAMS for path in files)

    def entries(self) -> list[tuple[str, int, float]]:
        """Return (key, bytes, time of last use) of every program and model file, most recently used first. Raise
        OSError."""
        files = self._files() if self.folder.exists() else []
        return [(path.stem, size, used) for used, size, path in sorted(files, reverse=True) if path.suffix in _PROGRAMS]

    def fault(self) -> str:
        """Create the folder and, for a moment, a file in it. Explain why this fails or why the folder is not private to
        this user; return an empty text where it can be used."""
        try:
            self.folder.mkdir(mode=_MODE, parents=True, exist_ok=True)
            check_owner(self.folder, stat.S_ISDIR)
            check_parents(self.folder)
            probe = self.folder / f"{os.getpid()}.probe"
            probe.touch()
            probe.unlink()
            return ""
        except OSError as error:
            return f"{self.folder} cannot be written ({error.strerror}): set GRAPHC_CACHE_DIR to a folder of yours"
        except ArtifactError as error:
            return error.what

    def usage(self) -> Usage:
        """Return the present size of the cache. Raise OSError."""
        files = self._files() if self.folder.exists() else []
        programs = sum(path.suffix in _PROGRAMS for _, _, path in files)
        return Usage(str(self.folder), programs, sum(size for _, size, _ in files), self.limit)

    def is_usable(self, folder: Path | None = None) -> bool:
        """Create the folder. Return whether only its owner, this user, can write to it. Of a shared folder, return
        whether only this user or root can."""
        folder = self.folder if folder is None else folder
        if folder not in self._usable:
            try:
                if folder == self.folder:
                    folder.mkdir(mode=_MODE, parents=True, exist_ok=True)
                check_owner(folder, stat.S_ISDIR, folder != self.folder)
                check_parents(folder)
                self._usable[folder] = True
            except (OSError, ArtifactError) as error:
                warn(error)
                self._usable[folder] = False
        return self._usable[folder]

    @contextmanager
    def _lock(self, key: str) -> Iterator[None]:
        """Lock a key against other threads and processes, for at most LOCK_SECONDS."""
        file = self._open_lock(key)
        if file < 0:
            yield
            return
        try:
            _acquire(file)
            yield
        finally:
            # NOTE: a child forked meanwhile has the file open too, so closing alone would not release the lock.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)
            os.close(file)

    def _open_lock(self, key: str) -> int:
        """Return a file descriptor, or -1 where locks are impossible."""
        if not self.is_usable():
            return -1
        try:
            folder = self.folder / LOCKS
            folder.mkdir(mode=_MODE, exist_ok=True)
            check_owner(folder, stat.S_ISDIR)
            return os.open(folder / key[:2], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except (OSError, ArtifactError) as error:
            warn(error)
            return -1


def _acquire(file: int) -> None:
    """Lock a file. Give up after LOCK_SECONDS, or where the file system has no locks."""
    end = time.monotonic() + LOCK_SECONDS
    while time.monotonic() < end:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(_PAUSE)
        except OSError:
            return


def _sections(entry: CacheEntry) -> dict[str, Any]:
    """Return an entry as named bytes."""
    sections = {"manifest": to_json(entry.manifest), "constants": entry.constants, "object": entry.object}
    if entry.on_device is not None:
        sections |= {"plan": to_json(entry.on_device.plan), "text": entry.on_device.text.encode()}
    if entry.prepacking is not None:
        sections |= {_FIRST + name: content for name, content in _sections(entry.prepacking).items()}
    return sections


def _read(path: Path, key: str) -> CacheEntry:
    sections = read_sections(path)
    if sections.pop(_KEY, np.empty(0, np.uint8)).tobytes() != key.encode():
        raise ArtifactError(f"{path}: the entry belongs to another key")
    names = list(sections)
    first, on_device = [*_SECTIONS, *(_FIRST + name for name in _SECTIONS)], [*_SECTIONS, *_ON_DEVICE]
    if names not in (_SECTIONS, first, on_device):
        raise ArtifactError(f"{path}: unexpected sections {', '.join(sections)}")
    entry = _entry(path, sections)
    if names == on_device:
        plan = read_plan(sections["plan"].tobytes())
        return replace(entry, on_device=DeviceCode(plan, _text(path, sections["text"])))
    return replace(entry, prepacking=_entry(path, sections, _FIRST)) if names == first else entry


def _text(path: Path, section: np.ndarray) -> str:
    try:
        return section.tobytes().decode()
    except UnicodeDecodeError as error:
        raise ArtifactError(f"{path}: its text is not valid UTF-8: {error}") from None


def _entry(path: Path, sections: dict[str, np.ndarray], prefix: str = "") -> CacheEntry:
    manifest: Manifest = from_json(Manifest, sections[f"{prefix}manifest"].tobytes())
    if sections[f"{prefix}constants"].size != manifest.constants:
        raise ArtifactError(f"{path}: the constant block has the wrong size")
    return CacheEntry(manifest, sections[f"{prefix}object"].tobytes(), sections[f"{prefix}constants"])


def remove(path: Path) -> None:
    """Remove a file if it exists; warn where that is impossible."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        warn(error)


_warned = threading.Event()


def warn(error: Exception) -> None:
    """Warn, only once in this process."""
    if not _warned.is_set():
        _warned.set()
        what = error.what if isinstance(error, ArtifactError) else str(error)
        warnings.warn(
            f"the cache of compiled programs does not work: {what} (GRAPHC_CACHE=off turns it off)",
            RuntimeWarning,
            stacklevel=2,
        )


# ---- keys

_NO_CODE = frozenset(
    {
        *("verify", "dump", "print_after", "threads", "compile_threads", "spin_us", "logs"),
        *("programs", "program_memory", "warn_programs", "tier"),
        *("progress", "explain_recompiles", "debug", "emulator", "cache", "cache_dir", "cache_size"),
    }
)
"""Options that do not change the code of a program. All others are part of its key."""


def key_of(target: TargetSpec, inputs: Iterable[str | bytes | np.ndarray]) -> str:
    """Return the key of a program for a target. ``parts`` is its input apart from options and the compiler itself."""
    options = {name: value for name, value in asdict(config.read()).items() if name not in _NO_CODE}
    blocks = [_compiler()]
    for content in (repr(target), repr(sorted(options.items())), *inputs):
        data = _bytes(content)
        blocks += [len(data).to_bytes(8, "little"), data]
    return digest_of(blocks).hex()


def _bytes(content: str | bytes | np.ndarray) -> Any:
    if isinstance(content, np.ndarray):
        return np.ascontiguousarray(content).reshape(-1).view(np.uint8)
    return content.encode() if isinstance(content, str) else content


_IMPORTED = time.time_ns()
_CLOCK_STEP = 20_000_000
"""Nanoseconds by which times of files may lag behind the clock: Linux stamps files at its last tick, 1 to 10 ms ago."""


@functools.cache
def _compiler() -> bytes:
    """Return the digest of the sources that this process runs.

    A file that has changed since this process imported graphc may not be the source of the running code. The digest is
    then a random one, so that no other process takes the programs of this one.
    """
    digest, changed = _source_digest()
    return os.urandom(len(digest)) if changed > _IMPORTED - _CLOCK_STEP else digest


def _source_digest() -> tuple[bytes, int]:
    """Return a digest of versions and of names, sizes and times of all source files, which change more often. Return
    too when the last one changed, in nanoseconds.

    Of an installed wheel, the digests in its record count instead of times, which differ on each machine. A file that
    is newer than the record has been changed since.
    """
    package = Path(config.__file__).parents[1]
    installed, recorded = -1, b""
    for record in package.parent.glob("graphc_compiler-*.dist-info/RECORD"):
        listed = record.read_bytes().splitlines()
        recorded = b"\n".join(sorted(line for line in listed if line.startswith(b"graphc/") and b".py,sha256=" in line))
        installed = int(record.stat().st_mtime) if recorded else -1
    latest, lines = 0, [f"{sorted(versions().items())}"]
    for name, status in _sources(package):
        latest = max(latest, status.st_ctime_ns)
        changed = 0 if int(status.st_mtime) <= installed else status.st_mtime_ns
        lines.append(f"{name} {status.st_size} {changed}\n")
    return sha256("".join(lines).encode(), recorded), latest


_BYTE_CODE = "__pycache__"


def _sources(package: Path) -> Iterator[tuple[str, os.stat_result]]:
    stack = [str(package)]
    while stack:
        with os.scandir(stack.pop()) as items:
            for item in sorted(items, key=lambda i: i.name):
                if item.name.endswith(".py"):
                    yield item.name, item.stat()
                elif item.name != _BYTE_CODE and item.is_dir(follow_symlinks=False):
                    stack.append(item.path)


def versions() -> dict[str, str]:
    """Return the versions of the software that builds native code."""
    here = host_facts()
    return {"graphc": VERSION, "llvmlite": here.llvmlite, "llvm": here.llvm}


# ---- the cache of this process


def current() -> Cache | None:
    """Return the cache selected by the options; None when it is off, or when options print steps of a compilation."""
    options = config.read()
    if not options.cache or options.dump or options.print_after or options.verify == "pass":
        return None
    return _open(cache_folders(), options.cache_size)


@functools.cache
def _open(folders: tuple[Path, ...], limit: int) -> Cache:
    return Cache(folders[0], limit, folders[1:])


def choices(target: TargetSpec) -> dict[str, str]:
    """Return the choices in the cache of this process; empty without a cache."""
    disk = current()
    return {} if disk is None else disk.choices(target)
