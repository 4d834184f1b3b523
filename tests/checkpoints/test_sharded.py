"""Checkpoints of several processes: written once, whole or not at all, and read by any number of processes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn, optim
from graphc.checkpoints import sharded
from graphc.distributed import checkpoint, rank, threads
from graphc.distributed.optim import ZeroRedundancyOptimizer
from graphc.errors import ArgumentError, ArtifactError, DistributedError, StateDictError

Step = tuple[str, str]
"""A function of a module, by whose name it is replaced."""


def same(result: Any, expected: Any) -> None:
    np.testing.assert_array_equal(result.detach().numpy(), expected.detach().numpy())


def network() -> nn.Module:
    draw = np.random.default_rng(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
    values = {k: draw.normal(size=v.shape).astype(v.numpy().dtype) for k, v in net.state_dict().items()}
    net.load_state_dict({k: gc.tensor(v) for k, v in values.items()})
    return net


def trained(net: nn.Module, steps: int) -> ZeroRedundancyOptimizer:
    optimizer = ZeroRedundancyOptimizer(net.parameters(), optim.Adam, lr=0.1)
    for number in range(steps):
        for param in net.parameters():
            param.grad = gc.tensor(np.random.default_rng(number).normal(size=param.shape).astype("f4"))
        optimizer.step()
    return optimizer


def data_files(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name != sharded.MANIFEST)


def test_tensors_of_every_type_come_back(tmp_path: Path):
    tree = {
        "f32": gc.randn(3, 4),
        "bf16": gc.randn(5).to(gc.bfloat16),
        "c64": gc.randn(2, dtype=gc.complex64),
        "nothing": gc.zeros(0, 3),
        "number": gc.tensor(7),
        "bool": gc.tensor([True, False]),
        "nested": [1, (2.5, None), {"text": "ä", 3: gc.ones(2)}],
    }
    checkpoint.save(tree, tmp_path)
    loaded = checkpoint.load(None, tmp_path)
    for name in ("f32", "c64", "nothing", "number", "bool"):
        assert loaded[name].dtype is tree[name].dtype
        same(loaded[name], tree[name])
    assert loaded["bf16"].dtype is gc.bfloat16
    same(loaded["bf16"].float(), tree["bf16"].float())
    assert loaded["nested"][:2] == [1, (2.5, None)]
    assert loaded["nested"][2]["text"] == "ä"
    same(loaded["nested"][2][3], gc.ones(2))


def test_what_all_have_is_written_once_and_shared_out(tmp_path: Path):
    tree = {f"t{i}": gc.full((1000,), float(i)) for i in range(8)}
    threads.run(4, lambda _: checkpoint.save(tree, tmp_path))
    sizes = [(tmp_path / name).stat().st_size for name in data_files(tmp_path)]
    assert len(sizes) == 4
    assert max(sizes) < 2.2 * 4000
    assert sum(sizes) < 8 * 4400


def test_two_processes_save_three_go_on_and_one_reads(tmp_path: Path):
    def save(_: int) -> None:
        net = network()
        checkpoint.save({"model": net, "optimizer": trained(net, 3), "epoch": 3}, tmp_path)

    def go_on(_: int) -> int:
        net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 2))
        optimizer = ZeroRedundancyOptimizer(net.parameters(), optim.Adam)
        state = {"model": net, "optimizer": optimizer, "epoch": 0}
        assert checkpoint.load(state, tmp_path) is state
        assert state["epoch"] == 3
        assert optimizer.param_groups[0]["lr"] == 0.1
        checkpoint.save(state, tmp_path / "again")
        return len(optimizer.state)

    threads.run(2, save)
    assert sum(threads.run(3, go_on)) == 6
    first, again = checkpoint.load(None, tmp_path), checkpoint.load(None, tmp_path / "again")
    net = network()
    plain = trained(net, 3)
    for name, value in net.state_dict().items():
        same(first["model"][name], value)
        same(again["model"][name], value)
    for number, entries in plain.state_dict()["state"].items():
        for name, value in entries.items():
            same(first["optimizer"]["state"][number][name], value)
            same(again["optimizer"]["state"][number][name], value)


def test_a_sharded_optimizer_reads_its_share_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    net = network()
    checkpoint.save({"optimizer": trained(net, 1)}, tmp_path)
    read: dict[int, int] = {}
    read_tensor = sharded._tensor

    def counted(archive: Any, name: str, entry: Any) -> Any:
        read[rank()] = read.get(rank(), 0) + 1
        return read_tensor(archive, name, entry)

    monkeypatch.setattr(sharded, "_tensor", counted)
    optimizer_types = [ZeroRedundancyOptimizer, optim.Adam]
    threads.run(
        2,
        lambda _: checkpoint.load(
            {"optimizer": optimizer_types[0](network().parameters(), optimizer_types[1])}, tmp_path
        ),
    )
    assert sum(read.values()) == 6 * 3
    assert len(read) == 2


def test_tensors_are_filled_in_place_and_what_is_not_named_is_not_read(tmp_path: Path):
    checkpoint.save({"a": gc.ones(2), "b": {"c": gc.full((3,), 2.0), "n": [1, 2]}, "d": gc.ones(1)}, tmp_path)
    target = gc.zeros(3)
    state: dict[str, Any] = {"b": {"c": target, "n": None}}
    checkpoint.load(state, tmp_path)
    assert state["b"]["c"] is target
    assert target.tolist() == [2.0, 2.0, 2.0]
    assert state["b"]["n"] == [1, 2]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"a": gc.zeros(3)}, r"for a tensor of shape \[3\] the checkpoint has one of shape \[2\] \(a\)"),
        ({"n": gc.zeros(3)}, "the checkpoint has no tensor"),
        ({"a": gc.zeros(2), "x": 1}, "the checkpoint lacks 'x'"),
        ({"a": gc.zeros(2), "b": {"y": 1}}, "b lacks 'y'"),
    ],
)
def test_what_does_not_fit_changes_nothing(tmp_path: Path, state: dict[str, Any], message: str):
    checkpoint.save({"a": gc.ones(2), "n": 1, "b": {"c": 1}}, tmp_path)
    with pytest.raises(StateDictError, match=message):
        checkpoint.load(state, tmp_path)
    assert all(v.sum().item() == 0 for v in state.values() if isinstance(v, gc.Tensor))


def test_replicas_that_differ_are_an_error_in_all_processes(tmp_path: Path):
    def run(number: int) -> str:
        with pytest.raises(DistributedError) as error:
            checkpoint.save({"a": gc.ones(2), "b": gc.full((2,), float(number == 1))}, tmp_path)
        return str(error.value)

    messages = threads.run(3, run)
    assert "the tensor 'b' is not the same on rank 0 and rank 1: their elements differ" in messages[0]
    assert len({*messages}) == 1
    assert not (tmp_path / sharded.MANIFEST).exists()


def test_buffers_of_a_distributed_module_are_those_of_rank_0(tmp_path: Path):
    def run(number: int) -> None:
        model = nn.parallel.DistributedDataParallel(network())
        model.module[1].running_mean.fill_(float(number))
        checkpoint.save({"model": model}, tmp_path)
        checkpoint.load({"model": model}, tmp_path)
        assert model.module[1].running_mean.tolist() == [0.0] * 6
        with pytest.raises(DistributedError, match=r"1\.running_mean' is not the same") as error:
            model.module[1].running_mean.fill_(float(number))
            checkpoint.save({"model": model.module}, tmp_path)
        assert "the DistributedDataParallel itself" in str(error.value)

    threads.run(2, run)


def test_an_error_in_one_process_is_one_in_all(tmp_path: Path):
    def run(number: int) -> str:
        expected = ArgumentError if number == 1 else DistributedError
        with pytest.raises(expected, match="which cannot be stored") as error:
            checkpoint.save({"a": object() if number == 1 else 1}, tmp_path)
        return str(error.value)

    assert "rank 1 has failed" in threads.run(2, run)[0]


# ---- whole or not at all

STEPS: list[Step] = [
    ("sharded", "_prepare"),
    ("sharded", "write_npz"),
    ("sharded", "_write"),
    ("sharded", "_finish"),
    ("sharded", "replacing"),
    ("os", "replace"),
    ("os", "fsync"),
]


@pytest.mark.parametrize(("module", "name"), STEPS, ids=lambda v: v)
@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_at_any_step_leaves_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str, failing: int
):
    threads.run(2, lambda _: checkpoint.save({"a": gc.ones(2), "b": gc.ones(3)}, tmp_path))
    before = data_files(tmp_path)
    module_object: Any = {"sharded": sharded, "os": os}[module]
    real = getattr(module_object, name)

    def fails(*args: Any, **kwargs: Any) -> Any:
        if rank() == failing:
            raise OSError("the disk is full")
        return real(*args, **kwargs)

    def run(number: int) -> bool:
        try:
            checkpoint.save({"a": gc.zeros(2), "b": gc.zeros(3)}, tmp_path)
        except (OSError, DistributedError) as error:
            assert "the disk is full" in str(error)
            return True
        return False

    monkeypatch.setattr(module_object, name, fails)
    failed = threads.run(2, run)
    monkeypatch.undo()
    assert failed[0] == failed[1]
    loaded = checkpoint.load(None, tmp_path)
    assert loaded["a"].sum().item() == (2 if failed[0] else 0)
    if failed[0]:
        assert {*before} <= {*data_files(tmp_path)}
    threads.run(2, lambda _: checkpoint.save({"a": gc.zeros(2), "b": gc.zeros(3)}, tmp_path))
    assert checkpoint.load(None, tmp_path)["a"].tolist() == [0, 0]
    assert len(os.listdir(tmp_path)) == 3


def _saves_and_is_killed(folder: Path, calls: int) -> int:
    """The exit status of a process that is killed at a call by which files become lasting; 0 where there are fewer."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    remaining = iter(range(calls))

    def killed(real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if next(remaining, None) is None:
                os._exit(9)
            return real(*args, **kwargs)

        return call

    try:
        os.fsync, os.link, os.replace = map(killed, (os.fsync, os.link, os.replace))
        checkpoint.save({"a": gc.zeros(3)}, folder)
        os._exit(0)
    finally:
        os._exit(1)


def test_a_process_that_is_killed_leaves_the_checkpoint_before(tmp_path: Path):
    checkpoint.save({"a": gc.ones(3)}, tmp_path)
    codes: list[int] = []
    while 0 not in codes and len(codes) < 20:
        codes.append(_saves_and_is_killed(tmp_path, len(codes)))
        # The manifest is the new one before its folder is synced, as the last step.
        expected = [[1, 1, 1]] if len(codes) < 3 else [[1, 1, 1], [0, 0, 0]]
        assert checkpoint.load(None, tmp_path)["a"].tolist() in expected
    assert codes == [9] * (len(codes) - 1) + [0]
    assert len(codes) > 4
    assert checkpoint.load(None, tmp_path)["a"].tolist() == [0, 0, 0]
    assert len(os.listdir(tmp_path)) == 2


# ---- damage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    threads.run(2, lambda _: checkpoint.save({"a": gc.ones(20), "b": gc.ones(30), "n": 1}, tmp_path))
    return tmp_path


def test_a_missing_file(folder: Path):
    (folder / data_files(folder)[1]).unlink()
    with pytest.raises(ArtifactError, match="a file of the checkpoint is missing"):
        checkpoint.load(None, folder)


def test_a_truncated_file(folder: Path):
    path = folder / data_files(folder)[0]
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(ArtifactError, match=r"it has \d+ bytes, and the checkpoint needs \d+"):
        checkpoint.load(None, folder)


def test_every_changed_byte_of_a_tensor_is_found(folder: Path):
    path = folder / data_files(folder)[0]
    content = path.read_bytes()
    start = content.index(np.ones(5, np.float32).tobytes())
    for offset in (0, 17, 79):
        path.write_bytes(
            content[: start + offset] + bytes([content[start + offset] ^ 1]) + content[start + offset + 1 :]
        )
        with pytest.raises(ArtifactError, match="damaged"):
            checkpoint.load(None, folder)


def test_a_file_of_another_checkpoint(folder: Path, tmp_path_factory: pytest.TempPathFactory):
    other = tmp_path_factory.mktemp("other")
    threads.run(2, lambda _: checkpoint.save({"a": gc.zeros(20), "b": gc.zeros(30), "n": 1}, other))
    for mine, theirs in zip(data_files(folder), data_files(other), strict=True):
        (folder / mine).write_bytes((other / theirs).read_bytes())
    with pytest.raises(ArtifactError, match="differs from the manifest"):
        checkpoint.load(None, folder)


def test_a_changed_manifest(folder: Path):
    path = folder / sharded.MANIFEST
    path.write_text(path.read_text().replace('{"value": 1}', '{"value": 2}'))
    with pytest.raises(ArtifactError, match="the manifest is damaged"):
        checkpoint.load(None, folder)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(ArtifactError, match="not the manifest of a checkpoint"):
        checkpoint.load(None, folder)


def test_another_version(folder: Path):
    path = folder / sharded.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 9}))
    with pytest.raises(ArtifactError, match="the checkpoint has version 9"):
        checkpoint.load(None, folder)


def test_no_checkpoint_and_one_that_was_not_finished(folder: Path):
    with pytest.raises(ArtifactError, match=r"there is no checkpoint\n"):
        checkpoint.load(None, folder / "elsewhere")
    (folder / sharded.MANIFEST).unlink()
    with pytest.raises(ArtifactError, match="only an unfinished one"):
        checkpoint.load(None, folder)


def test_an_error_in_one_process_changes_nothing_in_another(folder: Path):
    def run(number: int) -> float:
        target = gc.zeros(20)
        with pytest.raises(StateDictError if number else DistributedError):
            checkpoint.load({"a": target, **({"x": 1} if number else {})}, folder)
        return target.sum().item()

    assert threads.run(2, run) == [0, 0]
