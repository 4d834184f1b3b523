"""graphc doctor: what of this machine can be used."""

from __future__ import annotations

import json

import pytest

import graphc as gc
from graphc.base.errors import DeviceError
from graphc.cli import console, doctor
from tests.cli.conftest import Graphc


def test_it_says_what_is_there(graphc: Graphc):
    done = graphc("doctor")
    assert done.code == console.OK and not done.err
    assert done.out.startswith("machine:\n") and "\ncuda:\n" in done.out
    found = json.loads(graphc("doctor", "--json").out)
    assert list(found) == ["machine", "cuda"] and found["machine"]["graphc"] == gc.__version__
    assert list(found["cuda"]) == ["cupy", "driver", "devices", "NVRTC", "cublasLt", "C++ compiler", "tested"]


def test_it_says_that_no_gpu_has_run_it(graphc: Graphc):
    assert "never run on a GPU" in graphc("doctor").out or doctor.TESTED_ON


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
