"""Call logs: text with headings, filters, limits, JSON."""

from __future__ import annotations

import io
import json

from graphc.monitor.call_log import CALL, GRADIENT, MODULE, NOTE, OP, CallLog, Filter, LogEntry, LogText
from graphc.tensors.array_report import ArrayReport

ONE = (ArrayReport("f32", (2,), 0.0, 1.0, 0, 0),)


def event(kind, path="", module="", op="", depth=0, phase="forward"):
    return LogEntry(kind, phase, path, module, op, "train.py:3" if op else "", ONE, ONE, 2e-6, depth)


BLOCK = [
    event(CALL, "", "Net"),
    event(CALL, "0", "Linear", depth=1),
    event(OP, "0", "Linear", "matmul", 2),
    event(MODULE, "0", "Linear", depth=1),
    event(CALL, "1", "ReLU", depth=1),
    event(MODULE, "1", "ReLU", depth=1),
    event(MODULE, "", "Net"),
    event(GRADIENT, "0", "Linear", "matmul", phase="backward"),
]


def log_of(events, limit=100, filter=Filter(), **more):  # noqa: B008
    log = CallLog(limit, filter, more.get("write"), more.get("file"))
    for one in events:
        log.add(one)
    log.flush()
    return log


def test_modules_are_headings_and_empty_ones_a_line():
    assert log_of(BLOCK).text().splitlines() == [
        "Net: f32[2] 0..1",
        "  0 (Linear): f32[2] 0..1",
        "    matmul f32[2] 0..1 -> f32[2] 0..1  2 us  train.py:3",
        "  -> 0 (Linear): f32[2] 0..1  2 us",
        "  1 (ReLU): f32[2] 0..1 -> f32[2] 0..1  2 us",
        "-> Net: f32[2] 0..1  2 us",
        "gradient of matmul in 0 (Linear): f32[2] 0..1 -> f32[2] 0..1  2 us  train.py:3",
    ]


def test_what_is_written_while_it_happens_is_the_same():
    lines, file = [], io.StringIO()
    log = log_of(BLOCK, write=lines.append, file=file)
    assert "\n".join(lines) == log.text()
    found = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [f["kind"] for f in found] == [e.kind for e in BLOCK] and found[2]["microseconds"] == 2.0
    assert found[2]["inputs"] == [{"dtype": "f32", "shape": [2], "low": 0.0, "high": 1.0, "nans": 0, "infinities": 0}]


def test_only_the_last_are_kept():
    log = log_of(BLOCK, limit=2)
    assert len(log.entries) == 2 and log.count == 8
    assert log.text().splitlines()[0] == "... 6 events before" and "gradient" in log.text(1)


def test_filters_by_module_and_by_op():
    assert [e.path for e in log_of(BLOCK, filter=Filter(("1",))).entries] == ["1", "1"]
    assert {e.path for e in log_of(BLOCK, filter=Filter(("Lin*",))).entries} == {"0"}
    assert [e.op for e in log_of(BLOCK, filter=Filter((), ("mat*",))) if e.op] == ["matmul", "matmul"]
    assert not [e for e in log_of(BLOCK, filter=Filter((), ("add",))) if e.op]


def test_notes_and_headings_that_are_left_open():
    note = event(NOTE, op="compiled")
    text = LogText()
    assert text.lines(note) == ["# compiled"]
    assert text.lines(event(CALL, "0", "Linear")) == [] and text.rest() == ["0 (Linear): f32[2] 0..1"]
