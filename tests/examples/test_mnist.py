"""examples/mnist.py: learns digits, agrees with eager, and its export classifies as eager does."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.examples.run_example import run_example

pytest.importorskip("sklearn")
pytest.importorskip("tqdm")


def check_agreement(output: str, folder: Path) -> None:
    """Compiled against eager within the stated bounds, and the same class from eager and the command line."""
    errors = re.search(r"dropout on: output (\S+), gradients (\S+) \(relative\)", output)
    assert errors
    assert float(errors[1]) <= 1e-5
    assert float(errors[2]) <= 1e-4
    ran = re.findall(r"digit\d\.npy: label (\d), eager says (\d), the exported model says (\d)", output)
    assert len(ran) == 3
    assert all(eager == exported for _, eager, exported in ran)
    assert np.load(folder / "digit0.npy").shape == (1, 1, 28, 28)
    assert np.load(folder / "output0.npy").shape == (1, 10)


def test_a_short_run_agrees_with_eager(tmp_path: Path):
    output = run_example("mnist.py", "--epochs", "1", "--out", str(tmp_path), folder=tmp_path)
    check_agreement(output, tmp_path)


@pytest.mark.slow
def test_the_whole_run_reaches_97_percent(tmp_path: Path):
    output = run_example("mnist.py", "--out", str(tmp_path), folder=tmp_path)
    check_agreement(output, tmp_path)
    accuracy = re.search(r"held-out accuracy: ([\d.]+)% of 360", output)
    assert accuracy
    assert float(accuracy[1]) >= 97.0
