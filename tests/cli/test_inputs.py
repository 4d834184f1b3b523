"""Inputs of a run: which value of the command line becomes what."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphc.base.errors import ShapeError
from graphc.cli import inputs
from graphc.cli.arrays import Fill, parse_types
from graphc.cli.batches import Folder
from graphc.cli.console import UsageError


def read(types: str, *arguments: object) -> list[Any]:
    parser = argparse.ArgumentParser()
    inputs.add_inputs(parser)
    return inputs.read(parser.parse_args(list(map(str, arguments))), parse_types(types.split()), {})


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    image = pytest.importorskip("PIL.Image")
    image.new("L", (12, 10), 51).save(tmp_path / "grey.png")
    return tmp_path / "grey.png"


@pytest.mark.parametrize(
    ("types", "shape"),
    [
        ("x:f32[1,3,8,9]", (1, 3, 8, 9)),
        ("x:f32[n=1..4,8,9,1]", (1, 8, 9, 1)),
        ("x:f32[3,8,9]", (3, 8, 9)),
        ("x:f32[1,8,9]", (1, 8, 9)),
        ("x:f32[8,9]", (8, 9)),
        ("x:f32[1,1,h=4..6,9]", (1, 1, 6, 9)),
    ],
)
def test_a_picture_becomes_what_the_input_takes(picture: Path, types: str, shape: tuple[int, ...]):
    (found,) = read(types, "--input", f"x=@{picture}")
    assert found.shape == shape
    np.testing.assert_allclose(found, 0.2, rtol=1e-6)


def test_one_picture_is_no_batch_of_two(picture: Path):
    with pytest.raises(UsageError, match=r"takes 2 images\n  try    pass --input x=@folder"):
        read("x:f32[2,1,8,9]", "--input", f"x=@{picture}")
    with pytest.raises(UsageError, match="has no channels"):
        read("x:f32[1,7,8,9]", "--input", f"x=@{picture}")


def test_scale_mean_and_std_are_those_of_pictures(picture: Path):
    arguments = ["--input", f"x=@{picture}", "--scale", "1", "--mean", "50", "--std", "0.5"]
    np.testing.assert_allclose(read("x:f32[8,9]", *arguments)[0], 2.0)
    with pytest.raises(UsageError, match="--mean applies only to images, and no input is one"):
        read("x:f32[2]", "--input", "x=[1,2]", "--mean", "1")


def test_a_folder_stays_one(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.zeros(3, np.float32))
    (found,) = read("x:f32[2,3]", "--input", f"x=@{tmp_path}")
    assert isinstance(found, Folder) and found.size == 2


def test_arrays_and_what_is_filled(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.ones((2, 3), np.float32))
    a, b = read("a:f32[2,3] b:i64[2]", "--input", f"a=@{tmp_path / 'a.npy'}", "--fill", "ones")
    assert a.sum() == 6 and b.tolist() == [1, 1]
    with pytest.raises(ShapeError, match=r"has shape \[2, 3\], the model takes \[3, 2\]"):
        read("a:f32[3,2]", "--input", f"a=@{tmp_path / 'a.npy'}")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read("x:f32[8,9]", "--input", "x=@missing.png")


def test_a_seed_is_that_of_random_numbers():
    options = argparse.Namespace(fill=None, seed=3)
    assert inputs.fill_of(options, "random") == Fill("random", 3)
    with pytest.raises(UsageError, match="--fill random"):
        inputs.fill_of(options)
