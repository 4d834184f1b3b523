"""Pictures in folders, one folder for each class, read when they are asked for; needs Pillow."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff")
MOST_PIXELS = 1 << 28
"""Largest picture that is decoded."""


class Pictures:
    """A column of pictures as an array of bytes would be: u8[n, height, width, channels], all of one size."""

    dtype = np.dtype(np.uint8)

    def __init__(self, paths: Sequence[Path], height: int, width: int, channels: int):
        self.paths = list(paths)
        self.shape = (len(self.paths), height, width, channels)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return np.stack([self._read(self.paths[row]) for row in rows.tolist()])

    def _read(self, path: Path) -> np.ndarray:
        """A picture as ``graphc run`` takes it: turned as its file says, resized so that it covers the size, cropped
        around its middle."""
        pillow, operations = _pillow("PIL.Image"), _pillow("PIL.ImageOps")
        _, height, width, channels = self.shape
        try:
            with pillow.open(path) as picture:
                if picture.width * picture.height > MOST_PIXELS:
                    raise ArtifactError(f"{path}: {picture.width} x {picture.height} pixels, at most {MOST_PIXELS}")
                found = operations.exif_transpose(picture).convert("L" if channels == 1 else "RGB")
                found = operations.fit(found, (width, height), pillow.Resampling.BILINEAR)
                return np.asarray(found, np.uint8).reshape(height, width, channels)
        except ArtifactError:
            raise
        except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError) as error:
            raise ArtifactError(f"{path}: it is no picture that can be read: {error}") from None

    def digest(self) -> bytes:
        """What stands for the pictures: their names and sizes in bytes."""
        state = hashlib.sha256()
        for path in self.paths:
            state.update(f"{path.parent.name}/{path.name} {path.stat().st_size}\n".encode())
        return state.digest()


def _pillow(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        what = "pictures are read by Pillow, which is not installed"
        raise ArgumentError(what, remedy="pip install 'graphc[images]'") from None


def list_pictures(folder: Path) -> tuple[list[str], list[Path], np.ndarray]:
    """Names of the classes, the pictures in order of class and name, and the number of the class of each (i64).

    Raises ArgumentError where there are none.
    """
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))
    paths, labels = [], []
    for number, name in enumerate(classes):
        found = sorted(p for p in (folder / name).iterdir() if p.suffix.lower() in SUFFIXES and p.is_file())
        paths += found
        labels += [number] * len(found)
    if not paths:
        raise ArgumentError(
            f"{str(folder)!r} has no pictures in folders of classes", remedy=f"{folder}/CLASS/PICTURE.png"
        )
    return classes, paths, np.array(labels, np.int64)
