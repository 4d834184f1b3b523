"""The suite for a GPU: failing, hanging or absent parts do not end others, and a machine without a GPU is reported."""

from __future__ import annotations

import json
import sys

import pytest

from tools import gpu_suite
from tools.gpu_suite import ABSENT, FAILED, LATE, PASSED, Command, Part, Plan, parse, run_suite, table

PLAN = Plan("cuda-emu", 0.5)


def part(name: str, text: str, share: float = 1.0) -> Part:
    return Part(name, share, lambda plan, seconds: Command([sys.executable, "-c", text]), lambda data: str(data))


def test_every_part_survives_the_failure_of_others():
    suite_parts = [
        part("raises", "raise SystemExit('no')"),
        part("dies", "import os; os.abort()"),
        part("good", "print('{\"cases\": 3}')"),
        Part("absent", 1.0, lambda plan, seconds: Command([], "not installed"), lambda data: ""),
        Part("no program", 1.0, lambda plan, seconds: Command(["/nowhere/at-all"]), lambda data: ""),
    ]
    written = []
    report = run_suite(PLAN, suite_parts, lambda partial_report: written.append(json.dumps(partial_report)))
    status = {name: partial_report["status"] for name, partial_report in report["parts"].items()}
    assert status == {"raises": FAILED, "dies": FAILED, "good": PASSED, "absent": ABSENT, "no program": FAILED}
    assert report["parts"]["good"]["data"] == {"cases": 3}
    assert len(written) == len(suite_parts)
    assert "not installed" in table(report, suite_parts)


def test_a_part_that_hangs_is_ended_with_its_children(monkeypatch: pytest.MonkeyPatch):
    text = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    result = gpu_suite.run_part(part("hangs", text), PLAN, 1.0)
    assert result["status"] == LATE


def test_the_data_of_a_part_is_the_object_that_its_output_ends_with():
    assert parse('warning {x}\n{"a": 1}\n') == {"a": 1}
    assert parse('{\n "a": {\n  "b": 2\n }\n}') == {"a": {"b": 2}}
    assert parse("3 passed in 2 s\n") == {"tail": "3 passed in 2 s\n"}


def test_without_a_gpu_it_says_so_and_runs_nothing_on_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu_suite, "reason_without", lambda device: "DeviceError: no driver")
    out = tmp_path / "report.json"
    assert gpu_suite.main(["--out", str(out)]) == gpu_suite.NO_GPU
    report = json.loads(out.read_text())
    assert report["no_device"] == "DeviceError: no driver"
    assert list(report["parts"]) == ["environment"]
    assert report["commit"]
    assert "no GPU can be used here" in capsys.readouterr().err
