"""Checkpoints of a training in a folder: written atomically, the last ones kept, the newest whole one found again."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError
from graphc.checkpoints.tree import TREE, join, split
from graphc.files.numpy_file import read_npz, write_npz

_NAME = re.compile(r"step-(\d{9})\.npz")
_LEFT = re.compile(r"\.step-\d{9}\.npz\.[0-9a-f]+\.(tmp|linked)")
_LOCK = ".lock"
VERSION = 1


@dataclass(frozen=True)
class Checkpoint:
    """What a training needs to go on as if it had never stopped."""

    state: Mapping[str, np.ndarray]
    """Parameters, states of optimizers, random state: all that the model writes, by name."""
    progress: Mapping[str, Any]
    """Where in the order of the data it is, and sums of the epoch so far."""
    settings: Mapping[str, Any]
    """What decides the numbers: file, data, batch, seed. Another training has others."""


class Checkpoints:
    """A folder that one training at a time writes to."""

    def __init__(self, folder: str | os.PathLike[str], keep: int):
        """Makes the folder where there is none, and removes what writers that were killed left in it. Raises
        ArgumentError while another training writes to it; OSError."""
        self.folder = Path(folder)
        self.keep = keep
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise ArgumentError(
                f"another training writes to {str(self.folder)!r}", remedy="wait for it, or another folder"
            ) from None
        except OSError:  # A file system without locks.
            return
        for name in os.listdir(self.folder):
            if _LEFT.fullmatch(name):
                with suppress(OSError):
                    (self.folder / name).unlink()

    def close(self) -> None:
        """Lets other trainings write to the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def steps(self) -> list[int]:
        """The steps after which there is a checkpoint, in order."""
        return sorted(int(m[1]) for m in map(_NAME.fullmatch, os.listdir(self.folder)) if m)

    def path(self, step: int) -> Path:
        """The file of a step."""
        return self.folder / f"step-{step:09d}.npz"

    def write(self, step: int, checkpoint: Checkpoint) -> Path:
        """Writes a checkpoint and removes those beyond the last ``keep``. Raises OSError."""
        path = self.path(step)
        tree = {
            "version": VERSION,
            "model": dict(checkpoint.state),
            "progress": dict(checkpoint.progress),
            "settings": dict(checkpoint.settings),
        }
        arrays, text = split(tree)
        write_npz(path, arrays | {TREE: np.frombuffer(text.encode(), np.uint8)})
        for old in self.steps()[: -self.keep]:
            self.path(old).unlink(missing_ok=True)
        return path

    def newest(self) -> tuple[Path, Checkpoint] | None:
        """The newest checkpoint that is whole; None where there is none. Raises ArtifactError where there are some and
        none of them is."""
        found: ArtifactError | None = None
        for step in reversed(self.steps()):
            try:
                return self.path(step), read_checkpoint(self.path(step))
            except ArtifactError as error:
                found = found or error
        if found is not None:
            raise found
        return None


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint in a file, every element in the type in which it was written. Raises ArtifactError and OSError."""
    arrays = read_npz(path)
    text = arrays.pop(TREE, None)
    try:
        tree = join(arrays, (b"" if text is None else text.tobytes()).decode())
        parts = [tree["model"], tree["progress"], tree["settings"]]
        if tree["version"] != VERSION or not all(isinstance(part, dict) for part in parts):
            raise ValueError(f"version {tree['version']!r}")
    except (ArtifactError, ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"{os.fspath(path)}: it is no checkpoint of a training: {error}") from None
    return Checkpoint({name: np.asarray(value) for name, value in parts[0].items()}, parts[1], parts[2])
