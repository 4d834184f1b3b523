"""Folders as inputs: read their files in sorted order, in chunks of the model's batch size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArgumentError, ShapeError
from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.cli import images
from graphc.cli.arrays import of_file, read_array
from graphc.cli.console import UsageError
from graphc.cli.trainer.conversion import Scaling
from graphc.files import image_file
from graphc.files.manifest import TensorSpec

ARRAYS = (".npy", ".npz")


@dataclass(frozen=True)
class Folder:
    """Input whose batch elements are the files of a folder."""

    spec: TensorSpec
    files: tuple[Path, ...]
    element: tuple[int, ...]
    """Shape of one batch element."""
    size: int
    """Elements in one call."""
    fixed: bool
    """Whether every call must have exactly ``size`` elements."""

    @staticmethod
    def open(path: Path, spec: TensorSpec, concrete: TensorSpec) -> Folder:
        """List the files of a folder for an input; ``concrete`` is ``spec`` with numbers for named dimensions.

        Raises UsageError for a folder without images and arrays, and for an input without a batch.
        """
        files = tuple(sorted(p for p in path.iterdir() if image_file.is_image(p) or p.suffix in ARRAYS))
        if not files:
            suffixes = ", ".join((*ARRAYS, *image_file.SUFFIXES))
            raise UsageError(
                f"{str(path)!r} has no images and no arrays", remedy=f"name a folder with files that end in {suffixes}"
            )
        if not spec.shape:
            raise UsageError(f"input {spec.name!r} is one number, not a batch", remedy=f"pass --input {spec.name}=3")
        return Folder(spec, files, tuple(concrete.shape[1:]), max(concrete.shape[0], 1), not is_size(spec.shape[0]))

    def read(self, start: int, scaling: Scaling) -> np.ndarray:
        """Read the chunk of files from index ``start`` on; a fixed batch is padded with its last element."""
        rows = [self._element(path, scaling) for path in self.files[start : start + self.size]]
        rows += rows[-1:] * (self.size - len(rows)) if self.fixed else []
        return np.stack(rows)

    def _element(self, path: Path, scaling: Scaling) -> np.ndarray:
        if image_file.is_image(path):
            layout = images.layout_of(self.element, self.spec.name)
            return images.read_image(path, layout, self.spec.dtype, scaling)
        array = of_file(read_array(str(path)), BY_NAME[self.spec.dtype])
        array = array[0] if array.shape == (1, *self.element) else array
        if array.shape != self.element:
            raise ShapeError(
                f"{path} has shape {list(array.shape)}, an element of {self.spec} has {list(self.element)}"
            )
        return array


def count_of(folders: Sequence[Folder]) -> int:
    """Return the number of files in each folder. Raises ArgumentError if the folders differ in files or batch size."""
    counts = {len(folder.files) for folder in folders}
    if len(counts) > 1 or len({folder.size for folder in folders}) > 1:
        counted = ", ".join(f"{f.spec.name} {len(f.files)} in batches of {f.size}" for f in folders)
        raise ArgumentError(f"folders have different numbers of files or batches: {counted}")
    return counts.pop()


def run_chunks(
    call: Callable[[list[Any]], list[np.ndarray]],
    inputs: Sequence[Any],
    scaling: Scaling,
    names: Sequence[str],
    tell: Callable[[int], None],
) -> Iterator[list[np.ndarray]]:
    """Yield the outputs of each chunk, without padding.

    ``inputs`` are arrays or folders, ``names`` the names of the outputs; ``tell`` is called with the number of files
    done. Raises UsageError for an output without a batch dimension.
    """
    folders = [x for x in inputs if isinstance(x, Folder)]
    count, size = count_of(folders), folders[0].size
    for start in range(0, count, size):
        results = call([x.read(start, scaling) if isinstance(x, Folder) else x for x in inputs])
        chunk_size = min(size, count - start)
        call_size = size if any(f.fixed for f in folders) else chunk_size
        for name, array in zip(names, results, strict=True):
            if not array.ndim or array.shape[0] != call_size:
                raise UsageError(
                    f"output {name!r} has shape {list(array.shape)}, not a batch of {call_size}",
                    remedy="pass one file at a time",
                )
        yield [array[:chunk_size] for array in results]
        tell(start + chunk_size)
