"""Ctrl-C is noted at once, and by nobody else's leave."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator

import pytest

from graphc.distributed.interrupts import Interrupts


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
