"""Lines on terminals, and counts of loops."""

from __future__ import annotations

import io
import sys

import pytest

from graphc.base.progress import WIDTH, TerminalLine, counted, listening


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


def test_long_lines_are_cut(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    TerminalLine().write("x" * 200)
    assert sys.stderr.getvalue().count("x") == WIDTH  # type: ignore[attr-defined]


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
