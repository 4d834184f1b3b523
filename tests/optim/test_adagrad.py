"""Adagrad against PyTorch."""

from __future__ import annotations

import pytest

from tests.optim.compare import steps_agree


@pytest.mark.parametrize(
    "options",
    [{}, {"lr_decay": 0.1}, {"weight_decay": 0.1, "initial_accumulator_value": 0.5}, {"maximize": True, "eps": 1e-3}],
)
def test_as_torch(options: dict):
    steps_agree("Adagrad", lr=0.1, **options)
