"""A sample of kills; ``python -m tools.damage.kills`` runs more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graphc.compiler import cache
from tools.damage import kills
from tools.damage.forked import finish
from tools.damage.kills import Compiling, Exporting, Kind, kill_once


@pytest.mark.parametrize("kind", list(kills.KINDS))
def test_a_sample_of_kills_leaves_nothing_bad(kind: str):
    problems, ends, _ = kills.run(6, 3, [kind])
    assert problems == {kind: []} and (ends >= 3 if kind == "train" else ends == 0)


def test_what_is_left_behind_is_found(tmp_path: Path):
    exporting = Exporting(tmp_path / "work")
    assert finish(exporting.begin, tmp_path / "log") == "" and list(exporting.problems()) == []
    (exporting.folder / ".net.gcm.0123.tmp").write_bytes(b"half")
    assert list(exporting.problems()) == [".net.gcm.0123.tmp is left behind"] and exporting.swept == 1
    (exporting.folder / ".net.gcm.0123.tmp").rename(exporting.folder / ".net.gcm.0123.linked")
    assert list(exporting.problems()) == [] and exporting.swept == 2
    (exporting.folder / "net.gcm").write_bytes(b"half")
    assert list(exporting.problems()) == ["the file is neither of the two"]


def test_whole_packs_of_kernels_may_stay_without_the_index(tmp_path: Path):
    compiling = Compiling(tmp_path / "work")
    folder = compiling.folder / "cache"
    assert finish(compiling.begin, tmp_path / "log") == "" == finish(compiling.check, tmp_path / "log")
    (folder / cache.INDEX).unlink()
    packs = sorted(folder.glob(f"*{cache.PACK}"))
    assert len(packs) == kills.VARIANTS and list(compiling.problems()) == []
    assert finish(compiling.check, tmp_path / "log") == "" and (folder / cache.INDEX).exists()
    packs[0].write_bytes(packs[0].read_bytes()[:-1])
    (problem,) = compiling.problems()
    assert packs[0].name in problem and "RuntimeWarning" in finish(compiling.check, tmp_path / "log")
    (folder / f".{packs[1].name}.0123.tmp").write_bytes(b"half")
    assert [p for p in compiling.problems() if p.endswith("is left behind")]


class Quick(Kind):
    def act(self) -> None:
        print("nothing to do", flush=True)


def test_a_process_that_ends_by_itself_is_no_kill(tmp_path: Path):
    assert "nothing to do" in kill_once(Quick(tmp_path / "work"), 0.5, tmp_path / "log")


def test_what_fails_in_a_process_is_told(tmp_path: Path):
    def fail() -> None:
        raise ValueError("this is wrong")

    assert "this is wrong" in finish(fail, tmp_path / "log")
    assert finish(lambda: os._exit(3), tmp_path / "log").startswith("status 768")
