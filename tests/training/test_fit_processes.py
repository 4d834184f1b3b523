"""fit in several processes, played by threads: equal histories, checkpoints of each, and ends that all agree on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.distributed import group, threads
from graphc.nn import functional as F
from graphc.nn.parallel import DistributedDataParallel
from graphc.utils.data import DataLoader, TensorDataset
from graphc.utils.data.distributed import DistributedSampler

X = np.random.default_rng(0).standard_normal((48, 4)).astype(np.float32)
INITIAL = np.random.default_rng(1).standard_normal((2, 4)).astype(np.float32)


def train(folder: Path | None, epochs: int, **more: Any) -> tuple[list[dict[str, Any]], np.ndarray, np.ndarray]:
    """Return the history without times, and weight and bias, of a training on this process's share of the data."""
    data = TensorDataset(gc.tensor(X), gc.tensor((X.sum(1) > 0).astype(np.int64)))
    net = nn.Linear(4, 2)
    net.load_state_dict({"weight": gc.tensor(INITIAL), "bias": gc.zeros(2)})
    model = DistributedDataParallel(net)
    loader = DataLoader(data, 8, sampler=DistributedSampler(data, seed=3))
    step = gc.compile_step(model, F.cross_entropy, gc.optim.Adam(model.parameters(), lr=0.1))
    valid = DataLoader(data, 8, sampler=DistributedSampler(data, shuffle=False))
    metrics = {"right": gc.metrics.Accuracy()}
    history = gc.fit(step, loader, valid=valid, metrics=metrics, epochs=epochs, checkpoint=folder, bar=False, **more)
    return [{**row, "seconds": 0} for row in history], net.weight.detach().numpy().copy(), net.bias.detach().numpy()


def test_processes_measure_the_same_and_resume(tmp_path: Path):
    whole = threads.run(2, lambda _: train(None, 4))
    assert whole[0][0] == whole[1][0] and np.array_equal(whole[0][1], whole[1][1])
    threads.run(2, lambda _: train(tmp_path, 2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["process-0", "process-1"]
    resumed = threads.run(2, lambda _: train(tmp_path, 4))
    assert resumed[0][0] == whole[0][0] and np.array_equal(resumed[1][1], whole[1][1])


def test_processes_resume_from_the_last_common_checkpoint(tmp_path: Path):
    whole = threads.run(2, lambda _: train(tmp_path, 3))
    (tmp_path / "process-1" / "step-000000009.npz").unlink()
    resumed = threads.run(2, lambda _: train(tmp_path, 3))
    assert [row for rows, *_ in resumed for row in rows] == [row for rows, *_ in whole for row in rows]


def test_validation_counts_all_samples():
    rows, weight, bias = threads.run(2, lambda _: train(None, 1))[0]
    right = (X @ weight.T + bias).argmax(1) == (X.sum(1) > 0)
    assert rows[0]["valid.right"] == pytest.approx(right.mean())


def test_a_callback_of_one_process_ends_all():
    rows = threads.run(2, lambda _: train(None, 5, callbacks=[lambda history: group().rank == 1])[0])
    assert [len(row) for row in rows] == [1, 1]
