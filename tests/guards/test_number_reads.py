"""Symbols for numbers in attributes, and detection of their changes."""

from __future__ import annotations

from typing import Any

import pytest

from graphc.base.sizes.symbolic import is_symbolic, plain
from graphc.guards.attributes import recording
from graphc.guards.number_reads import ReadPlace, TraceNumbers, changed_numbers


class Settings:
    a: Any
    b: Any
    c: Any
    d: Any
    e: Any

    def __init__(self, **values: Any):
        vars(self).update(values)

    @property
    def both(self) -> Any:
        return self.a, self.b

    @both.setter
    def both(self, value: Any) -> None:
        raise AssertionError(value)


SETTINGS = Settings(a=0.5, b=2)


def place(settings: Settings, name: str) -> ReadPlace:
    return ReadPlace(id(settings), name, f"attribute {name!r} of Settings")


def test_an_open_attribute_is_one_symbol_and_others_are_numbers():
    numbers = TraceNumbers(opened={place(SETTINGS, "a")})

    def function() -> Any:
        return SETTINGS.a, SETTINGS.a, SETTINGS.b, SETTINGS.both

    with recording(True, numbers) as reads:
        first, second, b, (third, _) = function()
    assert is_symbolic(first) and first is second is third and plain(first) == 0.5
    assert b == 2 and not is_symbolic(b)
    assert [read.place for read in numbers.reads.values()] == [place(SETTINGS, "a")]
    assert numbers.record.given == [0.5]
    assert reads.settle() == [] and reads.pinned_reads == {} and SETTINGS.a == 0.5


def test_what_a_property_gives_is_no_number_of_the_dictionary():
    settings = Settings(both=1.5, a=2.5, b=3.5)
    numbers = TraceNumbers(opened={place(settings, "both")})

    def function() -> Any:
        return settings.both

    with recording(True, numbers):
        assert function() == (2.5, 3.5)
    assert not numbers.reads


@pytest.mark.parametrize("value", [True, "1", None, [1.0]])
def test_only_ints_and_floats_get_symbols(value: Any):
    settings = Settings(a=value)
    numbers = TraceNumbers(opened={place(settings, "a")})

    def function() -> Any:
        return settings.a

    with recording(True, numbers):
        assert function() is value
    assert not numbers.reads


def test_an_attribute_that_code_assigns_is_needed_with_the_line():
    settings = Settings(a=1.0)
    numbers = TraceNumbers(opened={place(settings, "a")})

    def function() -> Any:
        settings.a = 1.0
        return settings.a

    with recording(True, numbers) as reads:
        function()
    assert reads.settle() == []
    assert list(reads.pinned_reads) == [place(settings, "a")]
    assert "test_number_reads.py:" in reads.pinned_reads[place(settings, "a")]


def test_numbers_have_changed_where_they_are_others_of_the_same_type():
    settings = Settings(a=1.0, b=2.0, c=3, d="text", e=4.0)

    def function() -> Any:
        return settings.a, settings.b, settings.c, settings.d, settings.e

    with recording(True) as reads:
        function()
    vars(settings).update(a=1.5, c=3.0, d="other", e=-0.0)
    assert set(changed_numbers(reads.facts)) == {place(settings, "a"), place(settings, "e")}
    del settings.e
    assert set(changed_numbers(reads.facts)) == {place(settings, "a")}
