"""Folders as batches: order, chunks, what fills them up, what cannot be one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphc.base.errors import ArgumentError, ShapeError
from graphc.cli.arrays import parse_types, specs_at
from graphc.cli.batches import Folder, count_of, run_chunks
from graphc.cli.console import UsageError
from graphc.cli.trainer.conversion import Scaling


def folder_of(path: Path, text: str, count: int, shape: tuple[int, ...] = (3,)) -> Folder:
    """``count`` files, each filled with its number, for an input of this type."""
    path.mkdir()
    for i in reversed(range(count)):
        np.save(path / f"{i}.npy", np.full(shape, i, np.float32))
    (path / "notes.txt").write_text("no input")
    (spec,) = parse_types([text])
    return Folder.open(path, spec, specs_at([spec], {})[0])


def chunks_of(*inputs: Any) -> tuple[list[tuple[int, ...]], list[list[float]], list[int]]:
    """Shapes that are called with, first elements of results, and what is told."""
    shapes, told = [], []

    def call(arrays: list[Any]) -> list[np.ndarray]:
        shapes.append(arrays[0].shape)
        return [arrays[0] * 2]

    found = list(run_chunks(call, inputs, Scaling(), ["y"], told.append))
    return shapes, [part[0][:, 0].tolist() for part in found], told


def test_a_batch_of_any_size_has_a_shorter_last_chunk(tmp_path: Path):
    folder = folder_of(tmp_path / "in", "x:f32[n=1..2,3]", 5)
    shapes, rows, told = chunks_of(folder)
    assert shapes == [(2, 3), (2, 3), (1, 3)]
    assert rows == [[0, 2], [4, 6], [8]] and told == [2, 4, 5]
    assert [path.name for path in folder.files] == [f"{i}.npy" for i in range(5)]


def test_a_fixed_batch_is_filled_up_and_what_fills_it_is_dropped(tmp_path: Path):
    shapes, rows, _ = chunks_of(folder_of(tmp_path / "in", "x:f32[4,3]", 5))
    assert shapes == [(4, 3), (4, 3)] and rows == [[0, 2, 4, 6], [8]]


def test_elements_may_have_a_batch_of_one(tmp_path: Path):
    assert chunks_of(folder_of(tmp_path / "in", "x:f32[2,3]", 2, (1, 3)))[1] == [[0, 2]]


def test_elements_of_another_shape(tmp_path: Path):
    with pytest.raises(ShapeError, match=r"0\.npy has shape \[4\], an element of x: f32\[2,3\] has \[3\]"):
        chunks_of(folder_of(tmp_path / "in", "x:f32[2,3]", 2, (4,)))


def test_folders_and_inputs_that_are_no_batches(tmp_path: Path):
    with pytest.raises(UsageError, match="has no images and no arrays"):
        folder_of(tmp_path / "empty", "x:f32[2,3]", 0)
    with pytest.raises(UsageError, match="is one number, not a batch"):
        folder_of(tmp_path / "number", "x:f32", 1)


def test_folders_of_different_numbers_of_files(tmp_path: Path):
    folders = [folder_of(tmp_path / name, "x:f32[2,3]", count) for name, count in (("a", 2), ("b", 3))]
    with pytest.raises(ArgumentError, match="different numbers of files"):
        count_of(folders)


def test_outputs_without_a_batch(tmp_path: Path):
    folder = folder_of(tmp_path / "in", "x:f32[2,3]", 2)
    with pytest.raises(UsageError, match=r"output 'y' has shape \[\], not a batch of 2"):
        list(run_chunks(lambda arrays: [np.float32(1)], [folder], Scaling(), ["y"], lambda done: None))
