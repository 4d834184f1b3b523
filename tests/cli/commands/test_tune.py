"""graphc tune: its table, its JSON, and where nothing can be kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphc.cli import console
from graphc.cli.commands.tune import text
from graphc.compiler.tuning import TunedKernel, Tuning
from tests.cli.conftest import Graphc

SHORT = ["--seconds", "0.001", "--candidates", "2"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_table_and_json(net: Path, graphc: Graphc):
    done = graphc("tune", net, *SHORT)
    assert done.code == console.OK
    assert done.out.splitlines()[0].split()[:4] == ["kernel", "calls", "time", "gain"]
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


def test_what_the_table_says():
    won = Tuning("Net", (kernel("4x4 i/j/-", 1e-3),), 3e-3, 2e-3)
    assert "2.00" in text(won) and "3 ms -> 2 ms on one thread; used from now on" in text(won)
    lost = Tuning("Net", (kernel("4x4 i/j/-", 1e-3),), 2e-3, 2e-3)
    assert "the program as a whole is not faster, so nothing is kept" in text(lost) and lost.choices() == {
        "0" * 64: None
    }
    same = Tuning("Net", (kernel("8x2 i/j/-", 2e-3),), 2e-3, 2e-3)
    assert "the same" in text(same) and "the cost model's choices are already the fastest" in text(same)
