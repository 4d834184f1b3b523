"""What is prepared of weights, and when again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
weights: Any = pytest.importorskip("graphc.interop.torch.weights")


class _Spec:
    path = "1"


class _First:
    inputs = (_Spec,)
    runs = 0

    def run(self, given: list[Any]) -> list[Any]:
        self.runs += 1
        return [given[0] * 2]


@pytest.mark.parametrize(("watch", "runs"), [("live", 2), ("frozen", 1)])
def test_live_weights_are_prepared_again_after_a_write_of_any_kind(watch: str, runs: int):
    first, own, args = _First(), np.zeros(1), [torch.zeros(1), torch.ones(4)]
    found = weights.Weights(first, ["0", 0, own], watch)
    before = found.arrays(args)
    assert found.arrays(args) is before and before[2] is own and before[1].tolist() == [2] * 4
    args[1].numpy()[2] = 5
    assert (found.arrays(args) is before) == (watch == "frozen")
    assert first.runs == runs
