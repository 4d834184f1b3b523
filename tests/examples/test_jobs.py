"""examples/jobs: each program reaches its result, in no more lines than the same job with PyTorch.

A new job needs a line in CHECKS: the text of its result line with a group for each number, and the range of each.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks import jobs
from tests.distributed.processes import launch, needs_mpi
from tests.examples.run_example import run_example


class Check(NamedTuple):
    """A pattern of the last line, the ranges of the numbers in it, and the packages that the program needs."""

    pattern: str
    ranges: tuple[tuple[float, float], ...] = ()
    packages: tuple[str, ...] = ()


CHECKS = {
    "autoencoder_anomaly": Check(r"auroc (.+)", ((0.97, 1),), ("sklearn",)),
    "char_gpt": Check(r"loss (.+)", ((1.3, 2.2),)),
    "custom_function": Check(r"accuracy (.+)", ((0.93, 1),), ("sklearn",)),
    "data_workers": Check(r"accuracy (.+)", ((0.9, 1),)),
    "digits_cnn": Check(r"accuracy (.+)", ((0.97, 1),), ("sklearn",)),
    "distillation": Check(r"teacher (.+), student (.+)", ((0.85, 1), (0.85, 1)), ("sklearn",)),
    "embedding": Check(r"rmse (.+)", ((0.1, 0.25),)),
    "forecast": Check(r"rmse (.+)", ((0.03, 0.15),)),
    "hooks": Check(r"9 layers watched, loss (.+)", ((0, 0.3),), ("sklearn",)),
    "image_folder": Check(r"accuracy (.+)", ((0.9, 1),), ("sklearn", "PIL")),
    "lora": Check(r"accuracy upwards (.+), downwards (.+)", ((0.95, 1), (0.95, 1))),
    "nan_hunt": Check(
        r"found: Sequential_step: step 32: .* made by div in 0 \(Normalize\), forward: .*", (), ("sklearn",)
    ),
    "notebook": Check(r"accuracy (.+)", ((0.9, 1),), ("sklearn", "nbformat", "nbconvert", "ipykernel")),
    "onnx_both_ways": Check(r"accuracy of the file (.+)", ((0.95, 1),), ("sklearn", "onnx")),
    "ppo_to_c": Check(r"the library balances (\d+) of 20 poles for 500 steps", ((18, 20),)),
    "quantize_and_ship": Check(
        r"f32 (.+) (\d+) KiB, int8 (.+) (\d+) KiB", ((0.85, 1), (300, 400), (0.85, 1), (80, 110)), ("sklearn",)
    ),
    "regression": Check(r"r2 (.+)", ((0.35, 0.6),), ("sklearn",)),
    "resnet_compile": Check(r"accuracy (.+)", ((0.93, 1),), ("sklearn", "torch")),
    "resume": Check(r"same weights: True", (), ("sklearn",)),
    "serve": Check(r"360 answers, accuracy (.+)", ((0.93, 1),), ("sklearn",)),
    "siamese": Check(r"accuracy (.+)", ((0.8, 1),), ("sklearn",)),
    "tabular": Check(r"accuracy (.+)", ((0.85, 1),), ("sklearn",)),
    "two_processes": Check(r"accuracy (.+)", ((0.93, 1),), ("sklearn",)),
    "variable_lengths": Check(r"accuracy (.+)", ((0.95, 1),)),
    "view": Check(r"out/net.html: (\d+) passes, .* nodes, (\d+) kernel calls, .*", ((20, 100), (2, 20))),
}
UNTRAINED = frozenset({"view"})
"""Jobs without epochs."""
SLOW = frozenset({"char_gpt", "resnet_compile"})
"""Jobs of ten seconds and more."""


def test_every_job_has_a_check():
    assert jobs.job_names() == sorted(CHECKS)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in CHECKS]
)
def test_a_job_reaches_its_result(name: str, tmp_path: Path):
    check = CHECKS[name]
    for package in check.packages:
        pytest.importorskip(package)
    output = run_example(f"jobs/{name}.py", folder=tmp_path)
    assert bool(re.search(r"^first epoch: [\d.]+ s$", output, re.MULTILINE)) == (name not in UNTRAINED)
    last = output.splitlines()[-1]
    match = re.fullmatch(check.pattern, last)
    assert match, last
    for number, (low, high) in zip(match.groups(), check.ranges, strict=True):
        assert low <= float(number) <= high, last


@needs_mpi
def test_two_processes_learn_as_one_does(tmp_path: Path):
    pytest.importorskip("sklearn")
    alone = run_example("jobs/two_processes.py", folder=tmp_path)
    both = launch(jobs.GRAPHC / "two_processes.py", 2, timeout=200)
    assert both.returncode == 0, both.stderr
    losses = [[float(x) for x in re.findall(r"epoch \d+: loss ([\d.]+)", text)] for text in (alone, both.stdout)]
    assert len(losses[0]) == 10
    assert losses[1] == pytest.approx(losses[0], rel=1e-2)


@pytest.mark.parametrize("name", [name for name in CHECKS if jobs.peer_of(name)])
def test_a_job_takes_no_more_lines_than_with_pytorch(name: str):
    own, peer = jobs.GRAPHC / f"{name}.py", jobs.peer_of(name)
    assert peer and jobs.count_lines(own) <= jobs.count_lines(peer)
