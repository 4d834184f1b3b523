"""Compiled models of other files, kept in the cache as model files that processes map."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphc.base.errors import ArtifactError
from graphc.base.lazy import deferred
from graphc.compiler import cache
from graphc.models.model_file import LoadedModel, load
from graphc.runtime.loader import host

if TYPE_CHECKING:
    from graphc.models.model_entries import Entry

# A process that finds the file compiles nothing.
export = deferred("graphc.models.model_export:export")


def cached_model(
    source: str | os.PathLike[str], options: Sequence[str], make: Callable[[], Mapping[str, Entry]]
) -> LoadedModel | None:
    """Return the model file in the cache for a source, or compile its entries and store them there.

    ``options`` says everything but the source that the entries depend on. Return None where the cache is off or cannot
    be written to, where the source is larger than half of its limit, and where ``make`` returns no entries.
    """
    disk, files = cache.current(), _files(source)
    if disk is None or sum(status.st_size for _, status in files) > disk.limit // 2:
        return None
    key = cache.key_of(host(), (*map(_facts, files), *options))
    model = _load(disk, key)
    if model is not None:
        return model
    entries = make()
    if not entries or not disk.store_model(key, lambda file: export(entries, path=file, native=True)):
        return None
    return _load(disk, key)


def _load(disk: cache.Cache, key: str) -> LoadedModel | None:
    """Return the model of a key; None where there is none, it is damaged, or another process has just removed it."""
    path = disk.model(key)
    try:
        return None if path is None else load(path, trust=True, map=True)
    except FileNotFoundError:
        return None
    except ArtifactError as error:
        disk.refuse_model(key, error)
        return None


def _files(source: str | os.PathLike[str]) -> list[tuple[Path, os.stat_result]]:
    """Return the files of a source, which is a file or a folder. Raise OSError."""
    root = Path(source).resolve()
    files = sorted(root.iterdir()) if root.is_dir() else [root]
    return [(file, file.stat()) for file in files]


def _facts(file: tuple[Path, os.stat_result]) -> str:
    """Return path, size and times of a file, and its numbers in the file system. Any write changes the time of the last
    change, which no call sets."""
    path, status = file
    times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
    return f"{path} {status.st_size} {times} {status.st_dev} {status.st_ino}"
