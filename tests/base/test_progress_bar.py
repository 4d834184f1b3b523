"""A line on a terminal that tells how far a command is."""

from __future__ import annotations

import io
import sys

import pytest

from graphc.base import progress_bar
from graphc.base.progress_bar import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, option: str) -> str:
    monkeypatch.setenv("GRAPHC_PROGRESS", option)
    monkeypatch.setattr(progress_bar, "PERIOD", 0.0)
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("running", 4, "files") as bar:
        bar.tell(2, "a.png")
    return stream.getvalue()


def test_a_terminal_shows_a_line_that_goes_away(monkeypatch: pytest.MonkeyPatch):
    text = shown(monkeypatch, Terminal(), "on")
    assert "running [############            ] 2/4 files a.png" in text and text.endswith("\r\x1b[K")


def test_nothing_is_shown_elsewhere_or_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch):
    assert shown(monkeypatch, io.StringIO(), "on") == ""
    assert shown(monkeypatch, Terminal(), "off") == ""


def test_without_a_unit_there_is_a_share():
    assert Progress("measuring", 8).line(2) == "measuring [######                  ]  25%"
    assert "100%" in Progress("measuring", 8).line(20)


@pytest.mark.parametrize(("columns", "bar"), [("40", 6), ("60", 19), ("80", 24)])
def test_the_bar_shrinks_in_narrow_terminals(monkeypatch: pytest.MonkeyPatch, columns: str, bar: int):
    monkeypatch.setenv("COLUMNS", columns)
    line = Progress("measuring", 30, "rounds").line(30, "p50 104 us now")
    assert line.count("#") == bar and line.endswith(" 30/30 rounds p50 104 us now")
