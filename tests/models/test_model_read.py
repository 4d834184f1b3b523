"""Model files as they are read, without their graphs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError, ArtifactError
from graphc.models.model_read import entry_name, read_model
from tests.architecture.scan import ROOT


def test_entries_are_found_by_name(tmp_path: Path):
    graphc.export({"a": graphc.Entry(lambda x: x, graphc.ones(2))}, path=tmp_path / "m.gcm")
    stored = read_model(tmp_path / "m.gcm")
    assert entry_name(stored, None) == entry_name(stored, "a") == "a"
    with pytest.raises(ArgumentError, match="the model has no entry 'b'"):
        entry_name(stored, "b")


@pytest.fixture
def large(tmp_path: Path) -> Path:
    gc.manual_seed(0)
    gc.export(nn.Linear(1024, 512).eval(), gc.zeros(2, 1024), path=tmp_path / "large.gcm")
    return tmp_path / "large.gcm"


def test_weights_of_a_mapped_file_are_its_pages_and_outlive_it(large: Path):
    read, mapped = gc.load(large), gc.load(large, map=True)
    assert str(large) in Path("/proc/self/maps").read_text()
    x = np.random.default_rng(0).standard_normal((2, 1024)).astype(np.float32)
    expected = read(x)
    gc.export(nn.Linear(1024, 512).eval(), gc.zeros(2, 1024), path=large)
    assert (mapped(x) == expected).all() and (gc.load(large)(x) != expected).any()
    large.unlink()
    assert (mapped(x) == expected).all()
    state = mapped.state_dict()
    assert state["weight"].shape == (512, 1024)


def test_a_file_that_nobody_may_write_to_is_mapped_by_itself(large: Path):
    program = f"""
import graphc as gc, pathlib
model = gc.load({str(large)!r})
print({str(large)!r} in pathlib.Path("/proc/self/maps").read_text())
"""

    def is_mapped() -> str:
        command = [sys.executable, "-c", program]
        return subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=True).stdout

    assert is_mapped() == "False\n"
    large.chmod(0o444)
    assert is_mapped() == "True\n"


def test_a_mapped_file_that_is_damaged_is_refused(large: Path):
    content = bytearray(large.read_bytes())
    content[-5] ^= 4
    large.write_bytes(content)
    with pytest.raises(ArtifactError, match="damaged"):
        gc.load(large, map=True)
