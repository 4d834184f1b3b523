"""Piecewise linear functions of one atom: the normal form of minima and maxima of a size and numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

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

    def slopes(self, low: int, high: int) -> list[int]:
        """Return the slopes within a range, in order."""
        points = self.ends(low, high)
        return [self.at(point + 1) - self.at(point) for point in points[:-1]]

    def positive(self, low: int, high: int) -> Pieces:
        """Return ``max(self, 0)`` for a range of the atom."""
        points = set(self.ends(low, high))
        for start, slope in zip(self.ends(low, high), self.slopes(low, high), strict=False):
            if slope:  # between these two integers the line crosses zero
                zero = start + -self.at(start) // slope
                points |= {p for p in (zero, zero + 1) if low < p < high}
        ordered = sorted(points)
        values = [max(self.at(p), 0) for p in ordered]
        steps = [max(self.at(p + 1), 0) - value for p, value in zip(ordered[:-1], values, strict=False)]
        turns = [(p, after - before) for p, before, after in zip(ordered[1:], steps, steps[1:], strict=False)]
        return Pieces(self.atom, values[0] - steps[0] * low, steps[0], tuple([t for t in turns if t[1]]))


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
