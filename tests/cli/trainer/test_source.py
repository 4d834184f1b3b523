"""Data as they are named: archives, tables, IDX files, folders, and several files by names of inputs."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from graphc.cli.trainer.conversion import Scaling
from graphc.cli.trainer.source import Pictures, list_pictures, open_data
from graphc.errors import ArgumentError, ArtifactError
from graphc.files.manifest import TensorSpec

INPUTS = (TensorSpec("x", "f32", (2, 2)), TensorSpec("y", "i64", (2,)))


def write_idx(path: Path, array: np.ndarray) -> None:
    head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    with gzip.open(path, "wb") if path.suffix == ".gz" else open(path, "wb") as file:
        file.write(head + array.astype(np.uint8).tobytes())


def test_an_archive_has_the_names_of_the_inputs(tmp_path: Path):
    path = tmp_path / "d.npz"
    np.savez(path, x=np.ones((3, 2), np.float32), y=np.arange(3))
    result = open_data(str(path), INPUTS)
    assert not result.fit(INPUTS, Scaling()) and result.take([2])["y"].tolist() == [2]


@pytest.mark.parametrize("columns", ["x=0..1,y=2", "x=a+b,y=kind", "x=0+b, y=kind"])
def test_columns_of_a_table(columns: str, tmp_path: Path):
    path = tmp_path / "d.csv"
    path.write_text("a,b,kind\n1,2,0\n3,4,1\n5,6,2\n")
    result = open_data(str(path), INPUTS, columns)
    result.fit(INPUTS, Scaling())
    batch = result.take([1, 2])
    assert batch["x"].tolist() == [[3, 4], [5, 6]] and batch["y"].tolist() == [1, 2]


def test_columns_without_a_choice_have_the_names_of_the_inputs(tmp_path: Path):
    path = tmp_path / "d.tsv"
    path.write_text("y\tx\n1\t2\n3\t4\n")
    inputs = (TensorSpec("x", "f32", (2,)), TensorSpec("y", "i64", (2,)))
    result = open_data(str(path), inputs)
    result.fit(inputs, Scaling())
    assert result.take([0, 1])["x"].tolist() == [2, 4]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("z=0,x=1", "names 'z', which is not an input"),
        ("x=0,x=1", "names an input twice"),
        ("x=3..1,y=0", "run backwards"),
        ("x=7,y=0", "no unique column 7"),
        ("x=c,y=0", "no unique column 'c'"),
    ],
)
def test_wrong_columns_are_told(columns: str, message: str, tmp_path: Path):
    path = tmp_path / "d.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ArgumentError, match=message):
        open_data(str(path), INPUTS, columns)


def test_columns_of_no_table_are_refused(tmp_path: Path):
    np.savez(tmp_path / "d.npz", x=np.ones(3))
    with pytest.raises(ArgumentError, match="needs a table"):
        open_data(str(tmp_path / "d.npz"), INPUTS, "x=0")


def test_files_by_names_of_inputs(tmp_path: Path):
    write_idx(tmp_path / "images.gz", np.arange(12).reshape(3, 2, 2))
    write_idx(tmp_path / "labels", np.arange(3))
    np.save(tmp_path / "weight.npy", np.ones(3))
    text = f"x={tmp_path}/images.gz, y={tmp_path}/labels,w={tmp_path}/weight.npy"
    result = open_data(text, INPUTS)
    assert {name: a.shape for name, a in result.arrays.items()} == {"x": (3, 2, 2), "y": (3,), "w": (3,)}
    with pytest.raises(ArgumentError, match="names an input twice"):
        open_data(f"x={tmp_path}/labels,x={tmp_path}/labels", INPUTS)
    with pytest.raises(FileNotFoundError):
        open_data(f"x={tmp_path}/nothing", INPUTS)


def test_a_folder_of_digits_has_a_part_for_training_and_another(tmp_path: Path):
    for part, count in (("train", 5), ("t10k", 3)):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte.gz", np.zeros((count, 28, 28)))
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte.gz", np.arange(count))
    inputs = (TensorSpec("x", "f32", (2, 1, 28, 28)), TensorSpec("y", "i64", (2,)))
    assert len(open_data(str(tmp_path), inputs)) == 5
    assert len(open_data(str(tmp_path), inputs, training=False)) == 3


def test_what_is_no_data_is_told(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        open_data(str(tmp_path / "nothing.npz"), INPUTS)
    (tmp_path / "a.bin").write_bytes(b"abcd")
    with pytest.raises(ArgumentError, match="has no arrays by name"):
        open_data(str(tmp_path / "a.bin"), INPUTS)
    with pytest.raises(ArtifactError, match="not an IDX file"):
        open_data(f"x={tmp_path}/a.bin", INPUTS)
    with pytest.raises(ArgumentError, match="no pictures in folders of classes"):
        open_data(str(tmp_path), (TensorSpec("x", "f32", (2, 1, 4, 4)), INPUTS[1]))
    with pytest.raises(ArgumentError, match="not images of one size"):
        (tmp_path / "cat").mkdir()
        (tmp_path / "cat" / "a.png").write_bytes(b"")
        open_data(str(tmp_path), INPUTS)
    with pytest.raises(ArgumentError, match="the entry takes x"):
        open_data(str(tmp_path), INPUTS[:1])


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
