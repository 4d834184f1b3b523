"""graphc check: models and files that are right, planted faults, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphc.cli import console
from graphc.passes.canonicalize import Canonicalize
from tests.checks.test_check_case import CASES
from tests.checks.test_check_parts import wrong_lowering
from tests.cli.conftest import Graphc


def test_a_model_that_is_right(models: Path, graphc: Graphc, tmp_path: Path):
    done = graphc("check", f"{models}:Net", "--input", "x:f32[2,6]", "--gradients", "-o", tmp_path / "none")
    assert done.code == console.OK
    assert done.out.startswith("part ") and "gradient-rules" in done.out and "native" in done.out
    assert not (tmp_path / "none").exists()


def test_json_of_a_model_file(net: Path, graphc: Graphc):
    done = graphc("check", net, "--json")
    found = json.loads(done.out)
    assert done.code == console.OK and found["good"] and found["faults"] == []
    assert [p["pass"] for p in found["passes"]][-1] == "native"


def test_a_fault_is_written_to_a_file_that_shows_it(models: Path, graphc: Graphc, tmp_path: Path):
    place = ("check", f"{models}:Rectified", "--input", "x:f32[2,6]", "-o", tmp_path / "out")
    with pytest.MonkeyPatch.context() as patched:
        wrong_lowering(patched)
        done = graphc(*place, "--json")
        assert done.code == console.WRONG
        fault = json.loads(done.out)["faults"][0]
        assert (fault["kind"], fault["pass"], fault["nodes"]) == ("program", "lowering", 1)
        again = graphc("check", fault["file"])
        assert again.code == console.WRONG and "program pass lowering: BAD: output 0 differs" in again.out
    again = graphc("check", fault["file"], "--json")
    assert again.code == console.OK and json.loads(again.out)["good"]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_files_of_faults(path: Path, graphc: Graphc):
    done = graphc("check", path)
    assert done.code == console.OK and done.out.endswith(": ok\n")


def test_ctrl_c_ends_it(models: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Canonicalize, "run", interrupted)
    assert graphc("check", f"{models}:Net", "--input", "x:f32[2,6]").code == console.INTERRUPTED


def test_errors(tmp_path: Path, models: Path, net: Path, graphc: Graphc):
    assert graphc("check", tmp_path / "missing.gcm").code == console.USAGE
    assert graphc("check", f"{models}:Branching", "--input", "x:f32[2]").code == console.COMPILE
    assert graphc("check", f"{models}:Net", "--input", "x:f32[2,6]", "-o", models).code == console.USAGE
    assert graphc("check", net, "--gradients").code == console.USAGE
    damaged = tmp_path / "damaged.gc"
    np.savez(tmp_path / "damaged.npz", argument_0=np.zeros(2))
    for mark, message in (("case 2", "is damaged: 'kind'"), ("check case 1", "a case of an earlier format")):
        damaged.write_text(f"// graphc {mark}\n// case {{}}\n")
        done = graphc("check", damaged)
        assert done.code == console.DAMAGED and message in done.err
    damaged.with_suffix(".npz").unlink()
    damaged.write_text("// graphc case 2\n// case {}\n")
    assert graphc("check", damaged).code == console.USAGE
    assert graphc("check", f"{models}:Net").code == console.USAGE
