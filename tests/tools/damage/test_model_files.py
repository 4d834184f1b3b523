"""A sample of damaged files and entries of the cache; ``python -m tools.damage.model_files`` runs more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.damage import model_files
from tools.damage.model_files import ANOTHER, CRASHED, DAMAGES, REFUSED, FileOutcome, make_case, make_files


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = tmp_path_factory.mktemp("files")
    make_files(folder)
    return [path.read_bytes() for path in sorted(folder.glob("*.gcm"))]


def bad(outcomes: list[tuple[str, FileOutcome]]) -> list[tuple[int, str, FileOutcome]]:
    return [(i, name, o) for i, (name, o) in enumerate(outcomes) if o.kind not in (REFUSED, ANOTHER)]


def test_a_sample_of_files_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    outcomes = model_files.run_files(150, seed=5)
    assert bad(outcomes) == [] and len(outcomes) == 150
    assert {name for name, outcome in outcomes if outcome.kind == ANOTHER} <= model_files.FORGED


def test_a_sample_of_entries_is_never_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    outcomes = model_files.run_entries(12, seed=5)
    assert bad(outcomes) == [] and all(outcome.kind == REFUSED for _, outcome in outcomes)


def test_cases_are_the_same_each_time_and_differ_from_the_files(files: list[bytes]):
    digests = set()
    for number in range(120):
        name, data = make_case(number, 1, files)
        assert (name, data) == make_case(number, 1, files) and data not in files
        digests.add(name)
    assert digests == set(DAMAGES)


def test_a_crash_is_seen_and_the_rest_is_read(tmp_path: Path, files: list[bytes]):
    def judged(name: str, path: Path) -> FileOutcome:
        if path.read_bytes() == make_case(3, 0, files)[1]:
            os.abort()
        return FileOutcome(REFUSED)

    outcomes = model_files.run(8, 0, files, tmp_path / "net.gcm", make_case, judged)
    assert [outcome.kind for _, outcome in outcomes] == [REFUSED] * 3 + [CRASHED] + [REFUSED] * 4


def test_a_file_that_is_whole_is_accepted(tmp_path: Path, files: list[bytes]):
    (tmp_path / "net.gcm").write_bytes(files[0])
    assert model_files.judge("flip", tmp_path / "net.gcm").kind == model_files.ACCEPTED
    assert model_files.judge("graph", tmp_path / "net.gcm").kind == ANOTHER
