"""The same model gives the same file, byte for byte, in whatever process, folder and order of hashes it is exported."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.scan import ROOT

PROGRAM = """
import sys

import graphc as gc
from graphc import nn

gc.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 10)).eval()
linear = nn.Linear(8, 3)
step = gc.compile_step(linear, nn.functional.cross_entropy, gc.optim.Adam(linear.parameters()))


def branch(x):
    return x * 2.0 if x.shape[0] > 3 else x + 1.0


batch = gc.Dim("batch", max=64)
kinds = {
    "plain": lambda path: gc.export(net, gc.rand(2, 1, 6, 6), path=path, native=True),
    "targets": lambda path: gc.export(net, gc.rand(2, 1, 6, 6), path=path, native=True, target=("sse2", "neon")),
    "sized": lambda path: gc.export(branch, gc.rand(9, 2), path=path, dims=[(batch,)], native=True),
    "narrow": lambda path: gc.export(net, gc.rand(2, 1, 6, 6), path=path, precision="int8"),
    "recurrent": lambda path: gc.export(nn.LSTM(4, 8).eval(), gc.rand(5, 2, 4), path=path, native=True),
    "golden": lambda path: gc.export(net, gc.rand(2, 1, 6, 6), path=path, derivative=True, golden=2),
    "step": lambda path: gc.export(step, gc.rand(4, 8), gc.randint(0, 3, (4,)), path=path, native=True),
}
for name, write in kinds.items():
    write(sys.argv[1] + "/" + name + ".gcm")
"""


def export(folder: Path, here: Path, seed: str, zone: str) -> dict[str, str]:
    """Digests of the files that a program in ``folder`` writes, which runs in the folder ``here``."""
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed, "TZ": zone, "GRAPHC_CACHE": "off"}
    command = [sys.executable, os.path.relpath(folder / "model.py", here), str(folder)]
    subprocess.run(command, cwd=here, env=environment, check=True, capture_output=True, text=True)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.gcm"))}


@pytest.mark.slow
def test_two_processes_write_the_same_bytes(tmp_path: Path):
    first = export(tmp_path / "one", tmp_path / "one", "1", "UTC")
    second = export(tmp_path / "another" / "deep place", tmp_path, "4711", "Asia/Tokyo")
    assert second == first and len(first) == 7


@pytest.mark.slow
def test_a_file_names_no_folder_of_the_machine(tmp_path: Path):
    export(tmp_path / "one", tmp_path, "1", "UTC")
    contents = {path.name: path.read_bytes() for path in (tmp_path / "one").glob("*.gcm")}
    named = [name for name, content in contents.items() if str(tmp_path).encode() in content]
    assert named == [] and any(b"model.py:" in content for content in contents.values())
