"""Indexes of shards: what they name is checked before anything is read, and nothing outside of the folder is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from graphc.checkpoints import shards
from graphc.checkpoints.shards import check_names, file_of, read_index
from graphc.errors import ArtifactError


def index(folder: Path, weight_map: Any, name: str = "model.safetensors.index.json") -> Path:
    path = folder / name
    path.write_text(json.dumps({"metadata": {"total_size": 8}, "weight_map": weight_map}))
    return path


def test_files_and_the_names_in_them(tmp_path: Path):
    for name in ("1.bin", "2.bin"):
        (tmp_path / name).write_bytes(b"x")
    found = read_index(index(tmp_path, {"a": "1.bin", "b": "2.bin", "c": "1.bin"}))
    assert found == {tmp_path / "1.bin": ["a", "c"], tmp_path / "2.bin": ["b"]}


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "part/../../secret", "", "a\0b", "..", "out", "folder/secret", "chain"]
)
def test_names_and_links_that_lead_outside_are_refused(tmp_path: Path, name: str):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"x")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to(tmp_path)
    (folder / "chain").symlink_to("out")
    with pytest.raises(ArtifactError, match="is outside of its folder"):
        read_index(index(folder, {"a": name}))


def test_links_inside_of_the_folder_and_into_the_blobs_of_a_snapshot_are_followed(tmp_path: Path):
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    assert list(read_index(index(tmp_path, {"a": "link"}))) == [tmp_path / "link"]
    snapshot, blobs = tmp_path / "models--x" / "snapshots" / "1234", tmp_path / "models--x" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "5678").write_bytes(b"x")
    (snapshot / "1.bin").symlink_to("../../blobs/5678")
    index(blobs, {"a": "1.bin"}, "9abc")
    (snapshot / "model.safetensors.index.json").symlink_to("../../blobs/9abc")
    assert list(read_index(snapshot / "model.safetensors.index.json")) == [snapshot / "1.bin"]
    (snapshot / "2.bin").symlink_to(tmp_path / "real")
    with pytest.raises(ArtifactError, match=r"'2\.bin', which is outside"):
        read_index(index(snapshot, {"a": "2.bin"}, "other.index.json"))


def test_files_that_are_not_there_are_listed(tmp_path: Path):
    (tmp_path / "1.bin").write_bytes(b"x")
    with pytest.raises(ArtifactError, match=r"2 of the 3 files that it names are missing: 2\.bin, 3\.bin"):
        read_index(index(tmp_path, {"a": "1.bin", "b": "2.bin", "c": "3.bin"}))


def test_what_is_no_index(tmp_path: Path):
    path = tmp_path / "a.index.json"
    for text, message in (
        ("{", "not readable JSON"),
        ("[" * 100000, "not readable JSON"),
        ("\xff", "not readable JSON"),
        ('{"weight_map": {"a": "1", "a": "2"}}', "names 'a' twice"),
        ("[]", "has no weight_map"),
        ('{"hidden_size": 3}', "has no weight_map"),
        ('{"weight_map": {}}', "has no weight_map"),
        ('{"weight_map": {"a": 1}}', "has no weight_map"),
    ):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(ArtifactError, match=message):
            read_index(path)


def test_limits_of_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "1.bin").write_bytes(b"")
    os.truncate(tmp_path / "1.bin", shards.MAX_BYTES + 1)
    with pytest.raises(ArtifactError, match="at most"):
        read_index(index(tmp_path, {"a": "1.bin"}))
    (tmp_path / "1.bin").unlink()
    os.mkfifo(tmp_path / "1.bin")
    with pytest.raises(ArtifactError, match="not regular files"):
        read_index(index(tmp_path, {"a": "1.bin"}))
    monkeypatch.setattr(shards, "MAX_SHARDS", 1)
    with pytest.raises(ArtifactError, match="names 2 files"):
        read_index(index(tmp_path, {"a": "1.bin", "b": "2.bin"}))
    monkeypatch.setattr(shards, "MAX_INDEX_BYTES", 10)
    with pytest.raises(ArtifactError, match="at most 10 bytes"):
        read_index(index(tmp_path, {"a": "1.bin"}))


@pytest.mark.parametrize(
    ("named", "held", "message"),
    [
        (["a"], ["a", "old"], "'old' is in 0.bin and in 1.bin"),
        (["a", "b"], ["a"], "1.bin lacks 'b', which the index says it holds"),
        (["a"], ["a", "b", "c"], "1.bin holds 'b', 'c', which the index does not name there"),
    ],
)
def test_names_in_the_index_and_in_files_are_the_same(named: list[str], held: list[str], message: str):
    with pytest.raises(ArtifactError, match=message):
        check_names("index", Path("1.bin"), named, dict.fromkeys(held), {"old": Path("0.bin")})


def test_the_file_of_a_folder(tmp_path: Path):
    def readable(path: Path) -> bool:
        return path.suffix in (".pt", ".safetensors")

    with pytest.raises(ArtifactError, match="the folder has no file of weights"):
        file_of(tmp_path, readable)
    for name in ("config.json", "step.pt"):
        (tmp_path / name).write_text("x")
    assert file_of(tmp_path, readable).name == "step.pt"
    (tmp_path / "last.pt").write_text("x")
    with pytest.raises(ArtifactError, match=r"the folder has 2 files of weights: last\.pt, step\.pt"):
        file_of(tmp_path, readable)
    for name in ("diffusion.safetensors.index.json", "pytorch_model.bin", "model.safetensors"):
        (tmp_path / name).write_text("x")
        assert file_of(tmp_path, readable).name == name
