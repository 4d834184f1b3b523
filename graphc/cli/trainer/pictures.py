"""Pictures in folders, one folder for each class, read when they are asked for; needs Pillow."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.files.image_file import is_image, read_pixels


class Pictures:
    """A column of pictures as an array of bytes would be: u8[n, height, width, channels], all of one size."""

    dtype = np.dtype(np.uint8)

    def __init__(self, paths: Sequence[Path], height: int, width: int, channels: int):
        self.paths = list(paths)
        self.shape = (len(self.paths), height, width, channels)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return np.stack([read_pixels(self.paths[row], *self.shape[1:]) for row in rows.tolist()])

    def digest(self) -> bytes:
        """What stands for the pictures: their names and sizes in bytes."""
        state = hashlib.sha256()
        for path in self.paths:
            state.update(f"{path.parent.name}/{path.name} {path.stat().st_size}\n".encode())
        return state.digest()


def list_pictures(folder: Path) -> tuple[list[str], list[Path], np.ndarray]:
    """Names of the classes, the pictures in order of class and name, and the number of the class of each (i64).

    Raises ArgumentError where there are none.
    """
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))
    paths, labels = [], []
    for number, name in enumerate(classes):
        found = sorted(p for p in (folder / name).iterdir() if is_image(p) and p.is_file())
        paths += found
        labels += [number] * len(found)
    if not paths:
        raise ArgumentError(
            f"{str(folder)!r} has no pictures in folders of classes", remedy=f"{folder}/CLASS/PICTURE.png"
        )
    return classes, paths, np.array(labels, np.int64)
