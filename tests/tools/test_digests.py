"""Digests: equal from run to run, different when something else is compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphc.codegen.schedule.contraction import register_block
from tools import digests

ROOT = Path(__file__).resolve().parents[2]
SMALL = "policy_b1,net_b1,lstm_b1_t64,custom_optimizer"


def run(*arguments: str, seed: str) -> digests.Digests:
    command = [sys.executable, "-m", "tools.digests", "--models", SMALL, "--json", *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_every_process_and_hash_seed_gives_the_same():
    first = run("--targets", "avx512,neon", seed="1")
    assert first == run("--targets", "avx512,neon", seed="2")
    kinds = {key.split()[2] for key in first}
    assert kinds == {"program", "llvm", "object"}
    assert {key.split()[1] for key in first} == {"avx512", "neon"}
    assert any("/prepared " in key for key in first)
    assert "custom_optimizer/step avx512 object" in first


def test_a_target_does_not_depend_on_the_others_that_are_asked_for():
    models = ["policy_b1"]
    both = dict(digests.compute(models, ["avx512", "sse2"], quick=True))
    alone = dict(digests.compute(models, ["sse2"], quick=True))
    assert alone == {key: value for key, value in both.items() if " sse2 " in key}


def test_another_choice_of_the_schedule_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    arguments = ["--models", "policy_b1", "--targets", "avx2", "--quick"]
    assert digests.main([*arguments, "--json"]) == 0
    stored = tmp_path / "old.json"
    stored.write_text(capsys.readouterr().out)
    assert digests.main([*arguments, "--compare", str(stored)]) == 0
    assert capsys.readouterr().out == f"{len(json.loads(stored.read_text()))} digests, 0 differ\n"
    assert digests.main([*arguments, "--compare", str(stored), "--first"]) == 0
    capsys.readouterr()
    best = register_block.rank_tiles
    monkeypatch.setattr("graphc.codegen.schedule.forms.choose_tile", lambda *a: (best(*a) or [None])[-1])
    assert digests.main([*arguments, "--compare", str(stored)]) == 1
    assert "differs: policy_b1/frozen avx2 program" in capsys.readouterr().out
    assert digests.main([*arguments, "--compare", str(stored), "--first"]) == 1
    assert capsys.readouterr().out.endswith("1 differ\n")


def test_what_is_gone_and_what_is_new_is_told():
    old, new = {"a x program": "1", "b x program": "2"}, {"b x program": "2", "c x program": "3"}
    assert digests.differences(old, new) == ["gone: a x program", "new: c x program"]


def test_unknown_names_are_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        digests.main(["--models", "policy_b2"])
    assert "unknown: policy_b2" in capsys.readouterr().err
