"""Flame views of traces: bars below their callers, a window of time, and files of ``gc.profile``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import graphc as gc
from tools.trace_picture import bars_of, main, svg


def event(name: str, begin: float, end: float, thread: int = 1, **others: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "pid": 1,
        "tid": thread,
        "ts": begin,
        "dur": end - begin,
        "cat": "cpu_op",
        **others,
    }


NAME = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "loader & co"}}
EVENTS = [NAME, event("b", 1000, 4000), event("a", 0, 9000), event("c", 4000, 5000), event("d", 2000, 3000, 2)]


def test_bars_lie_below_their_callers():
    threads = bars_of(EVENTS)
    assert [(b.event["name"], b.depth) for b in threads[1, 1]] == [("a", 0), ("b", 1), ("c", 1)]
    assert [b.depth for b in threads[1, 2]] == [0]


def test_a_picture_is_svg_with_a_bar_for_each_event():
    text = svg({"traceEvents": EVENTS})
    ElementTree.fromstring(text)
    titles = re.findall("<title>(.*?)</title>", text)
    assert titles == [
        f"{name} (cpu_op), {time} µs"
        for name, time in zip("abcd", ("9,000.0", "3,000.0", "1,000.0", "1,000.0"), strict=True)
    ]
    assert "loader &amp; co" in text and "thread 1" in text and "8 ms" in text


def test_a_window_of_time():
    text = svg({"traceEvents": EVENTS}, begin=3.5, end=6, width=624)
    assert "d (cpu_op)" not in text
    widths = [
        float(w) for w in re.findall(r'class="bar cpu_op" x="[0-9.]+" y="\d+" width="([0-9.]+)" height="20"', text)
    ]
    assert widths == [600, 120, 240]
    with pytest.raises(ValueError, match="no events in this time"):
        svg({"traceEvents": EVENTS}, begin=20, end=30)


def test_labels_fit_into_their_bars():
    kernel = event("k1", 0, 100, cat="kernel", args={"module": "layers.0"})
    for width, label in ((224, "k1 layers.0"), (60, "k1"), (30, None)):
        text = svg({"traceEvents": [kernel]}, width=width)
        assert re.findall(r'<text x="16.00" y="84">(.*?)</text>', text) == ([label] if label else [])


def test_the_file_of_a_profile(tmp_path: Path):
    double = gc.compile(lambda x: x * 2)
    with gc.profile(tmp_path / "trace.json"):
        double(gc.ones(3))
    main([str(tmp_path / "trace.json"), "-o", str(tmp_path / "trace.svg")])
    text = (tmp_path / "trace.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    assert "(compiled)" in text and "(compile)" in text
