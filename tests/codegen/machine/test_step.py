"""Conditions have an opposite each, and are that of it."""

from __future__ import annotations

from graphc.codegen.machine.step import OPPOSITE


def test_the_opposite_of_the_opposite_is_the_condition():
    assert all(OPPOSITE[OPPOSITE[c]] == c != OPPOSITE[c] for c in OPPOSITE)
