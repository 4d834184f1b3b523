"""graphc cache: what it shows, as text and JSON, and emptying."""

from __future__ import annotations

import json
import os
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


def test_programs_are_listed_and_old_ones_removed(
    folder: Path, net: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    assert graphc("bench", net, "--rounds", "1", "--seconds", "0.01").code == console.OK
    (path,) = folder.glob("*.program")
    two_days = 2 * 86400
    os.utime(path, (path.stat().st_atime - two_days, path.stat().st_mtime - two_days))
    listed = json.loads(graphc("cache", "list", "--json").out)
    (program,) = listed["programs"]
    assert program["key"] == path.stem and program["bytes"] == path.stat().st_size and program["used"] >= two_days
    assert f"{path.stem[:16]}" in graphc("cache", "list").out and "2 d" in graphc("cache", "list").out
    assert "removed   0" in graphc("cache", "clear", "--older-than", "3d").out and path.exists()
    assert "removed   1" in graphc("cache", "clear", "--older-than", "47h").out and not path.exists()
    assert "programs  0" in graphc("cache", "size").out


@pytest.mark.parametrize(
    "arguments", [["--older-than", "1d"], ["clear", "--older-than", "soon"], ["list", "--clear"], ["fill"]]
)
def test_wrong_actions(folder: Path, graphc: Graphc, arguments: list[str]):
    assert graphc("cache", *arguments).code == console.USAGE


def test_a_folder_that_cannot_be_read(folder: Path, graphc: Graphc):
    folder.write_text("")
    done = graphc("cache")
    assert done.code == console.USAGE and str(folder) in done.err
