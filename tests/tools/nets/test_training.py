"""Training programs: a sample agrees, and wrong results are noticed."""

from __future__ import annotations

import itertools

import pytest

import graphc as gc
from tools.nets import training
from tools.nets.run import BAD, DIFFERENT, FAILED, REFUSED
from tools.nets.training_events import EVENTS
from tools.nets.training_models import PARTS


@pytest.mark.sampled(40)
@pytest.mark.parametrize("case", list(itertools.islice(training.cases(7), 10)))
def test_programs(case):
    outcome = training.judge(case)
    assert outcome.kind not in BAD, outcome.detail


def test_programs_hold_all_parts_and_optimizers():
    kinds, optimizers = set(), set()
    for number in range(150):
        scene = training.Scene(number, "eager")
        kinds |= {*scene.model.kinds}
        optimizers |= {type(o).__name__ for o in scene.optimizers}
    assert kinds == {*PARTS}
    assert len(optimizers) >= 10


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_an_event_changes_a_training_that_goes_on(name):
    scene = training.Scene(4, "eager")
    x, y = gc.rand(3, 6, dtype=gc.float64), gc.rand(3, 6, dtype=gc.float64)
    for number in range(3):
        scene.step(x, y, True, True)
        EVENTS[name](scene, training.random.Random(number))
    assert scene.step(x, y, True, True)[0].isfinite()


def test_a_wrong_number_is_seen(monkeypatch):
    step = training.Scene._compile

    def wrong(scene):
        step(scene)
        if scene.way != "eager":
            scene.extra = gc.nn.Parameter(scene.extra.detach() + 1e-6)

    monkeypatch.setattr(training.Scene, "_compile", wrong)
    assert training.judge("model:7000001").kind == DIFFERENT


def test_an_untyped_error_is_seen(monkeypatch):
    monkeypatch.setattr(training.Scene, "_compile", lambda scene: 1 // (scene.way == "eager"))
    assert training.judge("model:7000001").kind == FAILED


def test_an_error_only_in_compiled_code_is_a_refusal(monkeypatch):
    class Refused(gc.errors.TraceError):
        pass

    def refuse(*_):
        raise Refused("no")

    def compile_(scene):
        if scene.way != "eager":
            scene.step = refuse

    monkeypatch.setattr(training.Scene, "_compile", compile_)
    assert training.judge("model:7000001").kind == REFUSED
