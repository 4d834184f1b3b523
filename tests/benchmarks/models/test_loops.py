"""Training loops of the benchmarks: eager and compiled graphc give the same losses."""

from pathlib import Path

import numpy as np
import pytest

import graphc
from benchmarks.harness import framework as fw
from benchmarks.models import loops
from benchmarks.peers import graphc_calls
from benchmarks.workloads import LOOPS, SMALL_LOOPS, LoopWorkload


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
@pytest.mark.parametrize("workload", [*LOOPS.values(), SMALL_LOOPS["perceptron"]], ids=lambda w: w.name)
def test_losses_of_one_call_and_of_an_ordinary_loop_are_eagers(workload: LoopWorkload, tmp_path: Path) -> None:
    fw.write_reference(graphc, workload, tmp_path)
    expected = np.load(tmp_path / fw.NUMBERS)
    runs = {
        "whole step": graphc_calls.prepare_file(workload, tmp_path, 1, ""),
        "models": graphc_calls.prepare_compiled(workload, tmp_path, 1, ""),
        "eager": graphc_calls.prepare_file(workload, tmp_path, 1, "eager"),
    }
    for name, prepared in runs.items():
        np.testing.assert_allclose(prepared.numbers, expected, rtol=1e-4, err_msg=name)


def test_weights_change_alike(tmp_path: Path) -> None:
    fw.write_reference(graphc, LOOPS["vae"], tmp_path)
    eager = fw.LoopRun(graphc, LOOPS["vae"], tmp_path)
    compiled = fw.LoopRun(graphc, LOOPS["vae"], tmp_path, transform=graphc.compile)
    before = eager.weights()
    for run in (eager, compiled):
        run.step()
    after = eager.weights()
    assert any(np.abs(after[path] - array).max() > 0 for path, array in before.items())
    for path, array in compiled.weights().items():
        np.testing.assert_allclose(array, after[path], rtol=1e-2, atol=1e-4, err_msg=path)
