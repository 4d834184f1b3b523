"""The model that a command calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from graphc.base.errors import ArtifactError, TraceError
from graphc.cli import exported, loading
from graphc.cli.console import CompileFailure
from graphc.cli.loading import FOREIGN, load_model


def test_files_of_other_frameworks_are_those_that_have_a_reader():
    assert set(FOREIGN) == set(exported.READERS)


def test_errors_of_compiling_are_told_from_errors_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "bad.gcm").write_bytes(b"bad")
    with pytest.raises(ArtifactError):
        load_model(str(tmp_path / "bad.gcm"), False, "host")
    with pytest.raises(FileNotFoundError):
        load_model(str(tmp_path / "missing.onnx"), False, "host")

    def fails(*_: object, **__: object) -> None:
        raise TraceError("no")

    monkeypatch.setattr(loading, "load", fails)
    with pytest.raises(CompileFailure, match="no"):
        load_model("net.gcm", False, "host")


def test_a_file_is_a_model(net: Path):
    assert load_model(str(net), False, "host").run([np.zeros((2, 6), np.float32)])[0].shape == (2, 4)


def test_what_runs_a_file_needs_no_modules_to_trace():
    modules = "[m for m in ('graphc.nn', 'graphc.cli.targets') if m in sys.modules]"
    program = f"import sys, graphc.cli.commands.run; print({modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
