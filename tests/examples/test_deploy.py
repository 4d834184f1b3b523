"""examples/deploy.py: the file trains, and the library returns the learned products."""

from __future__ import annotations

import re
from pathlib import Path

from tests.examples.run_example import run_example


def test_the_library_has_learned_what_the_file_was_trained_for(tmp_path: Path):
    output = run_example("deploy.py", folder=tmp_path)
    losses = [float(x) for x in re.findall(r"loss ([\d.]+)", output)]
    assert len(losses) == 6 and losses[-1] < losses[0] / 10
    assert "self test: good" in output
    assert abs(float(re.findall(r"= (-[\d.]+), says the library", output)[0]) + 0.4) < 0.1
