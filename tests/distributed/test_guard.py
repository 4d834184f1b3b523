"""Processes of which one fails end together, within seconds, with a message that says why."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator

import pytest

from graphc.distributed.guard import KEY_BYTES, Interrupts, StatusServer, ask
from tests.distributed.processes import launch, needs_mpi

pytestmark = needs_mpi
LONG = 600.0


def fail(kind: str, ranks: int = 2, timeout: float = LONG, **env: str) -> subprocess.CompletedProcess[str]:
    return launch("tests.distributed.failing", ranks, kind, timeout, timeout=60.0, env=env)


@pytest.mark.parametrize("kind", ["raises", "raises_in_a_thread"])
def test_an_error_in_one_ends_all(kind: str):
    process = fail(kind)
    assert process.returncode != 0
    assert "rank 1: " in process.stderr
    assert "ValueError: a batch that is none" in process.stderr
    assert "rank 1 failed with ValueError" in process.stderr
    assert " has [" not in process.stdout


def test_a_script_that_ends_before_the_others_come_to_an_end_ends_all():
    process = fail("ends_early")
    assert process.returncode != 0
    assert "the script of rank 1 ended after collective 1; rank 0 waits in collective 2, all_reduce" in process.stderr


def test_scripts_that_end_together_end_as_they_say():
    assert fail("ends_with_the_others").returncode == 3


def test_a_wait_in_vain_ends_all_and_says_what_the_others_do():
    process = fail("stays_away", ranks=3, timeout=1.0)
    assert process.returncode != 0
    first = "rank 0: collective 2, all_reduce of f32[4] (sum), has waited for" in process.stderr
    other = (
        "rank 2 is in another collective, barrier"
        if first
        else "rank 0 is in another collective, all_reduce of f32[4] (sum)"
    )
    assert first or "rank 2: collective 2, barrier, has waited for" in process.stderr  # whose second is over before
    assert (
        "rank 1 is in no collective (its last one was 1, gather_objects), but at tests/distributed/failing.py:"
        in process.stderr
    )
    assert f"{other}, number 2, at tests/distributed/failing.py:" in process.stderr
    assert "from   tests/distributed/failing.py:" in process.stderr


def test_what_is_not_the_same_is_named_before_it_is_begun():
    process = fail("calls_another", GRAPHC_DISTRIBUTED_CHECK="1")
    assert process.returncode != 0
    assert "collective 2 is not the same on all ranks: all_reduce of f32[4] (sum) on rank 0" in process.stderr
    assert "all_gather of f32[3] on rank 1" in process.stderr


def test_processes_that_are_forked_are_none_of_the_group():
    process = fail("has_children")
    assert process.returncode == 0, process.stderr
    assert "this process was forked from rank 0 of 2" in process.stderr
    assert sorted(process.stdout.splitlines()) == ["rank 0 has [2.0, 2.0]", "rank 1 has [2.0, 2.0]"]


def test_a_process_that_never_comes_is_not_waited_for():
    process = fail("raises_before", timeout=2.0)
    assert process.returncode != 0
    assert "ValueError: no such file" in process.stderr
    assert "Timeout (0:00:02)!" in process.stderr
    assert "in _wait_until_all_processes_call_init" in process.stderr


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = signal.set_wakeup_fd(-1)
    yield
    signal.set_wakeup_fd(before)


def test_ctrl_c_is_noted_once():
    notes = Interrupts()
    assert not notes.was_pressed()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert notes.was_pressed() and not notes.was_pressed()
    notes.close()
    assert not notes.was_pressed()
    assert signal.set_wakeup_fd(-1) == -1


def test_who_is_told_of_signals_already_goes_on_being_told():
    mine, other = socket.socketpair()
    with mine, other:
        mine.setblocking(False)
        signal.set_wakeup_fd(mine.fileno())
        notes = Interrupts()
        assert not notes.was_pressed()
        notes.close()
        assert signal.set_wakeup_fd(-1) == mine.fileno()


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
    monkeypatch.setattr("graphc.distributed.guard._ANSWER_TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert ask(silent.getsockname()[:2], KEY) is None


def test_only_this_machine_reaches_a_line_among_processes_of_one_machine(line: StatusServer):
    assert line.address[0] == "127.0.0.1"
    far = StatusServer(dict, KEY, near=False)
    try:
        assert far.address[0] == socket.gethostname()
    finally:
        far.close()
