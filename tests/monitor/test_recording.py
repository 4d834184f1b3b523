"""Files of recorded steps: what is refused, and what damaged files do."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError, ArtifactError, GraphcError
from graphc.checkpoints.tree import join, split
from graphc.files.numpy_file import read_npz, write_npz
from graphc.monitor.recording import random_state, read, set_random_state, versions


@pytest.fixture
def path(tmp_path):
    net = nn.Linear(3, 2)
    with gc.debug(record=tmp_path / "step.gcr"):
        net(gc.ones(2, 3))
    return tmp_path / "step.gcr"


def test_what_is_in_a_file(path, capsys):
    found = read(path)
    assert (found.name, found.error, found.versions) == ("net", "", versions())
    assert [(kind, name) for kind, name, _ in found.holders] == [("module", "net")]
    assert [op[1] for op in found.ops] == ["matmul", "add"] and "Linear" in found.ops[0][2]


def test_the_size_is_told(tmp_path, capsys):
    net = nn.Linear(3, 2)
    with gc.debug(record=tmp_path / "step.gcr"):
        net(gc.ones(2, 3))
    assert f"{(tmp_path / 'step.gcr').stat().st_size:,} bytes" in capsys.readouterr().err


@pytest.mark.parametrize("value", [object(), {1, 2}, lambda: 0, np.array(["a"])])
def test_what_cannot_be_recorded_is_refused_before_the_call(tmp_path, value):
    called = []

    def step(x, other):
        called.append(other)

    with pytest.raises(ArgumentError, match="cannot be recorded"), gc.debug(record=tmp_path / "step.gcr"):
        step(gc.ones(1), value)
    assert not called and not list(tmp_path.iterdir())


def test_a_block_without_a_step(tmp_path):
    with pytest.raises(ArgumentError, match="no step was called"), gc.debug(record=tmp_path / "step.gcr"):
        gc.ones(2).exp()
    with pytest.raises(ZeroDivisionError), gc.debug(record=tmp_path / "step.gcr"):
        1 / 0  # noqa: B018
    assert not list(tmp_path.iterdir())


def test_tensors_of_devices_are_refused(tmp_path):
    net = nn.Linear(3, 2).to("cuda-emu")
    with pytest.raises(GraphcError, match="steps of the host"), gc.debug(record=tmp_path / "step.gcr"):
        net(gc.ones(2, 3))


def test_damaged_and_foreign_files(path, tmp_path):
    net = nn.Linear(3, 2)
    data = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    for _ in range(60):
        spoiled = bytearray(data)
        for place in rng.integers(0, len(data), 4):
            spoiled[place] ^= int(rng.integers(1, 256))
        (tmp_path / "spoiled.gcr").write_bytes(spoiled[: int(rng.integers(1, len(data) + 1))])
        with contextlib.suppress(GraphcError):
            gc.replay(tmp_path / "spoiled.gcr", net)
    write_npz(tmp_path / "other.gcr", {"a": np.ones(2)})
    with pytest.raises(ArtifactError, match="is not a recording of a step"):
        gc.replay(tmp_path / "other.gcr", net)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"format"], ["value": 1', b""),
        (b'"tuple"', b'"tupel"'),
        (b'"known"', b'"knowm"'),
        (b'"requires_grad"', b'"requires_graf"'),
        (b'"format"', b'"formaf"'),
    ],
)
def test_trees_that_are_none_of_ours(path, tmp_path, old, new):
    arrays = read_npz(path)
    tree = arrays["graphc.recording"].tobytes()
    if old not in tree:
        pytest.skip("not in this file")
    arrays["graphc.recording"] = np.frombuffer(tree.replace(old, new, 1), np.uint8)
    write_npz(tmp_path / "other.gcr", arrays)
    with pytest.raises((ArtifactError, ArgumentError)):
        gc.replay(tmp_path / "other.gcr", nn.Linear(3, 2))


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", 3, "the name"),
        ("ops", [["", "add"]], "ops"),
        ("stop", "nan", "stops"),
        ("holders", [["module", "net", {}, 1]], "contents before"),
        ("versions", {"graphc": 1}, "versions"),
        ("holders", [["module", "net", {"dict": []}]], "contents of function"),
        ("random", {"graphc": 0}, "states of random generators"),
        ("result", {"list": [{"tensor": 1}, 3]}, "values after the call"),
    ],
)
def test_parts_that_are_built_in_another_way(path, tmp_path, field, value, said):
    arrays = read_npz(path)
    tree = join(arrays, arrays.pop("graphc.recording").tobytes().decode())
    tensors, text = split({**tree, field: value})
    write_npz(tmp_path / "wrong.gcr", {**tensors, "graphc.recording": np.frombuffer(text.encode(), np.uint8)})
    with pytest.raises(ArtifactError, match=said):
        gc.replay(tmp_path / "wrong.gcr", nn.Linear(3, 2))


def test_random_states_come_back():
    state = random_state()
    first = np.random.rand(3), gc.rand(3).numpy()
    set_random_state(state)
    assert np.array_equal(first[0], np.random.rand(3)) and np.array_equal(first[1], gc.rand(3).numpy())
