"""Piecewise linear functions of one atom: the normal form of minima, maxima and quotients of a size and numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from graphc.base.records import NamedTuple
from graphc.base.sizes.size_terms import Atom, Positive, Terms, terms_of


class Pieces(NamedTuple):
    """A function of integers: ``constant + slope * x + sum(change * max(x - point, 0))``."""

    atom: Atom
    """The variable x, no Positive."""
    constant: int
    slope: int
    turns: tuple[tuple[int, int], ...] = ()
    """Points with the change of the slope behind each, in ascending order."""

    def at(self, x: int) -> int:
        """Return the value at a point."""
        return self.constant + self.slope * x + sum([change * max(x - point, 0) for point, change in self.turns])

    def ends(self, low: int, high: int) -> list[int]:
        """Return all points of a range where the slope changes, and its ends: extremes are among their values."""
        return [low, *[point for point, _ in self.turns if low < point < high], high]

    def segments(self, low: int, high: int) -> list[tuple[int, int, int]]:
        """Return both ends and the slope of each line within a range, in order."""
        return [(a, b, self.at(a + 1) - self.at(a)) for a, b in itertools.pairwise(self.ends(low, high))]

    def positive(self, low: int, high: int) -> Pieces:
        """Return ``max(self, 0)`` for a range of the atom."""
        points = {*self.ends(low, high)}
        for start, _, slope in self.segments(low, high):
            if slope:
                points |= self._around(start, slope, 0)
        return self._through(points, lambda x: max(self.at(x), 0), low, high)

    def floor_quotient(self, divisor: int, low: int, high: int) -> Pieces | None:
        """Return ``self // divisor`` for a range of the atom; None if that has more than one step between two turns."""
        points = {*self.ends(low, high)}
        for start, end, slope in self.segments(low, high):
            first, last = self.at(start) // divisor, self.at(end) // divisor
            if slope % divisor == 0 or first == last or end == start + 1:
                continue
            if abs(last - first) > 1:
                return None
            points |= self._around(start, slope, max(first, last) * divisor - (slope > 0))
        return self._through(points, lambda x: self.at(x) // divisor, low, high)

    def _around(self, start: int, slope: int, level: int) -> set[int]:
        """Return the two integers between which the line from a point passes a level."""
        last = start + (level - self.at(start)) // slope
        return {last, last + 1}

    def _through(self, points: set[int], value: Callable[[int], int], low: int, high: int) -> Pieces:
        """Return the function that has these values at the points of a range, linear between them."""
        ordered = sorted([p for p in points if low <= p <= high])
        steps = [value(p + 1) - value(p) for p in ordered[:-1]]
        turns = [(p, after - before) for p, before, after in zip(ordered[1:], steps, steps[1:], strict=False)]
        return Pieces(self.atom, value(low) - steps[0] * low, steps[0], tuple([t for t in turns if t[1]]))


def pieces_of(summed: Terms) -> Pieces | None:
    """Return a sum as a piecewise linear function of its only atom; None if it is no such function."""
    atom: Any = None
    constant = slope = 0
    turns: list[tuple[int, int]] = []
    for monomial, coefficient in summed:
        if not monomial:
            constant = coefficient
            continue
        ((factor, power), *others) = monomial
        turn = _turn(factor)
        variable = factor if turn is None else turn[0]
        if others or power != 1 or isinstance(variable, Positive) or (atom is not None and variable is not atom):
            return None
        atom = variable
        if turn is None:
            slope += coefficient
        else:
            turns.append((turn[1], coefficient))
    return None if atom is None else Pieces(atom, constant, slope, tuple(sorted(turns)))


def _turn(atom: Atom) -> tuple[Atom, int] | None:
    """Return (x, point) for the atom ``max(x - point, 0)``, else None."""
    if not isinstance(atom, Positive):
        return None
    ((monomial, coefficient), *rest) = terms_of(atom.operand)
    if coefficient != 1 or len(monomial) != 1 or monomial[0][1] != 1 or any(m for m, _ in rest):
        return None
    return monomial[0][0], -sum(c for _, c in rest)
