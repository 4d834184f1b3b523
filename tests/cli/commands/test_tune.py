"""graphc tune: its table, its JSON, and where nothing can be kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphc.cli import console
from graphc.cli.commands.tune import text
from graphc.compiler.tuning import TunedKernel, TunedSetting, Tuning
from tests.cli.conftest import Graphc

SHORT = ["--seconds", "30", "--candidates", "2"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_table_and_json(net: Path, graphc: Graphc):
    done = graphc("tune", net, *SHORT)
    assert done.code == console.OK
    heads = [line.split()[:2] for line in done.out.splitlines()]
    assert heads[0] == ["setting", "costs"] and ["kernel", "calls"] in heads
    facts = json.loads(graphc("tune", net, *SHORT, "--json").out)
    assert facts["name"] == "Net" and {"estimated", "chosen", "gain", "seconds"} <= set(facts["kernels"][0])


def test_clearing_the_cache_forgets_it(net: Path, graphc: Graphc, folder: Path):
    graphc("tune", net, *SHORT)
    assert len(list(folder.glob("*.tuned"))) == 1
    assert graphc("cache", "--clear").code == console.OK
    assert list(folder.glob("*.tuned")) == []


def test_without_a_cache(net: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_CACHE", "off")
    done = graphc("tune", net, *SHORT)
    assert done.code == console.USAGE and "GRAPHC_CACHE=off" in done.err


def kernel(chosen: str, seconds: float) -> TunedKernel:
    return TunedKernel("k0", "0" * 64, 2, 6, "8x2 i/j/-", chosen, 2e-3, seconds)


def tuning(seconds: float, *, kept: bool = False, won: bool = False, untried: int = 0) -> Tuning:
    outcome, changes = ("kept" if won else "not faster"), "lanes.long_copies=1"
    setting = TunedSetting("one chain at a time", changes, outcome, 1.5, 7, 9)
    kernels = (kernel("8x2 i/j/-", 1e-3),)
    facts = (3e-3, seconds, kept, changes if kept else "", False, untried, 4.2)
    return Tuning("Net", "program 0", (setting,), kernels, *facts)


def test_what_the_tables_say():
    won = text(tuning(2e-3, kept=True, won=True))
    assert "1.50" in won and "7 of 9" in won and "3 ms -> 2 ms a call; used from now on" in won
    assert "the choices did not win a second time, so nothing is kept" in text(tuning(3e-3, won=True))
    same = text(tuning(3e-3))
    assert "the same" in same and "3 ms a call; nothing to gain, so the cost model's choices stay" in same
    assert "not tried" not in same
    assert text(tuning(3e-3, untried=5)).endswith("5 candidates not tried in 4 s: pass more --seconds")
