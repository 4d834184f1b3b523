"""Images in folders, one folder per class, decoded on access; needs Pillow."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.files.image_file import is_image, read_pixels


class Pictures:
    """Column of images that behaves like a u8[n, height, width, channels] array."""

    dtype = np.dtype(np.uint8)

    def __init__(self, paths: Sequence[Path], height: int, width: int, channels: int):
        self.paths = list(paths)
        self.shape = (len(self.paths), height, width, channels)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return np.stack([read_pixels(self.paths[row], *self.shape[1:]) for row in rows.tolist()])

    def digest(self) -> bytes:
        """Return a digest of the names and sizes in bytes of the files."""
        state = hashlib.sha256()
        for path in self.paths:
            state.update(f"{path.parent.name}/{path.name} {path.stat().st_size}\n".encode())
        return state.digest()


def list_pictures(folder: Path) -> tuple[list[str], list[Path], np.ndarray]:
    """Return the names of the classes, the image files in order of class and name, and the class index of each (i64).

    Raises ArgumentError if there are none.
    """
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))
    paths, labels = [], []
    for number, name in enumerate(classes):
        images = sorted(p for p in (folder / name).iterdir() if is_image(p) and p.is_file())
        paths += images
        labels += [number] * len(images)
    if not paths:
        raise ArgumentError(
            f"{str(folder)!r} has no pictures in folders of classes", remedy=f"store them as {folder}/CLASS/PICTURE.png"
        )
    return classes, paths, np.array(labels, np.int64)
