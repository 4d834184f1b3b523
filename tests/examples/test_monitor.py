"""examples/monitor.py: the table, the page, event files and pictures are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.run_example import run_example

for package in ("sklearn", "rich", "tensorboardX"):
    pytest.importorskip(package)


def test_everything_is_written(tmp_path: Path):
    output = run_example("monitor.py", "--steps", "12", "--out", str(tmp_path / "out"), folder=tmp_path)
    assert "conv2: Conv2d" in output
    page = (tmp_path / "out" / "monitor.html").read_text()
    for name in ("loss", "accuracy", "fc1 (Linear)/mean", "fc1.weight/gradient"):
        assert f'data-name="{name}"' in page
    assert ">conv1.weight <" in page and ">first digit <" in page
    assert list((tmp_path / "out" / "events").glob("events.out.tfevents.*"))
    assert ">conv1: Conv2d<" in (tmp_path / "out" / "autograd.svg").read_text()
    assert "<svg" in (tmp_path / "out" / "graph.html").read_text()
