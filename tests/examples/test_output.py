"""Folder and lines of an example's output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from examples import output
from tests.architecture.scan import ROOT


def test_a_folder_that_cannot_be_written_is_noticed(tmp_path: Path):
    output.prepare(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir() and not [*(tmp_path / "a" / "b").iterdir()]
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="Not a directory"):
        output.prepare(tmp_path / "file" / "out")


def test_lines_come_before_those_of_a_command(tmp_path: Path):
    program = f"import pathlib, subprocess, sys; sys.path.insert(0, {str(ROOT)!r})\n"
    program += "from examples import output\noutput.prepare(pathlib.Path('out'))\nprint('parent')\n"
    program += "subprocess.run([sys.executable, '-c', 'print(1)'], check=True)\n"
    environment = {"PATH": "", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["parent", "1"]
