"""The workloads' definitions: inputs are the same for every peer, and every model runs on torch."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness import framework as fw
from benchmarks.workloads import WORKLOADS

OUTPUTS = {
    "policy_b1": (1, 6),
    "net_b1": (1, 10),
    "mlp_b1": (1, 1000),
    "resnet50_b1": (1, 1000),
    "minilm_b1_t128": (1, 384),
    "lstm_b1_t64": (1, 10),
    "pointwise_64K": (256, 256),
}
PARAMETERS = {"policy_b1": 5702, "net_b1": 21840, "resnet50_b1": 25557032, "minilm_b1_t128": 22564608}


def test_inputs_are_drawn_the_same_each_time_and_differ_between_workloads():
    first, second = WORKLOADS["policy_b1"].draw_inputs(), WORKLOADS["policy_b1"].draw_inputs()
    assert np.array_equal(first[0], second[0])
    pair = WORKLOADS["pointwise_64K"].draw_inputs()
    assert not np.array_equal(pair[0], pair[1])


def test_training_inputs_end_with_the_target():
    x, y = WORKLOADS["train_gpt_b8_t128"].draw_inputs()
    assert (x.dtype, y.dtype) == (np.int64, np.int64)
    assert x.shape == y.shape == (8, 128)
    assert 0 <= y.min() <= y.max() < 256
    assert [row.name for row in WORKLOADS.values() if row.train] == [n for n in WORKLOADS if n.startswith("train_")]


@pytest.mark.torch
@pytest.mark.parametrize("name", OUTPUTS)
def test_models_run_on_torch(name: str, tmp_path: Path):
    pytest.importorskip("torch")
    torch = importlib.import_module("torch")
    workload = WORKLOADS[name]
    fw.write_reference(torch, workload, tmp_path)
    numbers = np.load(tmp_path / fw.NUMBERS)
    assert numbers.shape == OUTPUTS[name]
    assert np.isfinite(numbers).all()
    if name in PARAMETERS:
        model = fw.build_model(torch, workload, tmp_path)
        assert sum(p.numel() for p in model.parameters()) == PARAMETERS[name]


@pytest.mark.torch
def test_training_steps_with_dropout_are_compared_without_it(tmp_path: Path):
    pytest.importorskip("torch")
    torch = importlib.import_module("torch")
    workload = WORKLOADS["train_net_b64"]
    fw.write_reference(torch, workload, tmp_path)
    again = fw.prepare_steps(torch, workload, tmp_path, lambda model: fw.make_eager_step(torch, workload, model))
    losses = np.load(tmp_path / fw.NUMBERS)
    assert losses.tolist() == again.numbers.tolist()
    assert losses[2] < losses[0]
    assert float(again.call().item()) not in losses.tolist()
