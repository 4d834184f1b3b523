"""Checkpoints: what comes back, which are kept, which is the newest whole one, and one writer at a time."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from graphc.errors import ArgumentError, ArtifactError
from graphc.training.checkpoint import Checkpoint, Checkpoints, read_checkpoint

STATE = {
    "fc.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "half": np.array([1, 2], np.float16),
    "graphc.random": np.array([1, -2], np.int64),
    "count": np.array(3, np.uint8),
}
ONE = Checkpoint(STATE, {"epoch": 1, "sums": {"loss": 0.1}}, {"seed": 3, "data": "ab"})


def test_what_was_written_comes_back_bit_by_bit(tmp_path: Path):
    disk = Checkpoints(tmp_path / "run", 3)
    checkpoint = read_checkpoint(disk.write(7, ONE))
    assert checkpoint.progress == ONE.progress and checkpoint.settings == ONE.settings
    assert {n: (a.dtype, a.shape, a.tobytes()) for n, a in checkpoint.state.items()} == {
        n: (a.dtype, a.shape, a.tobytes()) for n, a in STATE.items()
    }


def test_the_last_ones_are_kept(tmp_path: Path):
    disk = Checkpoints(tmp_path, 2)
    for step in (1, 5, 12, 100):
        disk.write(step, ONE)
    assert disk.steps() == [12, 100]
    newest = disk.newest()
    assert newest is not None and newest[0].name == "step-000000100.npz"


def test_a_damaged_one_is_passed_over(tmp_path: Path):
    disk = Checkpoints(tmp_path, 3)
    assert disk.newest() is None
    disk.write(1, ONE)
    path = disk.write(2, ONE)
    content = path.read_bytes()
    for bad in (content[:-40], content[: len(content) // 2], b"", b"PK\x03\x04"):
        path.write_bytes(bad)
        newest = disk.newest()
        assert newest is not None and newest[0].name == "step-000000001.npz"
    disk.path(1).write_bytes(b"nothing")
    with pytest.raises(ArtifactError):
        disk.newest()


def test_a_flipped_bit_is_found_or_changes_nothing(tmp_path: Path):
    path = Checkpoints(tmp_path, 3).write(1, ONE)
    content = bytearray(path.read_bytes())
    expected = {n: a.tobytes() for n, a in STATE.items()}
    refused = 0
    for place in range(0, len(content), 7):
        content[place] ^= 1 << place % 8
        path.write_bytes(content)
        content[place] ^= 1 << place % 8
        try:
            checkpoint = read_checkpoint(path)
        except ArtifactError:
            refused += 1
            continue
        same = {n: np.asarray(a).tobytes() for n, a in checkpoint.state.items()} == expected
        assert same and (checkpoint.progress, checkpoint.settings) == (ONE.progress, ONE.settings)
    assert refused > 100


def test_other_archives_are_no_checkpoints(tmp_path: Path):
    np.savez(tmp_path / "step-000000001.npz", x=np.zeros(3))
    with pytest.raises(ArtifactError, match="not the checkpoint of a training"):
        read_checkpoint(tmp_path / "step-000000001.npz")


def test_one_training_writes_at_a_time(tmp_path: Path):
    first = Checkpoints(tmp_path, 3)
    with pytest.raises(ArgumentError, match="another training writes"):
        Checkpoints(tmp_path, 3)
    first.close()
    Checkpoints(tmp_path, 3).close()


def test_what_killed_writers_left_is_removed(tmp_path: Path):
    left, other = tmp_path / ".step-000000012.npz.0123abcd.tmp", tmp_path / ".mine.tmp"
    for path in (left, other):
        path.write_bytes(b"half")
    Checkpoints(tmp_path, 3).close()
    assert not left.exists() and other.exists()
    assert sorted(os.listdir(tmp_path)) == [".lock", ".mine.tmp"]
