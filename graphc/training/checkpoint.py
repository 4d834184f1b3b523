"""Checkpoints of a training in a folder: atomic writes, the last ones retained, the newest valid one loaded."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError
from graphc.base.records import dataclass
from graphc.checkpoints.tree import TREE, join, split
from graphc.files.numpy_file import read_npz, write_npz

_NAME = re.compile(r"step-(\d{9})\.npz")
_TEMPORARY = re.compile(r"\.step-\d{9}\.npz\.[0-9a-f]+\.(tmp|linked)")
_LOCK = ".lock"
VERSION = 1


@dataclass(frozen=True)
class Checkpoint:
    """State of a training from which it resumes exactly."""

    state: Mapping[str, np.ndarray]
    """Everything that the model writes, by name: parameters, optimizer states, random state."""
    progress: Mapping[str, Any]
    """Position in the order of the data, and sums of the current epoch."""
    settings: Mapping[str, Any]
    """Settings that determine the numbers: file, data, batch, seed. They identify the training."""
    best: Mapping[str, np.ndarray] = field(default_factory=dict)
    """State after the best epoch; empty unless the training ends with it."""


class Checkpoints:
    """Folder of checkpoints with one training at a time as writer."""

    def __init__(self, folder: str | os.PathLike[str], keep: int):
        """Create the folder if it is missing, and remove temporary files of killed writers.

        Raises ArgumentError while another training writes to it; OSError.
        """
        self.folder = Path(folder)
        self.keep = keep
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise ArgumentError(
                f"another training writes to {str(self.folder)!r}", remedy="wait for it, or use another folder"
            ) from None
        except OSError:  # A file system without locks.
            return
        for name in os.listdir(self.folder):
            if _TEMPORARY.fullmatch(name):
                with suppress(OSError):
                    (self.folder / name).unlink()

    def close(self) -> None:
        """Release the folder for other trainings."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def steps(self) -> list[int]:
        """Return the steps of all checkpoints, in order."""
        return sorted(int(m[1]) for m in map(_NAME.fullmatch, os.listdir(self.folder)) if m)

    def path(self, step: int) -> Path:
        """Return the path of a step's checkpoint."""
        return self.folder / f"step-{step:09d}.npz"

    def write(self, step: int, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint and remove all but the last ``keep``. Raises OSError."""
        path = self.path(step)
        tree = {
            "version": VERSION,
            "model": dict(checkpoint.state),
            "progress": dict(checkpoint.progress),
            "settings": dict(checkpoint.settings),
            "best": dict(checkpoint.best),
        }
        arrays, text = split(tree)
        write_npz(path, arrays | {TREE: np.frombuffer(text.encode(), np.uint8)})
        for old in self.steps()[: -self.keep]:
            self.path(old).unlink(missing_ok=True)
        return path

    def newest(self) -> tuple[Path, Checkpoint] | None:
        """Return the newest undamaged checkpoint with its path, or None for an empty folder.

        Raises ArtifactError if all checkpoints are damaged.
        """
        damage: ArtifactError | None = None
        for step in reversed(self.steps()):
            try:
                return self.path(step), read_checkpoint(self.path(step))
            except ArtifactError as error:
                damage = damage or error
        if damage is not None:
            raise damage
        return None


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint with its original element types. Raises ArtifactError and OSError."""
    arrays = read_npz(path)
    text = arrays.pop(TREE, None)
    try:
        tree = join(arrays, (b"" if text is None else text.tobytes()).decode())
        fields = [tree["model"], tree["progress"], tree["settings"], tree.get("best", {})]
        if tree["version"] != VERSION or not all(isinstance(field, dict) for field in fields):
            raise ValueError(f"version {tree['version']!r}")
    except (ArtifactError, ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"{os.fspath(path)}: not the checkpoint of a training: {error}") from None
    state, best = ({name: np.asarray(value) for name, value in fields[i].items()} for i in (0, 3))
    return Checkpoint(state, fields[1], fields[2], best)
