"""examples/digits_parallel.py: two processes learn the same as one."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from tests.distributed.processes import launch, needs_mpi
from tests.examples.run_example import ROOT, run_example


@needs_mpi
def test_two_processes_learn_what_one_does(tmp_path: Path):
    alone = run_example("digits_parallel.py", "--epochs", "1", "--out", str(tmp_path / "1.npz"), folder=tmp_path)
    script = ROOT / "examples" / "digits_parallel.py"
    done = launch(script, 2, "--epochs", 1, "--out", tmp_path / "2.npz", timeout=200)
    assert done.returncode == 0, done.stderr
    losses = [[float(x) for x in re.findall(r"loss ([\d.]+)", text)] for text in (alone, done.stdout)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-3)
    first, second = np.load(tmp_path / "1.npz"), np.load(tmp_path / "2.npz")
    for name in first:
        np.testing.assert_allclose(second[name], first[name], atol=5e-3)
