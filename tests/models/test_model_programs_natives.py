"""Object code for several machines in one file: which one is run, and that none is run which needs what is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.codegen.machine.target import host_target
from graphc.errors import ArgumentError, ArtifactError, CompileError
from graphc.files import model_content
from graphc.files.manifest import TargetSpec
from graphc.models import model_programs
from graphc.runtime import loader
from tests.architecture.scan import ROOT

X86 = ("sse2", "avx2", "avx512")
is_x86 = pytest.mark.skipif(not host_target().triple.startswith("x86_64"), reason="code for x86-64 runs there only")
QEMU = shutil.which("qemu-x86_64")
PROGRAM = """
import sys
import numpy as np
import graphc as gc
model = gc.load(sys.argv[1], trust=True)
print(model.program.manifest.target.cpu, model(np.ones((2, 8), np.float32)).tolist())
"""


@pytest.fixture
def model() -> nn.Module:
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


@pytest.fixture
def path(model: nn.Module, tmp_path: Path) -> Path:
    gc.export(model, gc.zeros(2, 8), path=tmp_path / "net.gcm", native=True, target=(*X86, "neon"))
    return tmp_path / "net.gcm"


def masked(monkeypatch: pytest.MonkeyPatch, lacking: tuple[str, ...]) -> None:
    """Lets this machine lack instruction set extensions."""
    here = loader.host()
    kept = tuple(f for f in here.features if not f.startswith(lacking))
    monkeypatch.setattr(loader, "host", lambda: TargetSpec(here.triple, here.cpu, kept))


def test_a_file_holds_code_for_each_machine_once(path: Path):
    codes = model_content.load(path).first.natives
    assert [code.manifest.target.triple.split("-")[0] for code in codes] == ["x86_64"] * 3 + ["aarch64"]
    assert len({code.manifest.target.features for code in codes[:3]}) == 3


@is_x86
@pytest.mark.parametrize(
    ("lacking", "cpu"), [((), "x86-64-v4"), (("avx512",), "x86-64-v3"), (("avx", "fma"), "x86-64")]
)
def test_the_best_code_that_runs_is_chosen(
    model: nn.Module, path: Path, lacking: tuple[str, ...], cpu: str, monkeypatch: pytest.MonkeyPatch
):
    wanted = [code for code in model_content.load(path).first.natives if code.manifest.target.cpu == cpu]
    if loader.runs_here(wanted[0].manifest.target):
        pytest.skip(f"this machine lacks what {cpu} has")
    masked(monkeypatch, lacking)
    loaded = gc.load(path, trust=True)
    assert loaded.program.manifest.target.cpu == cpu and loaded.seconds is None
    x = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)
    np.testing.assert_allclose(loaded(x), model(gc.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6)


@is_x86
def test_code_for_what_is_missing_is_never_run(model: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    gc.export(model, gc.zeros(2, 8), path=tmp_path / "net.gcm", native=True, target="avx512")
    with monkeypatch.context() as patch:
        masked(patch, ("avx512",))
        (code,) = model_content.load(tmp_path / "net.gcm").first.natives
        reason = model_programs.why_not_native(code)
    assert "it needs avx512" in reason
    monkeypatch.setattr(model_programs, "runs_here", lambda target: reason)
    loaded = gc.load(tmp_path / "net.gcm", trust=True)
    assert loaded.seconds is not None
    np.testing.assert_allclose(loaded(np.ones((2, 8), np.float32)), model(gc.ones(2, 8)).detach().numpy(), rtol=1e-5)


@is_x86
@pytest.mark.slow
@pytest.mark.skipif(QEMU is None, reason="qemu-x86_64 is not installed")
@pytest.mark.parametrize(("cpu", "chosen"), [("Haswell", "x86-64-v3"), ("Nehalem", "x86-64")])
def test_a_processor_with_fewer_instructions_runs_what_it_has(model: nn.Module, path: Path, cpu: str, chosen: str):
    command = [str(QEMU), "-cpu", cpu, sys.executable, "-c", PROGRAM, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GRAPHC_CACHE": "off"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    found, _, numbers = done.stdout.strip().partition(" ")
    assert found == chosen
    expected = model(gc.ones(2, 8)).detach().numpy()
    np.testing.assert_allclose(json.loads(numbers), expected, rtol=1e-5, atol=1e-6)


def test_machines_are_names_of_such_and_for_object_code_only(model: nn.Module, tmp_path: Path):
    x, path = gc.zeros(2, 8), tmp_path / "net.gcm"
    with pytest.raises(ArgumentError, match=r"takes no target, got sse2, avx2"):
        gc.export(model, x, path=path, target=("sse2", "avx2"))
    with pytest.raises(ArgumentError, match="needs a target"):
        gc.export(model, x, path=path, native=True, target=())
    with pytest.raises(CompileError, match="unknown target 'sse3'"):
        gc.export(model, x, path=path, native=True, target=("sse2", "sse3"))
    gc.export(model, x, path=path, native=True, target=("avx2", "avx2"))
    assert len(model_content.load(path).first.natives) == 1


class Scaled(nn.Module):
    """A product whose weight code reads as it is."""

    def __init__(self):
        super().__init__()
        self.weight = gc.nn.Parameter(gc.arange(4096, dtype=gc.float32) / 8)

    def forward(self, x):
        return x * self.weight

    def halves(self, x):
        return x * 0.5 * self.weight


@pytest.fixture
def scaled(tmp_path: Path) -> Path:
    net = Scaled()
    entries = {"whole": gc.Entry(net, gc.zeros(4096)), "half": gc.Entry(net.halves, gc.zeros(4096))}
    gc.export(entries, path=tmp_path / "net.gcm", native=True)
    return tmp_path / "net.gcm"


def test_code_reads_weights_that_it_does_not_change_where_they_are(scaled: Path):
    stored = model_content.load(scaled)
    (path,) = stored.weights
    for entry in stored.entries:
        (code,) = entry.natives
        assert [b.path for b in code.manifest.of_class("constant") if b.nbytes > 4096] == [path]
        assert code.constants.nbytes < 4096
    loaded = gc.load(scaled, trust=True)
    assert loaded.seconds is None
    x = np.ones(4096, np.float32)
    for entry, factor in (("whole", 1), ("half", 0.5)):
        np.testing.assert_array_equal(loaded.entries[entry](x), stored.weights[path] * np.float32(factor))
    loaded.load_state_dict({path: np.zeros(4096, np.float32)})
    assert not np.asarray(loaded(x)).any()


def test_a_constant_of_another_size_than_its_weight_is_refused(scaled: Path):
    stored = model_content.load(scaled)
    (path,) = stored.weights
    short = replace(stored, weights={path: stored.weights[path][:2048]})
    entry = short.entry("whole")
    with pytest.raises(ArtifactError, match=r"is the weight .* which does not fit"):
        model_programs._load_native(short, entry, entry.natives[0])
