"""The loop that runs passes: results, counts, reasons, verification, printing, and the name of the pass that fails."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from graphc.base import pass_runner
from graphc.base.pass_runner import Outcome, PassRun, PipelineRunner, added_up
from graphc.errors import PassError, VerifyError


@dataclass(frozen=True)
class Add:
    """Adds to a number."""

    name: str
    number: int


def run(step: Add, given: int) -> Outcome[int]:
    return Outcome(given + step.number, abs(step.number), (f"adds {step.number}",) if step.number else ())


def verify(number: int) -> None:
    if number < 0:
        raise VerifyError(f"{number} is negative", where="here")


RUNNER = PipelineRunner[Add, int](run, verify, lambda number: f"number {number}")
STEP = PipelineRunner[Add, int](run, verify, lambda number: f"number {number}", is_stage=False)


def test_each_pass_reports_changes_time_and_reasons(monkeypatch):
    readings = iter([0.0, 0.5, 1.0, 1.25, 2.0, 4.0])
    monkeypatch.setattr(pass_runner, "time", SimpleNamespace(perf_counter=lambda: next(readings)))
    total, runs = RUNNER([Add("one", 1), Add("none", 0), Add("two", 2)], 4)
    assert total == 7
    assert [(r.name, r.changed, r.seconds, r.reasons) for r in runs] == [
        ("one", 1, 0.5, ("adds 1",)),
        ("none", 0, 0.25, ()),
        ("two", 2, 2.0, ("adds 2",)),
    ]


def test_runs_of_one_name_are_added_up():
    runs = [PassRun("a", 1, 0.5, ("why",)), PassRun("b", 2, 0.25), PassRun("a", 3, 0.25)]
    assert added_up(runs) == (PassRun("a", 4, 0.75), PassRun("b", 2, 0.25))


@pytest.mark.parametrize(
    ("level", "runner", "name"), [("pass", RUNNER, "b"), ("stage", RUNNER, "c"), ("pass", STEP, "b")]
)
def test_the_first_wrong_result_that_is_looked_at_names_its_pass(
    monkeypatch, level: str, runner: PipelineRunner, name: str
):
    monkeypatch.setenv("GRAPHC_VERIFY", level)
    with pytest.raises(PassError, match=f"pass {name} failed .*negative\n  where  here"):
        runner([Add("a", 1), Add("b", -5), Add("c", 1)], 0)


def test_verification_is_put_off(monkeypatch):
    passes = [Add("a", -1), Add("b", 5)]
    monkeypatch.setenv("GRAPHC_VERIFY", "stage")
    assert RUNNER(passes, 0)[0] == 4
    assert STEP([Add("a", -1)], 0)[0] == -1
    monkeypatch.setenv("GRAPHC_VERIFY", "off")
    assert RUNNER([Add("a", -1)], 0)[0] == -1


def test_results_are_printed_and_times_logged(monkeypatch, capsys, caplog):
    monkeypatch.setenv("GRAPHC_PRINT_AFTER", "b")
    with caplog.at_level("DEBUG", "graphc"):
        RUNNER([Add("a", 1), Add("b", 2)], 0)
    assert capsys.readouterr().err == "// after pass 2, b\nnumber 3\n"
    assert [r.getMessage().partition(",")[0] for r in caplog.records] == ["a: 1 changes", "b: 2 changes"]
