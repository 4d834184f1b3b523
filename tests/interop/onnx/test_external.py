"""Data beside a model file: read from regular files of its folder alone, of which each byte is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphc.base.errors import ArtifactError
from graphc.interop.onnx.external import MOST_FILLED, MOST_SHARED, External


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with data, beside a file that is none of its."""
    (tmp_path / "secret").write_bytes(b"secret!!")
    inside = tmp_path / "model"
    (inside / "sub").mkdir(parents=True)
    (inside / "data.bin").write_bytes(bytes(range(16)))
    (inside / "sub" / "data.bin").write_bytes(bytes(8))
    return inside


def read(folder: Path, location: str, size: int = 8, **entries: Any) -> np.ndarray:
    return External(str(folder)).read({"location": location, **entries}, size, "tensor")


def test_bytes_come_from_where_the_entries_say(folder: Path):
    assert read(folder, "data.bin").tolist() == list(range(8))
    assert read(folder, "data.bin", offset="4", length="8").tolist() == list(range(4, 12))
    assert read(folder, "sub/data.bin").tolist() == [0] * 8
    assert read(folder, "data.bin", 0).tolist() == []


def test_a_model_in_the_present_folder_has_one(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    assert External("").read({"location": "data.bin"}, 2, "tensor").tolist() == [0, 1]


@pytest.mark.parametrize(
    "location",
    [
        "../secret",
        "sub/../../secret",
        "./data.bin",
        "sub//data.bin",
        "",
        ".",
        "..",
        "/etc/hostname",
        "a\0b",
        "..\\secret",
    ],
)
def test_no_path_leads_out_of_the_folder(folder: Path, location: str):
    with pytest.raises(ArtifactError, match="is not a path within the folder"):
        read(folder, location)


def test_absolute_paths_into_the_folder_are_refused(folder: Path):
    with pytest.raises(ArtifactError, match="is not a path within"):
        read(folder, str(folder / "data.bin"))


def test_links_are_refused(folder: Path):
    os.symlink(folder.parent / "secret", folder / "link")
    os.symlink(folder.parent, folder / "out")
    os.link(folder.parent / "secret", folder / "hard")
    for location, text in (("link", "cannot be opened"), ("out/secret", "cannot be opened"), ("hard", "one name")):
        with pytest.raises(ArtifactError, match=text):
            read(folder, location)


def test_what_is_no_regular_file_is_refused_without_waiting(folder: Path):
    os.mkfifo(folder / "pipe")
    for location in ("pipe", "sub", "none", "data.bin/x"):
        with pytest.raises(ArtifactError, match=r"not a regular file|cannot be opened"):
            read(folder, location)


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": "9"},
        {"offset": "16"},
        {"offset": "999999999999999999"},
        {"offset": "-1"},
        {"offset": "0x4"},
        {"offset": "١"},
        {"offset": "1" * 400},
        {"length": "7"},
        {"length": "-8"},
        {"length": "1e3"},
    ],
    ids=str,
)
def test_places_beyond_the_file_and_other_lengths_are_refused(folder: Path, entries: dict[str, str]):
    with pytest.raises(ArtifactError, match="tensor"):
        read(folder, "data.bin", **entries)


def test_tensors_share_bytes_only_so_often(folder: Path):
    external = External(str(folder))
    for _ in range(MOST_SHARED):
        external.read({"location": "data.bin"}, 16, "tensor")
    with pytest.raises(ArtifactError, match="times over"):
        external.read({"location": "data.bin"}, 16, "tensor")


def test_a_model_without_a_folder_has_no_data_beside_it():
    with pytest.raises(ArtifactError, match="has no folder") as found:
        External(None).read({"location": "data.bin"}, 8, "tensor")
    assert "path of the model file" in str(found.value)


def test_what_is_written_out_has_a_limit_in_all():
    external = External(None)
    external.fill(MOST_FILLED, "tensor")
    with pytest.raises(ArtifactError, match="sparse"):
        external.fill(1, "tensor")
