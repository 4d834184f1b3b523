"""Ctrl-C in a block: the first is a request, the second interrupts."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from graphc.training.interrupt import stop_on_interrupt


def test_the_first_is_a_request_and_the_second_interrupts():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), stop_on_interrupt() as is_requested:
        assert not is_requested()
        os.kill(os.getpid(), signal.SIGINT)
        assert is_requested()
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_get_no_signals():
    seen: list[bool] = []

    def run() -> None:
        with stop_on_interrupt() as is_requested:
            seen.append(is_requested())

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [False] and signal.getsignal(signal.SIGINT) is before
