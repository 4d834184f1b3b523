"""Compiled benchmark models stay within their budgets: kernels, arena, cycles, code, packed weights, calls."""

from __future__ import annotations

import pytest

from benchmarks.workloads import WORKLOADS
from tools import budgets

LARGE = {
    *("mlp_b1", "mlp_b64", "resnet50_b1", "resnet50_b8", "minilm_b1_t128", "minilm_b8_t128", "minilm_b1_t512"),
    *("unet_b1", "mobilenet_b1", "gpt_b1_t1024", "train_mlp_b64", "train_gpt_b8_t128", "train_gpt_b1_t1024"),
    *("train_vit_b8", "train_resnet50_b4", "train_textcnn_b8", "autoencoder_b16", "vit_b1"),
}
"""Models that take seconds to compile."""
ROWS = [pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else []) for name in WORKLOADS]


@pytest.mark.parametrize("name", [budgets.IMPORT, *ROWS])
def test_budget(name: str):
    found = budgets.differences(budgets.read(), name, budgets.measure(name))
    remedy = f'python -m tools.budgets --models {name} --write --reason "why"'
    assert not found, "\n".join(["", *found, f"if that is meant (a fall is recorded too, so that it stays): {remedy}"])


def test_every_change_has_a_reason_and_every_model_a_budget():
    record = budgets.read()
    assert record["figures"].keys() == {budgets.IMPORT, *WORKLOADS}
    for change in record["changes"]:
        assert change["reason"].strip(), change
        assert change["figure"] in record["figures"][change["model"]], change
