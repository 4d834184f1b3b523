"""Data sources named on the command line: files and folders as datasets by input name."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.sizes.size import is_size
from graphc.cli.trainer.named_arrays import NamedArrays
from graphc.data.csv_file import read_csv
from graphc.data.idx_file import MNIST, read_idx
from graphc.files.image_file import is_image, read_pixels
from graphc.files.manifest import TensorSpec
from graphc.files.numpy_file import read_npy, read_npz


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


DELIMITERS = {".csv": ",", ".tsv": "\t"}
FORMS = "FILE.npz, FILE.csv, FOLDER with a folder of pictures for each class, or NAME=FILE,NAME=FILE"
_BINDINGS = re.compile(r"\s*[A-Za-z_][\w.]*=[^,]+(,\s*[A-Za-z_][\w.]*=[^,]+)*\s*")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_DIGITS = "train-images-idx3-ubyte"
"""Name of an MNIST file, by which a folder with its files is recognized."""


def open_data(
    text: str, inputs: Sequence[TensorSpec], columns: str | None = None, training: bool = True
) -> NamedArrays:
    """Open the data that ``text`` names, for the inputs of an entry in their order.

    ``columns`` assigns columns of a table to inputs, ``x=0..3,y=kind``: indices from 0, inclusive ranges, names, and
    several of these joined with ``+``. ``training`` selects the training set in a folder with the four files of MNIST.
    Raises ArgumentError, ArtifactError for a damaged file, and OSError.
    """
    path = Path(text)
    if columns is not None and path.suffix.lower() not in DELIMITERS:
        raise ArgumentError(f"--columns needs a table, but {text!r} is not one", remedy="pass --data FILE.csv")
    if path.is_dir():
        return NamedArrays(_folder(path, inputs, training), text)
    if not path.exists() and _BINDINGS.fullmatch(text):
        return NamedArrays({name: _array(Path(file)) for name, file in _bindings(text, "--data").items()}, text)
    if not path.is_file():
        raise FileNotFoundError(2, "no such file or folder of data", text)
    if path.suffix == ".npz":
        return NamedArrays(read_npz(path), text)
    if path.suffix.lower() in DELIMITERS:
        return NamedArrays(_table(path, columns, inputs), text)
    raise ArgumentError(f"{text!r} has no arrays by name", remedy=f"pass {FORMS}")


def _bindings(text: str, option: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    bindings = {name.strip(): value.strip() for name, _, value in pairs}
    if len(bindings) < len(pairs):
        raise ArgumentError(f"{option} {text!r} names an input twice")
    return bindings


def _array(path: Path) -> np.ndarray:
    """Read the array of one file."""
    readers: Mapping[str, Callable[[Path], np.ndarray]] = {".npy": read_npy, ".csv": _numbers, ".tsv": _numbers}
    if not path.is_file():
        raise FileNotFoundError(2, "no such file of data", str(path))
    if path.suffix == ".npz":
        arrays = read_npz(path)
        if len(arrays) != 1:
            raise ArgumentError(
                f"{path} holds {len(arrays)} arrays", remedy=f"pass --data {path}, which takes them by name"
            )
        return next(iter(arrays.values()))
    return readers.get(path.suffix.lower(), read_idx)(path)


def _numbers(path: Path) -> np.ndarray:
    return read_csv(path, dtype="float64", delimiter=DELIMITERS[path.suffix.lower()]).values


def _table(path: Path, columns: str | None, inputs: Sequence[TensorSpec]) -> dict[str, np.ndarray]:
    """Return the selected columns of a table, or those with the names of the inputs."""
    chosen = {s.name: s.name for s in inputs} if columns is None else _bindings(columns, "--columns")
    types = {spec.name: spec.dtype for spec in inputs}
    arrays = {}
    for name, text in chosen.items():
        if name not in types:
            raise ArgumentError(
                f"--columns names {name!r}, which is not an input", remedy=f"use one of {', '.join(types)}"
            )
        dtype = types[name] if types[name] in ("f32", "f64", "i32", "i64", "u8") else "f32"
        delimiter = DELIMITERS[path.suffix.lower()]
        arrays[name] = read_csv(path, dtype=dtype, columns=_columns(text), delimiter=delimiter).values
    return arrays


def _columns(text: str) -> list[str | int]:
    columns: list[str | int] = []
    for item in (p.strip() for p in text.split("+")):
        if match := _RANGE.fullmatch(item):
            first, last = int(match[1]), int(match[2])
            if last < first:
                raise ArgumentError(f"the columns {item} run backwards", remedy=f"write {last}..{first}")
            columns += range(first, last + 1)
        else:
            columns.append(int(item) if item.isdigit() else item)
    return columns


def _folder(path: Path, inputs: Sequence[TensorSpec], training: bool) -> dict[str, Any]:
    if len(inputs) != 2:
        names = ", ".join(s.name for s in inputs)
        raise ArgumentError(f"a folder has images and classes, but the entry takes {names}", remedy="pass a .npz file")
    pictures, classes = inputs
    if any((path / f"{_DIGITS}{suffix}").is_file() for suffix in ("", ".gz")):
        digits = MNIST(path, train=training)
        return {pictures.name: digits.images, classes.name: digits.labels}
    _, paths, labels = list_pictures(path)
    return {pictures.name: Pictures(paths, *_picture_size(pictures)), classes.name: labels}


def _picture_size(spec: TensorSpec) -> tuple[int, int, int]:
    """Return height, width and channels of an input's images."""
    sample = spec.shape[1:]
    if not any(is_size(n) for n in sample):
        sizes = [int(n) for n in sample]
        if len(sizes) == 2:
            return sizes[0], sizes[1], 1
        if len(sizes) == 3 and sizes[0] in (1, 3):
            return sizes[1], sizes[2], sizes[0]
        if len(sizes) == 3 and sizes[2] in (1, 3):
            return sizes[0], sizes[1], sizes[2]
    raise ArgumentError(
        f"{spec.name!r} takes samples {list(map(str, sample))}, which are not images of one size",
        remedy="use samples [channels, height, width] or [height, width, channels] with 1 or 3 channels",
    )
