"""A sample of damaged files and entries of the cache; ``python -m tools.damage.model_files`` runs more."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest

from tools.damage import model_files
from tools.damage.corruption import damaged_of
from tools.damage.model_files import BELOW, DAMAGES, ENTRIES, FILES, FORGED, judge_file
from tools.nets.run import CRASHED, DIFFERENT, EQUAL, REFUSED, Net, Outcome, Results, own_cache, run_children


def outcomes_of(net: Net, count: int, seed: int) -> dict[str, Outcome]:
    results = Results(None)
    with own_cache(False):
        run_children(net, islice(net.cases(seed), count), results, 600.0)
    return results.outcomes


def test_a_sample_of_files_is_refused():
    outcomes = outcomes_of(FILES, 150, 5)
    assert len(outcomes) == 150 and {o.kind for o in outcomes.values()} <= {EQUAL, REFUSED}
    assert {case.partition("/")[0] for case, o in outcomes.items() if o.kind == EQUAL} <= set(FORGED)


def test_a_sample_of_entries_is_never_used():
    assert {o.kind for o in outcomes_of(ENTRIES, 12, 5).values()} == {EQUAL}


def test_cases_are_the_same_each_time_and_differ_from_the_files():
    files = model_files.files()
    cases = list(islice(FILES.cases(1), 120))
    for case in cases:
        data = damaged_of(DAMAGES, case, files)
        assert data == damaged_of(DAMAGES, case, files) and data not in files
    assert {case.partition("/")[0] for case in cases} == set(DAMAGES) and set(BELOW) < set(DAMAGES)


def test_a_crash_is_seen_and_the_rest_is_read():
    def judge(case: str) -> Outcome:
        if case == "3":
            os.abort()
        return Outcome(REFUSED)

    net = Net("sample", "Crashes.", lambda seed: map(str, range(8)), judge, isolated=True)
    kinds = [o.kind for o in outcomes_of(net, 8, 0).values()]
    assert kinds == [REFUSED] * 3 + [CRASHED] + [REFUSED] * 4


def test_a_file_that_is_whole_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "net.gcm"
    path.write_bytes(model_files.files()[0])
    assert judge_file(False, path) == (DIFFERENT, "it was loaded") and judge_file(True, path).kind == EQUAL
    monkeypatch.setattr(model_files, "load", lambda path, trust: {}["lost"])
    assert judge_file(True, path) == ("failed", "read: KeyError: 'lost'")
