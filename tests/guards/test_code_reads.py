"""Functions that run and the variables that their code names."""

from __future__ import annotations

import cProfile
import gc
import json
import sys
import weakref
from types import FrameType
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.guards import code_reads
from graphc.guards.code_reads import codes_within, functions_of, is_library, unwatched, variables_of, watching

VALUE = 1


def outer(factor: float) -> Any:
    def inner(x: Any) -> Any:
        return np.linalg.norm(x) * factor * VALUE + len(x)

    return inner


def test_the_variables_of_code():
    results = {(v.name, v.is_global, v.attributes) for v in variables_of(outer(1.0).__code__)}
    assert results == {
        ("np", True, ("linalg", "norm")),
        ("factor", False, ()),
        ("VALUE", True, ()),
        ("len", True, ()),
    }
    assert all(v.line > 20 for v in variables_of(outer(1.0).__code__))


def test_assigned_variables_count_and_local_ones_do_not():
    def function() -> Any:
        global VALUE
        VALUE = 1
        local = 2
        return lambda: local

    assert {(v.name, v.is_global) for v in variables_of(function.__code__)} == {("VALUE", True)}
    assert [c.co_name for c in codes_within(function.__code__)] == ["<lambda>"]


def test_libraries_are_known():
    assert is_library(graphc.__file__) and is_library(np.__file__) and is_library(json.__file__)
    assert not is_library(__file__) and not is_library(pytest.__file__) and not is_library("<stdin>")


@pytest.mark.parametrize("known", [True, False])
def test_the_functions_of_each_frame(known: bool, monkeypatch: pytest.MonkeyPatch):
    if not known:
        monkeypatch.setattr(code_reads, "_function_offsets", lambda: None)
    first, second = outer(1.0), outer(2.0)
    seen: list[Any] = []

    def see(frame: FrameType) -> None:
        seen.append(functions_of(frame))

    with watching(see):
        first([1.0])
        second([1.0])
        json.dumps([1])
    assert first in seen[0] and second in seen[1] and first not in seen[1] and len(seen) == 2
    assert not known or [len(result) for result in seen] == [1, 1]
    first([1.0])
    assert len(seen) == 2


def test_a_profiler_goes_on():
    seen: list[str] = []

    def profile(frame: FrameType, kind: str, argument: Any) -> None:
        if kind == "call":
            seen.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        with watching(lambda frame: None):
            outer(1.0)
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(before)
    assert "outer" in seen


def test_a_profiler_of_the_interpreter_is_resumed():
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        with watching(lambda frame: None):
            pass
        outer(1.0)
    finally:
        profiler.disable()
    assert any("outer" in str(entry.code) for entry in profiler.getstats())


def test_code_that_asks_whether_two_objects_are_one_is_told_from_code_that_asks_for_none():
    for function in (lambda x, y: x is y, lambda x, y: 1 if x is not y else 2, lambda x, y: id(x) == id(y)):
        assert code_reads.compares_identity(function.__code__)
    for function in (lambda x, y: x is None, lambda x, y: x == y, lambda x, y: 1 if y is not None else x is True):
        assert not code_reads.compares_identity(function.__code__)


def test_the_attributes_that_code_assigns():
    def function(x: Any) -> None:
        x.first.second = x.third
        x.fourth += 1
        x.items[0] = 2

    def other(x: Any) -> None:
        setattr(x, x.name, 1)

    assert set(code_reads.stores_of(function.__code__)) == {"second", "fourth"}
    assert all("test_code_reads.py:" in line for line in code_reads.stores_of(function.__code__).values())
    assert set(code_reads.stores_of(other.__code__)) == {""}
    assert code_reads.stores_of(outer(1.0).__code__) == {}


def test_what_runs_while_garbage_is_collected_is_none_of_the_traced_code(collected: str):
    """Libraries keep tables with weak keys, whose callbacks run whenever the collector happens to."""
    table = Table()

    class Held:
        def __init__(self) -> None:
            self.itself = self
            if collected == "callback":
                table.keep(self)

        def __del__(self) -> None:
            if collected == "finalizer":
                table.drop(self)

    def step(x: Any) -> Any:
        gc.collect()
        return x * 2

    gc.disable()
    try:
        Held()  # Refers to itself, so it is there until it is collected.
        assert np.asarray(graphc.compile(step)(graphc.ones(3))).tolist() == [2, 2, 2]
    finally:
        gc.enable()
    assert table.dropped == 1


@pytest.fixture(params=["callback", "finalizer"])
def collected(request: pytest.FixtureRequest) -> str:
    return request.param


class Table:
    """A table that notes when something has gone."""

    def __init__(self) -> None:
        self.references: list[Any] = []
        self.dropped = 0

    def keep(self, what: Any) -> None:
        self.references = [weakref.ref(what, lambda gone: self.drop(gone))]

    def drop(self, what: Any) -> None:
        self.dropped += 1


def test_calls_of_the_library_are_not_watched():
    names: list[str] = []

    def within() -> None:
        names.append("ran")

    def around() -> int:
        unwatched(within)
        return 1

    seen: list[str] = []
    with watching(lambda frame: seen.append(frame.f_code.co_name)):
        assert unwatched(around) == 1
        assert around() == 1
    assert seen == ["around"] and names == ["ran"] * 2


def test_an_error_of_an_unwatched_call_does_not_end_watching():
    def refuse() -> None:
        raise ValueError("refused")

    seen: list[str] = []
    with watching(lambda frame: seen.append(frame.f_code.co_name)):
        with pytest.raises(ValueError, match="refused"):
            unwatched(refuse)
        outer(1.0)
    assert "outer" in seen and "refuse" not in seen


def test_profilers_of_others_see_unwatched_calls():
    seen: list[str] = []

    def profiler(frame: FrameType, kind: str, argument: object) -> None:
        if kind == "call":
            seen.append(frame.f_code.co_name)

    def called() -> None:
        pass

    sys.setprofile(profiler)
    try:
        with watching(lambda frame: None):
            unwatched(called)
    finally:
        sys.setprofile(None)
    assert "called" in seen
