"""graphc bench --breakdown: every step of targets and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphc.cli import console
from graphc.cli.breakdown import STEPS
from tests.cli.conftest import Graphc

SHORT = ["--rounds", "3", "--seconds", "0.01"]


def test_whole_table(net: Path, graphc: Graphc):
    done = graphc("bench", net, *SHORT, "--breakdown")
    assert done.code == console.OK
    names = [line.split()[0] for line in done.out.splitlines()]
    assert [n for n in names if n in STEPS] == list(STEPS)
    assert {"optimized", "lowered", "scheduled", "llvm", "object"} < set(names)


@pytest.mark.parametrize("step", STEPS)
def test_one_step(net: Path, graphc: Graphc, step: str):
    done = graphc("bench", net, *SHORT, "--breakdown", step)
    assert done.code == console.OK and done.out.startswith(step)
    assert not any(other in done.out for other in STEPS if other != step)


def test_target_as_json(models: Path, graphc: Graphc):
    done = graphc("bench", f"{models}:Net", "--input", "x:f32[2,6]", *SHORT, "--breakdown", "--json", "--train")
    facts = json.loads(done.out)
    assert list(facts["steps"]) == list(STEPS) and all(v > 0 for v in facts["steps"].values())
    assert facts["steps"]["codegen"] == pytest.approx(sum(facts["stages"][s] for s in ("scheduled", "llvm", "object")))


def test_errors(tmp_path: Path, models: Path, graphc: Graphc):
    assert graphc("bench", tmp_path / "missing.gcm", "--breakdown").code == console.USAGE
    assert graphc("bench", f"{models}:Branching", "--input", "x:f32[2]", "--breakdown").code == console.COMPILE
