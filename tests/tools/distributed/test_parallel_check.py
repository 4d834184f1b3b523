"""A short run of the check; ``python -m tools.distributed.parallel_check`` is the long one."""

from __future__ import annotations

import numpy as np

from tests.distributed.processes import launch
from tools.distributed.parallel_check import distance


def test_two_processes_are_one():
    done = launch(
        "tools.distributed.parallel_check", 2, "--worker", "--steps", 3, "--micro", 2, "--modes", "eager", timeout=150
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 processes, eager, 2 micro-batches, 3 steps: f64 ")


def test_distances_are_relative_to_one_plus_the_size():
    assert distance([np.array([3.0, 0.5])], [np.array([1.0, 0.0])]) == 1.0
