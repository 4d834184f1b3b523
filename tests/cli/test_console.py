"""Output of commands on the console."""

from __future__ import annotations

import io
import json

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
