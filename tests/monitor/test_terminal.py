"""The live table: last values, limits and courses; renewed on a terminal, printed once elsewhere."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from graphc.errors import ArgumentError
from graphc.monitor import TerminalWriter
from graphc.monitor.terminal import bars
from graphc.monitor.writer import make_histogram

console = pytest.importorskip("rich.console")


def test_bars():
    assert bars([0.0, 1.0, 2.0]) == "▁▅█"
    assert bars([5.0, 5.0]) == "▁▁"
    assert bars([0.0, float("nan"), 1.0, float("inf")]) == "▁ █ "
    assert bars([1.0, 2.0], 0.0) == "▅█"
    assert bars([]) == ""


def fill(writer: TerminalWriter) -> None:
    for step, value in enumerate([3.0, 1.0, 2.0]):
        writer.scalar("loss", value, step)
        writer.flush()
    writer.histogram("weights", make_histogram(np.arange(100.0)), 2)


def test_printed_once_where_there_is_no_terminal():
    stream = io.StringIO()
    writer = TerminalWriter(console=console.Console(file=stream, width=100))
    fill(writer)
    assert stream.getvalue() == ""
    writer.close()
    writer.close()
    text = stream.getvalue()
    assert "step 2" in text
    row = next(line for line in text.splitlines() if "loss" in line)
    assert row.replace("│", " ").split() == ["loss", "2", "1", "3", "█▁▅"]
    assert next(line for line in text.splitlines() if "weights" in line).count("█") >= 10


def test_renewed_on_a_terminal():
    stream = io.StringIO()
    writer = TerminalWriter(console=console.Console(file=stream, width=100, force_terminal=True))
    fill(writer)
    before = stream.getvalue()
    assert before.count("loss") == 3
    writer.close()
    writer.flush()
    assert "\x1b[" in stream.getvalue()


def test_the_course_shows_the_last_values():
    writer = TerminalWriter(width=4, console=console.Console(file=io.StringIO(), width=100))
    for step in range(10):
        writer.scalar("a", float(step), step)
    assert list(writer._courses["a"]) == [6, 7, 8, 9]
    assert writer._limits["a"] == (0, 9)


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "rich.live", None)
    with pytest.raises(ArgumentError, match=r"\[monitor\]"):
        TerminalWriter()
