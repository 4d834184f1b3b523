"""examples/custom_optimizer.py: the rule learns, and does the same eagerly and in one compiled step."""

from __future__ import annotations

import re
from pathlib import Path

from tests.examples.run_example import run_example


def test_the_rule_learns_and_compiles(tmp_path: Path):
    output = run_example("custom_optimizer.py", folder=tmp_path)
    losses = [float(x) for x in re.findall(r"compiled ([\d.]+)", output)]
    last = re.search(r"last loss ([\d.]+); the two models differ by at most ([\d.e+-]+)", output)
    assert last
    assert float(last[1]) < 0.05 < losses[0]
    assert float(last[2]) < 1e-2, "signs of equal momenta are equal but for the rounding of some near zero"
