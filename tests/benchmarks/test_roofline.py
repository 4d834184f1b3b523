"""The roofline table: every kernel of a model and of a training step is in it, once."""

from __future__ import annotations

import json

import pytest

from benchmarks.roofline import format_profile, main, profile_workload, rows_of
from benchmarks.workloads import WORKLOADS


@pytest.mark.parametrize("name", ["policy_b1", "train_policy_b256"])
def test_every_call_is_counted(name: str):
    found = profile_workload(WORKLOADS[name], 0.05)
    rows = rows_of(found)
    assert sum(r.calls for r in rows) == len(found.calls)
    assert sum(r.flops for r in rows) == sum(c.report.flops for c in found.calls) > 0
    assert [r.seconds for r in rows] == sorted((r.seconds for r in rows), reverse=True)
    text = format_profile(name, found, 2)
    assert text.startswith(f"{name}: ") and text.count("\n| ") == 1 + 2 + (len(rows) > 2)


def test_json(capsys: pytest.CaptureFixture[str]):
    assert main(["policy_b1", "--seconds", "0.05", "--json"]) == 0
    assert {"kernel", "seconds", "floor"} <= set(json.loads(capsys.readouterr().out)["policy_b1"][0])


def test_an_unknown_workload(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["polcy_b1"])
    assert "there is no workload 'polcy_b1'" in capsys.readouterr().err
