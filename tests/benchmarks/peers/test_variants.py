"""Variants of graphc's and torch's peers: budgets, narrow weights, checkpoints, ONNX files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc
from benchmarks.harness import framework as fw
from benchmarks.harness import peer
from benchmarks.harness.prepared import NotProvidedError
from benchmarks.peers import graphc_calls
from benchmarks.workloads import ALL, WORKLOADS, Spec, Workload
from graphc import nn

SMALL = Workload("train_small", lambda nn: nn.Linear(16, 4), (Spec((8, 16)),), Spec((8,), 4), "sgd")


def test_a_budget_says_what_is_planned_and_must_be_met(tmp_path: Path):
    fw.write_reference(graphc, SMALL, tmp_path)
    prepared = graphc_calls.prepare_file(SMALL, tmp_path, 1, "100%")
    assert prepared.facts["planned MB"] > 0 and prepared.facts["again MB"] == 0
    np.testing.assert_allclose(prepared.numbers, np.load(tmp_path / fw.NUMBERS), rtol=1e-5)
    with pytest.raises(MemoryError, match="cannot be met"):
        graphc_calls.prepare_file(SMALL, tmp_path, 1, "1B")
    with pytest.raises(NotProvidedError):
        graphc_calls.prepare_compiled(SMALL, tmp_path, 1, "")


@pytest.mark.parametrize(
    ("name", "variant"), [("train_policy_b256", "onnx"), ("policy_b1", "70%"), ("policy_b1", "eager"), ("vae", "70%")]
)
def test_a_variant_that_a_workload_has_not_is_refused(name: str, variant: str, tmp_path: Path):
    fw.write_reference(graphc, ALL[name], tmp_path)
    with pytest.raises(NotProvidedError, match=f"no variant {variant}"):
        graphc_calls.prepare_file(ALL[name], tmp_path, 1, variant)


def test_narrow_weights_make_smaller_files_and_small_errors(tmp_path: Path):
    workload = WORKLOADS["lstm_b1_t64"]
    fw.write_reference(graphc, workload, tmp_path)
    sizes, errors, expected = {}, {}, np.load(tmp_path / fw.NUMBERS)
    for variant in ("", "bf16", "int8"):
        prepared = graphc_calls.prepare_file(workload, tmp_path, 1, variant)
        sizes[variant] = prepared.facts["file MB"]
        errors[variant] = np.abs(prepared.numbers - expected).max() / np.abs(expected).max()
    assert sizes[""] > 1.5 * sizes["bf16"] > 1.5 * sizes["int8"]
    assert errors[""] < 1e-5 < errors["bf16"] < 0.01 and errors["int8"] < 0.02


def test_blocks_of_a_model_are_called_through_the_checkpoint(monkeypatch: pytest.MonkeyPatch):
    torch = pytest.importorskip("torch")
    torch_calls = pytest.importorskip("benchmarks.peers.torch_calls")
    calls = []

    class Block(torch.nn.Linear):
        """A block, by its name."""

    def checkpoint(function, *args, use_reentrant):
        calls.append(use_reentrant)
        return function(*args)

    monkeypatch.setattr(torch.utils.checkpoint, "checkpoint", checkpoint)
    model = torch.nn.Sequential(Block(16, 16), torch.nn.Linear(16, 16), Block(16, 16))
    assert torch_calls.checkpoint_blocks(model) == 2
    model(torch.zeros(1, 16))
    assert calls == [False, False]


@pytest.mark.parametrize("name", ["policy_b1", "mlp_b64_open"])
def test_a_file_that_torch_writes_is_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for library in ("torch", "onnx", "onnxscript"):
        pytest.importorskip(library)
    assert peer.write_reference(name, str(tmp_path), True) == {"onnx": None}
    workload = ALL[name]
    prepared = graphc_calls.prepare_file(workload, tmp_path, 1, "onnx")
    np.testing.assert_allclose(prepared.numbers, np.load(tmp_path / fw.NUMBERS), rtol=1e-4, atol=1e-5)


def test_open_sizes_are_named():
    assert ALL["minilm_b8_t128_open"].dims == {0: "batch", 1: "time"}
    assert isinstance(ALL["layers_768x3072"].build(nn), nn.Linear)
