"""Files of measures: lines as JSON or as a table, and what a resumed training keeps of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphc.cli.trainer.metrics import MetricsFile
from graphc.errors import ArgumentError

FIELDS = ("event", "step", "loss", "name")


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_lines_are_added_and_those_behind_a_step_go(suffix: str, tmp_path: Path):
    path = tmp_path / f"m{suffix}"
    file = MetricsFile(path, FIELDS)
    for step in (1, 2, 3, 4):
        file.write({"event": "step", "step": step, "loss": 0.5 / step, "name": 'a, "b"'})
    file.close()
    whole = path.read_text()
    with path.open("a") as more:
        more.write('{"event": "st')  # as a kill leaves it
    file = MetricsFile(path, FIELDS, step=2)
    for step in (3, 4):
        file.write({"event": "step", "step": step, "loss": 0.5 / step, "name": 'a, "b"'})
    file.close()
    assert path.read_text() == whole


def test_the_formats(tmp_path: Path):
    for suffix in (".jsonl", ".csv"):
        file = MetricsFile(tmp_path / f"m{suffix}", FIELDS)
        file.write({"event": "epoch", "step": 10, "loss": None})
        file.close()
    assert json.loads((tmp_path / "m.jsonl").read_text()) == {"event": "epoch", "step": 10, "loss": None}
    assert (tmp_path / "m.csv").read_text() == "event,step,loss,name\nepoch,10,,\n"


def test_a_training_from_its_begin_makes_a_new_file(tmp_path: Path):
    path = tmp_path / "m.jsonl"
    path.write_text('{"step": 1}\n')
    MetricsFile(path, FIELDS).close()
    assert path.read_text() == ""


def test_other_suffixes_are_refused(tmp_path: Path):
    with pytest.raises(ArgumentError, match=r"not a \.jsonl or .csv file"):
        MetricsFile(tmp_path / "m.txt", FIELDS)
