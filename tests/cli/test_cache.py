"""graphc cache: what it shows, as text and JSON, and emptying."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphc.cli import console
from tests.cli.conftest import Graphc


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "programs"))
    monkeypatch.setenv("GRAPHC_CACHE_SIZE", "64M")
    return tmp_path / "programs"


def test_an_empty_cache(folder: Path, graphc: Graphc):
    done = graphc("cache")
    assert done.code == console.OK
    assert [line.split()[0] for line in done.out.splitlines()] == ["folder", "used", "programs", "size"]
    assert "GRAPHC_CACHE=off" in done.out and not folder.exists()


def test_programs_are_counted_and_removed(folder: Path, net: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    first = json.loads(graphc("bench", net, "--rounds", "1", "--seconds", "0.01", "--json").out)
    second = json.loads(graphc("bench", net, "--rounds", "1", "--seconds", "0.01", "--json").out)
    assert "object" in first["stages"] and list(second["stages"]) == ["cache"]
    figures = json.loads(graphc("cache", "--json").out)
    size = sum(path.stat().st_size for path in folder.glob("*.program"))
    count = len(list(folder.glob("*.program")))
    assert count >= 1
    assert figures == {
        "folder": str(folder), "entries": count, "bytes": size, "limit": 64 << 20, "on": True, "removed": 0
    }  # fmt: skip
    done = graphc("cache", "--clear")
    assert done.code == console.OK and f"removed   {count}" in done.out
    assert not list(folder.glob("*.program"))


def test_a_folder_that_cannot_be_read(folder: Path, graphc: Graphc):
    folder.write_text("")
    done = graphc("cache")
    assert done.code == console.USAGE and str(folder) in done.err
