"""The roofline table: every kernel of a model and of a training step is in it, once."""

from __future__ import annotations

import json

import pytest

from benchmarks.roofline import format_profile, main, measured_roofline, profile_workload, rows_of
from benchmarks.workloads import WORKLOADS
from graphc.base.dtypes import float32
from graphc.codegen.machine.target import host_target
from graphc.runtime.profile import Machine


@pytest.mark.parametrize("name", ["policy_b1", "train_policy_b256"])
def test_every_call_is_counted(name: str):
    profile = profile_workload(WORKLOADS[name], 0.05, host_target())
    rows = rows_of(profile, host_target())
    assert sum(r.calls for r in rows) == len(profile.calls)
    assert sum(r.flops for r in rows) == sum(c.report.flops for c in profile.calls) > 0
    assert [r.seconds for r in rows] == sorted((r.seconds for r in rows), reverse=True)
    text = format_profile(name, profile, 2, host_target())
    assert text.startswith(f"{name}: ") and text.count("\n| ") == 1 + 2 + (len(rows) > 2)


def test_the_peak_and_the_speed_of_memory_are_those_that_were_measured():
    target = host_target()
    lanes = target.lanes(float32)
    roofline = measured_roofline(Machine(flops=20e9 * lanes, bandwidth=5e9), target)
    assert (roofline.speeds.operations, roofline.speeds.memory) == (10.0, 5.0)
    assert roofline.speeds.l1 > 5.0 and roofline.l2_bytes == target.l2_bytes
    assert measured_roofline(Machine(flops=1e9, bandwidth=1e15), target).bandwidth(1) == 1e6, "not below memory"


def test_json(capsys: pytest.CaptureFixture[str]):
    assert main(["policy_b1", "--seconds", "0.05", "--json"]) == 0
    assert {"kernel", "seconds", "floor"} <= set(json.loads(capsys.readouterr().out)["policy_b1"][0])


def test_an_unknown_workload(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["polcy_b1"])
    assert "unknown: polcy_b1" in capsys.readouterr().err
