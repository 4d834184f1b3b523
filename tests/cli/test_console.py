"""Output of commands on the console."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphc.cli import console
from graphc.files.manifest import TensorSpec


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_data_go_to_stdout_and_talk_to_stderr(capsys: pytest.CaptureFixture[str]):
    console.emit("data")
    console.emit("more\n")
    console.emit_json({"a": [1]})
    console.say("talk")
    console.complain("bad")
    out, err = capsys.readouterr()
    assert out.startswith("data\nmore\n") and json.loads(out[10:]) == {"a": [1]}
    assert err == "talk\nerror: bad\n"


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert console.paint("x", "31", Terminal()) == "\x1b[31mx\x1b[0m"
    assert console.paint("x", "31", io.StringIO()) == "x"
    monkeypatch.setenv("TERM", "dumb")
    assert console.paint("x", "31", Terminal()) == "x"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert console.paint("x", "31", Terminal()) == "x"


def test_tables_align():
    assert console.table([["a", "1.5", "x"], ["long", "10.25", ""]]) == "a       1.5  x\nlong  10.25"
    assert console.table([]) == ""


HEAD = ["call", "kernel", "time", "share", "GFLOP/s", "of copy", "from", "schedule"]
ROWS = [[str(i), f"k{i}", "40.6 us", "47.1%", "155.97", "65.2%", f"layers.{i}.attention.out", "8 lanes, 4 rows"]
        for i in range(6)]  # fmt: skip
USED = ("kernel", "time", "from", "share")


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_tables_fit_the_terminal_and_keep_what_is_used_most(width: int):
    lines = console.table([HEAD, *ROWS], USED, width).splitlines()
    assert max(map(len, lines)) <= width
    shown = [name for name in HEAD if name in lines[0]]
    assert {"kernel", "time"} <= {*shown} and ("from" in shown) == (width >= 40) and "schedule" not in shown
    note = " ".join(" ".join(lines[7:]).split())
    assert note == f"not shown for lack of width: {', '.join(n for n in HEAD if n not in shown)}"


def test_tables_of_few_rows_are_turned():
    text = console.table([HEAD, ROWS[0]], USED, 60)
    assert [line.split()[0] for line in text.splitlines()] == [name.split()[0] for name in HEAD]
    assert "layers.0.attention.out" in text and max(map(len, text.splitlines())) <= 60


def test_tables_without_headings_are_cut_on_the_right():
    text = console.table([["a" * 30, "b" * 30, "c" * 30], ["short", "1", "2"]], width=40)
    assert text.splitlines()[0] == "aaaaaaaaaaaa…  bbbbbbbbbbbb…"
    assert text.splitlines()[1].split() == ["short", "1"]


def test_only_terminals_have_a_width(monkeypatch: pytest.MonkeyPatch):
    table = [HEAD, *ROWS]
    monkeypatch.setattr("sys.stdout", io.StringIO())
    monkeypatch.setenv("COLUMNS", "60")
    assert console.columns() is None and "8 lanes, 4 rows" in console.table(table, USED)
    assert console.wrap("x " * 100) == "x " * 100
    monkeypatch.setattr("sys.stdout", Terminal())
    for width in (60, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        assert console.columns() == width
        text = [*console.table(table, USED).splitlines(), *console.wrap("word " * 100 + "\nend").splitlines()]
        assert max(map(len, text)) <= width and text[-1] == "end"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5 << 40, "5120.0 GiB")]
)
def test_sizes(count: int, text: str):
    assert console.bytes_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (1.5e-6, "1.5 us"), (2e-9, "2 ns"), (2e-10, "0.2 ns")]
)
def test_times(seconds: float, text: str):
    assert console.seconds_text(seconds) == text


def test_types():
    spec = TensorSpec("x", "f32", (1, 28))
    assert console.type_text(spec) == "f32[1,28]"
    assert console.spec_json(spec) == {"name": "x", "dtype": "f32", "shape": [1, 28]}


def printed(columns: int, *command: object) -> list[str]:
    """Return the lines that a command prints on a pseudo-terminal of so many columns."""
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns)}
    program = [sys.executable, "-m", "graphc", *map(str, command)]
    with subprocess.Popen(program, stdout=theirs, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(theirs)
        chunks: list[bytes] = []
        # The end of a terminal is an error of its reader on Linux.
        with contextlib.suppress(OSError), open(ours, "rb", buffering=0) as stream:
            while chunk := stream.read(4096):
                chunks.append(chunk)
    assert process.returncode == 0
    return b"".join(chunks).decode().splitlines()


@pytest.mark.parametrize(
    ("columns", "command"),
    [
        (60, ["profile", "NET", "--rounds", "3", "--seconds", "0.01"]),
        (80, ["profile", "NET", "--rounds", "3", "--seconds", "0.01"]),
        (60, ["bench", "NET", "--rounds", "2", "--seconds", "0.01"]),
        (60, ["summary", "MODELS:Net", "--input", "x:f32[2,6]"]),
    ],
)
def test_commands_fit_terminals(net: Path, models: Path, columns: int, command: list[str]):
    places = {"NET": str(net), "MODELS:Net": f"{models}:Net"}
    lines = printed(columns, *(places.get(word, word) for word in command))
    assert 30 < max(map(len, lines)) <= columns
