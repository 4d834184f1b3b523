"""Ctrl-C at the keyboard: ``graphc generate`` ends, ``graphc chat`` ends the answer only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphc.cli import console
from tests.cli.terminal import CTRL_C, CTRL_D, Terminal
from tools import gguf_files

pytest.importorskip("tokenizers", reason="tokenizers is not installed")
pytest.importorskip("jinja2", reason="jinja2 is not installed")

Start = Callable[..., Terminal]
LONG = 4_000
"""Tokens of an answer that no test waits for."""
PREFIX = 100
"""Characters of an answer before its interrupt."""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(gguf_files.SMALL, "context", 2 * LONG)
    return gguf_files.write_random_decoder(tmp_path / "model.gguf")


@pytest.fixture
def start() -> Iterator[Start]:
    """Start commands, and end them after the test."""
    started: list[Terminal] = []

    def make(*words: Any) -> Terminal:
        started.append(Terminal(*words))
        return started[-1]

    yield make
    for command in started:
        command.close()


def test_generate_ends(model: Path, start: Start):
    command = start("generate", model, "hello", "--tokens", LONG)
    command.wait(lambda text: len(text) > PREFIX)
    command.type(CTRL_C)
    assert command.code() == console.INTERRUPTED
    assert command.text.endswith("^C\ninterrupted\n") and "Traceback" not in command.text


def test_chat_ends_the_answer_only(model: Path, start: Start):
    command = start("chat", model, "--tokens", LONG, "--places", 2 * LONG)
    answers = []
    for line in ("hello\n", "more\n", "/reset\nhello\n"):
        command.wait(lambda text: text.endswith("> "))
        before = len(command.text) + len(line.replace("/reset\n", "/reset\n> "))
        command.type(line)
        command.wait(lambda text, end=before + PREFIX: len(text) > end)
        command.type(CTRL_C)
        command.wait(lambda text: text.endswith("^C\n> "))
        answers.append(command.text[before : before + PREFIX])
    assert answers[0] == answers[2] != answers[1]  # the interrupted answers left the caches as they should be
    command.type(CTRL_D)
    assert command.code() == console.OK and "Traceback" not in command.text


def test_chat_ends_at_its_prompt(model: Path, start: Start):
    command = start("chat", model)
    command.wait(lambda text: text.endswith("> "))
    command.type(CTRL_C)
    assert command.code() == console.INTERRUPTED
    assert command.text.endswith("> ^Cinterrupted\n") and "Traceback" not in command.text
