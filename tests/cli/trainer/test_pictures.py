"""Folders of pictures: classes by name, one size for all, and what is no picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.cli.trainer.conversion import Scaling
from graphc.cli.trainer.pictures import Pictures, list_pictures
from graphc.cli.trainer.source import open_data
from graphc.files.manifest import TensorSpec


def names(tmp_path: Path) -> None:
    for name in ("cat/b.png", "cat/a.PNG", "cat/notes.txt", "ant/z.jpg", ".hidden/x.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")


def test_classes_and_pictures_are_in_order_of_their_names(tmp_path: Path):
    names(tmp_path)
    classes, paths, labels = list_pictures(tmp_path)
    assert classes == ["ant", "cat"] and labels.tolist() == [0, 1, 1]
    assert [path.name for path in paths] == ["z.jpg", "a.PNG", "b.png"]


def test_the_digest_knows_names_and_sizes(tmp_path: Path):
    names(tmp_path)
    _, paths, _ = list_pictures(tmp_path)
    before = Pictures(paths, 2, 2, 3).digest()
    assert Pictures(paths[::-1], 2, 2, 3).digest() != before
    paths[0].write_bytes(b"more")
    assert Pictures(paths, 2, 2, 3).digest() != before


def test_pictures_are_read_in_one_size(tmp_path: Path):
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for name, size, colour in (("a", (6, 4), (255, 0, 0)), ("b", (3, 2), (0, 0, 255))):
        (tmp_path / name).mkdir()
        pillow.new("RGB", size, colour).save(tmp_path / name / "1.png")
    inputs = (TensorSpec("x", "f32", (2, 3, 2, 3)), TensorSpec("y", "i64", (2,)))
    found = open_data(str(tmp_path), inputs)
    found.fit(inputs, Scaling())
    batch = found.take([0, 1])
    assert batch["x"].shape == (2, 3, 2, 3) and batch["y"].tolist() == [0, 1]
    assert batch["x"][0, :, 0, 0].tolist() == [1, 0, 0] and batch["x"][1, :, 1, 2].tolist() == [0, 0, 1]
    grey = (TensorSpec("x", "f32", (2, 2, 3)), inputs[1])
    found = open_data(str(tmp_path), grey)
    found.fit(grey, Scaling())
    assert found.take([0])["x"].shape == (1, 2, 3)
