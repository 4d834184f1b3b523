"""The state of autocast: off until it is asked for, and off inside of what suspends it."""

from __future__ import annotations

import threading

from graphc.base.autocast_state import autocast_dtype, is_autocast_enabled, suspended
from graphc.base.dtypes import bfloat16
from graphc.tape.autocast import autocast


def test_it_is_off_until_it_is_asked_for():
    assert autocast_dtype() is None and not is_autocast_enabled()
    with suspended():
        assert autocast_dtype() is None


def test_it_can_be_suspended():
    with autocast():
        with suspended():
            assert autocast_dtype() is None
        assert autocast_dtype() is bfloat16 and is_autocast_enabled()


def test_other_threads_have_their_own():
    found = []
    with autocast():
        thread = threading.Thread(target=lambda: found.append(autocast_dtype()))
        thread.start()
        thread.join()
    assert found == [None]
