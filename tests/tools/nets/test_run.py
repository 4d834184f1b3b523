"""The runner of nets: time, results, resuming, exit status."""

from __future__ import annotations

import itertools
import json
import os
import time

import pytest

from tools.nets.run import CRASHED, DIFFERENT, EQUAL, FAILED, Net, Outcome, Results, main, run, run_children


def _net(judged, bad=()):
    def judge(case):
        judged.append(case)
        return Outcome(DIFFERENT, f"{case} is 2, not 1") if case in bad else Outcome(EQUAL)

    return Net("sample", "Counts.", lambda seed: (f"n{seed}-{i}" for i in range(6)), judge)


def test_a_run_takes_all_cases_and_its_exit_status_says_whether_some_are_bad(capsys):
    judged = []
    assert main(_net(judged), ["--seed", "3"]) == 0
    assert judged == [f"n3-{i}" for i in range(6)]
    assert capsys.readouterr().out == "sample: 6 cases: 6 equal\n"
    assert main(_net([], {"n0-1"}), []) == 1
    assert "n0-1: n0-1 is 2, not 1" in capsys.readouterr().out


def test_a_run_resumes_from_its_file_and_reports_all_of_it(tmp_path, capsys):
    path = tmp_path / "deep" / "results.jsonl"
    judged = []
    assert main(_net(judged, {"n0-1"}), ["--results", str(path), "--only", "*-[01]"]) == 1
    assert main(_net(judged), ["--results", str(path), "--json"]) == 1
    assert sorted(judged) == [f"n0-{i}" for i in range(6)]
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["outcomes"] == {"different": 1, "equal": 5} and list(report["bad"]) == ["n0-1"]


def test_a_case_that_ended_the_process_is_bad_and_one_that_was_interrupted_runs_again(tmp_path):
    path = tmp_path / "results.jsonl"
    results = Results(path)
    results.start("n0-0")
    results.start("n0-1")
    results.finish("n0-1", Outcome("interrupted"), 0.1)
    path.write_text(path.read_text() + '{"case": "n0-2", "outc')
    judged = []
    again = Results(path)
    assert again.outcomes["n0-0"].kind == "crashed"
    run(_net(judged), (f"n0-{i}" for i in range(3)), again, 60)
    assert judged == ["n0-1", "n0-2"]


def test_a_run_without_end_stops_when_its_time_is_over():
    judged = []
    net = Net(
        "sample",
        "Counts.",
        lambda seed: map(str, itertools.count()),
        lambda case: judged.append(case) or Outcome(FAILED),
    )
    run(net, net.cases(0), Results(None), 0.05)
    assert 0 < len(judged) < 1_000_000


def test_the_end_of_the_time_interrupts_a_case_in_a_child_and_a_crash_is_bad():
    def judge(case):
        if case == "n0-2":
            time.sleep(60)
        return Outcome(EQUAL)

    results = Results(None)
    net = _net([])._replace(judge=judge)
    run_children(net, net.cases(0), results, 1.0)
    assert results.outcomes.keys() <= {"n0-0", "n0-1"} and not results.bad

    crashing = net._replace(judge=lambda case: os._exit(3) if case == "n0-2" else Outcome(EQUAL))
    run_children(crashing, net.cases(0), results, 60.0)
    assert {case for case, outcome in results.outcomes.items() if outcome.kind == CRASHED} == {"n0-2"}
    assert len(results.outcomes) == 6


def test_ctrl_c_ends_a_run_with_its_summary(tmp_path, capsys):
    def judge(case):
        if case == "n0-2":
            raise KeyboardInterrupt
        return Outcome(EQUAL)

    assert main(_net([])._replace(judge=judge), ["--results", str(tmp_path / "r.jsonl")]) == 0
    assert capsys.readouterr().out == "sample: 2 cases: 2 equal\n"


@pytest.mark.parametrize("words", [["--seconds", "much"], ["--seed"]])
def test_wrong_arguments_are_usage_errors(words):
    with pytest.raises(SystemExit) as caught:
        main(_net([]), words)
    assert caught.value.code == 2
