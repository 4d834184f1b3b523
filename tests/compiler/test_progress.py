"""The line that long compiles show: on terminals only, after a while, gone at the end, off by option."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from graphc.base.progress import TerminalLine, listening
from graphc.compiler import progress
from graphc.compiler.compile import compile_stages
from graphc.compiler.stages import Stages
from tests.compiler.graphs import mlp


class Terminal(io.StringIO):
    """Notes when a line names object code."""

    def __init__(self) -> None:
        super().__init__()
        self.shown = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if "object" in text:
            self.shown.set()
        return super().write(text)


def terminal(monkeypatch: pytest.MonkeyPatch, delay: float = 0.0) -> Terminal:
    """Stands for stderr. NOTE: made in tests and not by a fixture, because pytest puts its own in between."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setattr(progress, "DELAY", delay)
    return made


def test_the_line_names_model_and_stage_and_goes(monkeypatch: pytest.MonkeyPatch):
    stderr = terminal(monkeypatch)
    with progress.shown("net") as display:
        display.stage = "object"
        assert stderr.shown.wait(30)
    assert "graphc: compiling net: object (" in stderr.getvalue()
    assert stderr.getvalue().endswith("\r\x1b[K")


def test_short_compiles_show_nothing(monkeypatch: pytest.MonkeyPatch):
    stderr = terminal(monkeypatch, delay=1000.0)
    compile_stages(Stages(mlp()))
    assert stderr.getvalue() == ""


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch):
    stderr = terminal(monkeypatch)
    monkeypatch.setenv("GRAPHC_PROGRESS", "off")
    with progress.shown("net"):
        assert not stderr.shown.wait(0.05)
    assert stderr.getvalue() == ""


def test_files_get_no_line(monkeypatch: pytest.MonkeyPatch):
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    compile_stages(Stages(mlp()))
    assert file.getvalue() == ""


def test_stages_are_told():
    stages, told = Stages(mlp()), []
    stages.watch = told.append
    assert stages.object
    assert told == ["optimized", "lowered", "scheduled", "llvm", "object"]


def test_kernels_are_counted(monkeypatch: pytest.MonkeyPatch):
    terminal(monkeypatch, delay=1000.0)
    lines = set()
    with progress.shown("net") as display:
        stages = Stages(mlp())
        stages.watch = display.tell
        count = display.count

        def tell(done: int, kernels: int) -> None:
            count(done, kernels)
            lines.add(display.line().rpartition(" (")[0])

        with listening(tell):
            assert stages.llvm
    assert lines >= {f"graphc: compiling net: {s}, kernel {n} of 2" for s in ("scheduled", "llvm") for n in (1, 2)}


def test_a_terminal_that_is_gone(monkeypatch: pytest.MonkeyPatch):
    gone = Terminal()
    monkeypatch.setattr(sys, "stderr", gone)
    line = TerminalLine()
    gone.close()
    monkeypatch.setattr(progress, "DELAY", 0.0)
    progress.CompilationProgress("net").run(line)
    assert not line.is_visible
