"""Questions and answers over TCP."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from graphc.distributed.line import KEY_BYTES, StatusServer, ask

KEY = bytes(KEY_BYTES)


@pytest.fixture
def line() -> Iterator[StatusServer]:
    found = StatusServer(lambda: {"at": "train.py:3"}, KEY, near=True)
    yield found
    found.close()


def test_who_knows_the_key_is_answered_again_and_again(line: StatusServer):
    assert [ask(line.address, KEY) for _ in range(3)] == [{"at": "train.py:3"}] * 3


def test_others_are_told_nothing(line: StatusServer):
    assert ask(line.address, bytes([1] * KEY_BYTES)) is None
    with socket.create_connection(line.address, timeout=10) as caller:
        caller.sendall(bytes(KEY_BYTES))
        caller.shutdown(socket.SHUT_WR)
        assert len(caller.recv(1024)) == 16
        assert caller.recv(1024) == b""
    assert ask(line.address, KEY) is not None


def test_who_breaks_off_keeps_nobody_from_an_answer(line: StatusServer):
    socket.create_connection(line.address, timeout=10).close()
    assert ask(line.address, KEY) is not None


def test_a_line_that_is_closed_does_not_answer(line: StatusServer):
    line.close()
    assert ask(line.address, KEY) is None


def test_a_process_that_accepts_but_says_nothing_does_not_answer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("graphc.distributed.line._ANSWER_TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert ask(silent.getsockname()[:2], KEY) is None


def test_only_this_machine_reaches_a_line_among_processes_of_one_machine(line: StatusServer):
    assert line.address[0] == "127.0.0.1"
    far = StatusServer(dict, KEY, near=False)
    try:
        assert far.address[0] == socket.gethostname()
    finally:
        far.close()
