"""examples/mlp.py: prints the graph, trains eager and compiled, and the export tells the spirals apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples.run_example import run_example

pytest.importorskip("tqdm")


def test_the_spirals_are_told_apart(tmp_path: Path):
    output = run_example("mlp.py", "--out", str(tmp_path), folder=tmp_path)
    assert "graph @" in output
    assert output.count("matmul") >= 3
    losses = dict(re.findall(r"(eager|compiled): loss ([\d.]+)", output))
    assert float(losses["compiled"]) < 0.1 < float(losses["eager"]) < 0.75
    accuracy = re.search(r"accuracy of the exported model: ([\d.]+)%", output)
    assert accuracy
    assert float(accuracy[1]) > 95
