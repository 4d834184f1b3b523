"""Lines and bars on terminals, counts of loops, and spans of a timeline."""

from __future__ import annotations

import io
import sys

import pytest

from graphc.base import progress
from graphc.base.progress import (
    COMPILED,
    PASS,
    SHOWN,
    WIDTH,
    Progress,
    TerminalLine,
    counted,
    listening,
    note,
    noted,
    shown,
    timeline,
    unwatched,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "option", "text"), [(Terminal, "on", "working"), (Terminal, "off", ""), (io.StringIO, "on", "")]
)
def test_terminals_get_a_line(monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], option: str, text: str):
    stderr = stream()
    monkeypatch.setenv("GRAPHC_PROGRESS", option)
    monkeypatch.setattr(sys, "stderr", stderr)
    line = TerminalLine()
    line.write("working")
    line.clear()
    assert stderr.getvalue() == (f"\r\x1b[K{text}\r\x1b[K" if text else "")


@pytest.mark.parametrize(("columns", "width"), [("60", 59), ("80", 79), ("200", WIDTH), ("", 79), ("wide", 79)])
def test_long_lines_are_cut_to_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: str, width: int):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", columns)
    TerminalLine().write("x" * 200)
    assert sys.stderr.getvalue().count("x") == width  # type: ignore[attr-defined]


def test_no_stderr(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", None)
    TerminalLine().write("working")


def test_a_terminal_that_goes_away_is_no_error(monkeypatch: pytest.MonkeyPatch):
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    line = TerminalLine()
    stderr.close()
    line.write("working")
    assert not line.is_visible


def test_only_loops_in_the_block_are_counted():
    told: list[tuple[int, int]] = []
    with listening(lambda *counts: told.append(counts)):
        assert [*counted("ab")] == ["a", "b"]
    assert [*counted("cd")] == ["c", "d"]
    assert told == [(0, 2), (1, 2)]


def test_blocks_are_recorded_also_where_they_fail():
    with timeline() as spans:
        with pytest.raises(KeyError), noted(PASS, "fails", changed=1):
            raise KeyError
        note(COMPILED, "later", 0.0)
    assert [(s.kind, s.name, dict(s.args)) for s in spans] == [(PASS, "fails", {"changed": 1}), (COMPILED, "later", {})]
    assert all(s.end > s.begin and s.thread for s in spans)


def test_marked_functions_are_themselves():
    def function(x):
        return x

    try:
        assert shown(COMPILED, lambda call: f"f{call['x']}")(function) is function
        kind, name = SHOWN[function.__code__]
        assert (kind, name({"x": 3})) == (COMPILED, "f3")
    finally:
        del SHOWN[function.__code__]


def test_profile_functions_rest_only_inside_a_timeline():
    before, seen = sys.getprofile(), []

    def watch(frame, event, argument):
        seen.append(frame.f_code.co_name)

    def first():
        pass

    def second():
        pass

    sys.setprofile(watch)
    try:
        with unwatched():
            first()
        with timeline(), unwatched():
            second()
        assert sys.getprofile() is watch
    finally:
        sys.setprofile(before)
    assert "first" in seen and "second" not in seen


def shown_bar(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, option: str) -> str:
    monkeypatch.setenv("GRAPHC_PROGRESS", option)
    monkeypatch.setattr(progress, "PERIOD", 0.0)
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("running", 4, "files") as bar:
        bar.tell(2, "a.png")
    return stream.getvalue()


def test_a_terminal_shows_a_line_that_goes_away(monkeypatch: pytest.MonkeyPatch):
    text = shown_bar(monkeypatch, Terminal(), "on")
    assert "running [############            ] 2/4 files a.png" in text and text.endswith("\r\x1b[K")


def test_nothing_is_shown_elsewhere_or_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch):
    assert shown_bar(monkeypatch, io.StringIO(), "on") == ""
    assert shown_bar(monkeypatch, Terminal(), "off") == ""


def test_without_a_unit_there_is_a_share():
    assert Progress("measuring", 8).line(2) == "measuring [######                  ]  25%"
    assert "100%" in Progress("measuring", 8).line(20)


@pytest.mark.parametrize(("columns", "bar"), [("40", 6), ("60", 19), ("80", 24)])
def test_the_bar_shrinks_in_narrow_terminals(monkeypatch: pytest.MonkeyPatch, columns: str, bar: int):
    monkeypatch.setenv("COLUMNS", columns)
    line = Progress("measuring", 30, "rounds").line(30, "p50 104 us now")
    assert line.count("#") == bar and line.endswith(" 30/30 rounds p50 104 us now")
