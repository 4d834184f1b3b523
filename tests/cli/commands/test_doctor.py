"""graphc doctor: what of this machine can be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import graphc as gc
from graphc.base.errors import DeviceError
from graphc.cli import console
from graphc.cli.commands import doctor
from graphc.runtime.profile import Machine
from tests.cli.conftest import Graphc


def test_it_says_what_is_there(graphc: Graphc):
    done = graphc("doctor")
    assert done.code == console.OK and not done.err
    assert done.out.startswith("machine:\n") and "\ncuda:\n" in done.out
    found = json.loads(graphc("doctor", "--json").out)
    assert list(found) == ["machine", "packages", "cache", "cuda", "check", "faults", "good"]
    assert found["machine"]["graphc"] == gc.__version__ and found["good"]
    assert found["machine"]["installed"].startswith("graphc-compiler, ")
    assert set(doctor.NEEDED) | set(doctor.OPTIONAL) < set(found["packages"])
    assert list(found["cuda"]) == ["cupy", "driver", "devices", "NVRTC", "cublasLt", "C++ compiler", "tested"]


def test_it_ends_with_a_verdict(graphc: Graphc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert graphc("doctor").out.endswith("verdict: compiled code runs on this machine and is right\n")
    folder = tmp_path / "programs"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(folder))
    done = graphc("doctor")
    assert done.code == console.WRONG
    assert done.out.endswith(f"verdict: cache, state: {folder} can be written by other users\n")
    assert "drwxrwxrwx" in done.out


@pytest.mark.filterwarnings("ignore:the cache of compiled programs does not work")
def test_a_cache_that_cannot_be_written_is_a_fault(graphc: Graphc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "graphc"
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(folder))
    found = json.loads(graphc("doctor", "--json").out)
    assert found["cache"]["used"] == "no" and found["cache"]["state"].startswith(f"wrong: {folder} cannot be written (")
    monkeypatch.setenv("GRAPHC_CACHE", "off")
    assert json.loads(graphc("doctor", "--json").out)["cache"]["used"] == "no (GRAPHC_CACHE=off)"


def test_a_program_that_computes_something_else_is_a_fault(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "compile", lambda function, **_: lambda x: function(x) + 1)
    (fault,) = doctor.faults_of({"check": doctor.check()})
    assert fault.startswith("check, program: ") and "instead of" in fault


def test_packages_that_are_missing_are_named_with_what_they_are_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "OPTIONAL", {"no-such-package": "flying"})
    assert doctor.packages()["no-such-package"] == "missing: flying"


def test_it_measures_when_it_is_asked_to(monkeypatch: pytest.MonkeyPatch, graphc: Graphc):
    monkeypatch.setattr(doctor, "measure_machine", lambda: Machine(2e11, 3e10))
    done = graphc("doctor", "--measure")
    assert "200.0 GFLOP/s" in done.out and "30.0 GB/s" in done.out


@pytest.mark.parametrize(("tested", "line"), [("", doctor.NEVER_RUN), ("H200 at 1a2b3c4", "H200 at 1a2b3c4")])
def test_it_says_which_gpu_has_run_it(graphc: Graphc, monkeypatch: pytest.MonkeyPatch, tested: str, line: str):
    monkeypatch.setattr(doctor, "TESTED_ON", tested)
    assert json.loads(graphc("doctor", "--json").out)["cuda"]["tested"] == line


@pytest.mark.skipif(gc.cuda.is_available(), reason="there is a GPU")
def test_what_is_missing_is_named_with_what_helps():
    found = doctor.gpus()
    assert found["devices"].startswith("missing: ") and "\ntry " in found["devices"]


def test_what_is_missing_is_no_error(monkeypatch: pytest.MonkeyPatch):
    def absent() -> None:
        raise DeviceError("there is no compiler", remedy="install one")

    def broken() -> None:
        raise OSError("cannot be opened")

    monkeypatch.setattr(doctor.emulated_build, "compiler", absent)
    monkeypatch.setattr(doctor.cublaslt, "library", broken)
    found = doctor.gpus()
    assert found["C++ compiler"] == "missing: there is no compiler\ntry install one"
    assert found["cublasLt"] == "missing: OSError: cannot be opened"
