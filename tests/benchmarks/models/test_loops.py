"""Training loops of the benchmarks: eager and compiled graphc give the same losses."""

import numpy as np
import pytest

from benchmarks.models import loops
from benchmarks.workers import training_row


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"layers": 1, "width": 16, "heads": 2, "block": 8, "rows": 2}.items():
        monkeypatch.setattr(loops.NanoGpt, name, value)
    for loop, sizes in {
        loops.Dcgan: {"images": 2, "width": 2},
        loops.ActorCritic: {"rows": 8, "width": 8},
        loops.Pinn: {"rows": 8, "edge": 4, "width": 8, "depth": 2},
        loops.Tagger: {"rows": 2, "steps": 5, "words": 9, "width": 4},
        loops.Vae: {"rows": 4, "inputs": 12, "width": 8, "code": 2},
    }.items():
        for name, value in sizes.items():
            monkeypatch.setattr(loop, name, value)


@pytest.mark.sampled(40)
@pytest.mark.parametrize("key", loops.LOOPS)
def test_losses_of_one_call_and_of_an_ordinary_loop_are_eagers(key: str) -> None:
    plain = training_row.Run(key, "graphc")
    weights = plain.weights()
    eager = training_row.Run(key, "graphc loop", weights)
    compiled = training_row.Run(key, "graphc", weights)
    plain.call = plain.loop.micro_step
    for _ in range(3):
        expected = plain.step()
        np.testing.assert_allclose(eager.step(), expected, rtol=1e-4)
        np.testing.assert_allclose(compiled.step(), expected, rtol=1e-4)
    for actual, reference in zip(compiled.weights(), plain.weights(), strict=True):
        for path, array in reference.items():
            np.testing.assert_allclose(actual[path], array, rtol=1e-2, atol=1e-4, err_msg=path)


def test_weights_change() -> None:
    run = training_row.Run("vae", "graphc")
    before = run.weights()
    run.step()
    assert any(
        np.abs(a - b).max() > 0
        for x, y in zip(before, run.weights(), strict=True)
        for a, b in zip(x.values(), y.values(), strict=True)
    )
