"""Switches that say what is recorded."""

from __future__ import annotations

import threading

import pytest

import graphc
from graphc.errors import GradientError
from graphc.tape import grad_mode


def recorded() -> bool:
    return (graphc.ones(1, requires_grad=True) * 2).requires_grad


def test_nesting():
    assert recorded()
    with graphc.no_grad():
        assert not recorded()
        with graphc.enable_grad():
            assert recorded()
        assert not recorded()
    assert recorded()


def test_leaves_keep_their_flag():
    with graphc.no_grad():
        assert graphc.ones(1, requires_grad=True).requires_grad


@pytest.mark.parametrize("decorate", [graphc.no_grad(), graphc.no_grad])
def test_decorators(decorate):
    @decorate
    def function():
        """Doc."""
        return recorded()

    assert function() is False
    assert function.__doc__ == "Doc."
    assert recorded()


def test_generators_are_in_the_mode_only_while_they_run():
    @graphc.no_grad()
    def generate():
        got = yield recorded()
        try:
            yield got, recorded()
        except KeyError:
            yield recorded()
        return "end"

    generator = generate()
    assert next(generator) is False
    assert recorded()
    assert generator.send(5) == (5, False)
    assert generator.throw(KeyError()) is False
    with pytest.raises(StopIteration, match="end"):
        next(generator)


def test_set_grad_enabled_acts_at_once():
    mode = graphc.set_grad_enabled(False)
    assert not graphc.is_grad_enabled()
    with mode:
        assert not recorded()
    assert recorded()

    @graphc.set_grad_enabled(False)
    def function():
        return recorded()

    assert recorded() and not function()


def test_exceptions_restore_the_mode():
    with pytest.raises(ValueError), graphc.no_grad():
        raise ValueError
    assert graphc.is_grad_enabled()


def test_modes_belong_to_a_thread():
    seen = []
    with graphc.no_grad():
        thread = threading.Thread(target=lambda: seen.append(recorded()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_inference_mode():
    w = graphc.ones(1, requires_grad=True)
    with graphc.inference_mode():
        assert grad_mode.is_inference_mode_enabled() and not graphc.is_grad_enabled()
        y = w * 2
        y.add_(1)
        with graphc.inference_mode(False):
            assert recorded()
    assert y.is_inference() and not y.requires_grad
    with pytest.raises(GradientError, match="no version counter"):
        _ = y._version
    with pytest.raises(GradientError, match="cannot be written to outside"):
        y.add_(1)
    with pytest.raises(GradientError, match="cannot be saved"):
        w * y
    assert (w * y.clone()).requires_grad

    @graphc.inference_mode
    def function():
        return recorded()

    assert not function()
