"""The outermost call of a block: which one is taken, with which arguments."""

from __future__ import annotations

import functools
import sys

import pytest

import graphc as gc
from graphc.monitor.outermost_call import OutermostCall


def taken(block, is_step=lambda call_begun: True):
    """Return name, arguments, keyword arguments and result of a function's calls."""
    events = []

    def begins(call_begun):
        if is_step(call_begun):
            events.append(call_begun)
            return True
        return False

    def watched():
        call = OutermostCall(sys._getframe(1), begins, events.append)
        call.start()
        return call

    block(watched)
    return events


def step(x, y=2, *more, flag=False, **names):
    return inner(x)


def inner(x):
    return x


def test_arguments_of_every_kind_and_the_result():
    def block(watch):
        call = watch()
        step(1, 3, 4, 5, flag=True, other=6)
        call.stop()

    call_begun, result = taken(block)
    assert (call_begun.name, call_begun.args, call_begun.kwargs) == ("step", (1, 3, 4, 5), {"flag": True, "other": 6})
    assert result == 1 and ("inner", inner) in call_begun.refers and sys.getprofile() is None


def test_only_calls_of_the_block_itself_and_no_generators():
    def values():
        yield 5

    def block(watch):
        call = watch()
        values_seen = [v for v in values()]
        gc.ones(2).exp()
        functools.reduce(lambda a, b: a, values_seen)
        step(values_seen[0])
        call.stop()

    call_begun, result = taken(block)
    assert call_begun.name == "step" and result == 5


def test_calls_that_are_no_steps_are_passed_over_and_objects_are_named():
    net = gc.nn.Linear(2, 1)

    def block(watch):
        call = watch()
        inner(0)
        net(gc.ones(1, 2))
        call.stop()

    call_begun, result = taken(block, lambda call_begun: call_begun.name != "inner")
    assert call_begun.name == "net" and call_begun.refers == [("net", net)] and result.shape == (1, 1)


def test_what_profiled_before_goes_on():
    def profile(frame, event, argument):
        return None

    def block(watch):
        sys.setprofile(profile)
        try:
            call = watch()
            with pytest.raises(ZeroDivisionError):
                divide(0)
            assert sys.getprofile() is profile
            call.stop()
            assert sys.getprofile() is profile
        finally:
            sys.setprofile(None)

    call_begun, result = taken(block, lambda call_begun: call_begun.name == "divide")
    assert call_begun.name == "divide" and result is None


def divide(x):
    return 1 / x
