"""Sizes of calls solved by native code: steps that read shapes, check ranges, and compute with dimensions."""

from __future__ import annotations

import ctypes
from typing import Any

from graphc.base.sizes.assumptions import Assumption
from graphc.base.sizes.shape_patterns import ShapePatterns
from graphc.base.sizes.size import Size
from graphc.base.sizes.size_terms import Atom, Dimension, Monomial, Positive

ADD, MULTIPLY, DIVIDE, LARGER, AT_MOST, DIFFER = range(6)
"""Kinds of steps: a + b, a * b, floor(a / b), max(a, b), and two checks that leave the call to Python unless
a <= b, or a != b. Numbers that do not fit a word also leave the call to Python."""
_POINTER, _INT = ctypes.c_void_p, ctypes.c_int64
_WORD = 8


class Read(ctypes.Structure):
    """Load of one extent of an input. A negative ``dim`` loads the input itself, an integer."""

    _fields_ = (("input", _INT), ("dim", _INT), ("to", _POINTER))


class SizeStep(ctypes.Structure):
    """An operation on two words."""

    _fields_ = (("kind", _INT), ("a", _POINTER), ("b", _POINTER), ("to", _POINTER))


class Move(ctypes.Structure):
    """A copy of a word, made after the last check."""

    _fields_ = (("value", _POINTER), ("to", _POINTER))


class Solver(ctypes.Structure):
    """Arrays of steps that native code runs to fit a context to the sizes of a call."""

    _fields_ = (
        *(("reads", _POINTER), ("read_count", _INT), ("steps", _POINTER), ("step_count", _INT)),
        *(("moves", _POINTER), ("move_count", _INT)),
        *(("arena", _POINTER), ("arena_word", _POINTER), ("own", _POINTER), ("own_size", _INT)),
    )

    owned: tuple[Any, ...]


class SizeSteps:
    """Collects steps. Each value is an index into the words."""

    def __init__(self) -> None:
        self._values: list[int] = []
        """Contents of the words before the first call."""
        self._words: dict[Any, int] = {}
        """Index of the word by the value that it holds."""
        self._dimensions: dict[Dimension, int] = {}
        self._reads: list[tuple[int, int, int]] = []
        self._steps: list[tuple[int, int, int, int]] = []
        self._moves: list[tuple[int, int]] = []

    def solve(self, patterns: ShapePatterns, refuse_common: bool) -> None:
        """Read all dimensions, and leave sizes outside of their ranges to Python. With ``refuse_common``, leave their
        common sizes to Python too."""
        for entry, dimension, factor, rest in patterns.steps:
            extent = self._word(0)
            self._reads.append((entry.tensor, -1 if entry.tensor in patterns.numbers else entry.dim, extent))
            dimension_word = (
                extent if type(rest) is int and not rest else self._operation(ADD, extent, self.value(-rest))
            )
            # An extent that is not a multiple of the factor fails later: the shapes computed from this quotient differ.
            dimension_word = (
                dimension_word if factor == 1 else self._operation(DIVIDE, dimension_word, self.value(factor))
            )
            self._check(AT_MOST, self.value(dimension.low), dimension_word)
            self._check(AT_MOST, dimension_word, self.value(dimension.high))
            for size in dimension.common if refuse_common else ():
                self._check(DIFFER, dimension_word, self.value(size))
            self._dimensions[dimension] = dimension_word

    def assume(self, assumption: Assumption) -> None:
        """Leave sizes that break an assumption to Python."""
        a, b = self.value(assumption.a), self.value(assumption.b)
        if assumption.relation == "==" and not assumption.answer:
            self._check(DIFFER, a, b)
        elif assumption.answer:
            self._check(AT_MOST, a, b)
            if assumption.relation == "==":
                self._check(AT_MOST, b, a)
        else:
            self._check(AT_MOST, self._operation(ADD, b, self.value(1)), a)

    def value(self, size: Any) -> int:
        """Return the index of the word that holds a size or number."""
        if size not in self._words:
            self._words[size] = self._sum(size) if type(size) is Size else self._word(size)
        return self._words[size]

    def move(self, size: Any, address: int) -> None:
        """Copy a size to an address."""
        self._moves.append((self.value(size), address))

    def build(self, arena: Any, arena_word: int, own: int, own_size: int) -> Solver:
        """Return the records for native code. ``arena`` is the size of the scratch memory in bytes. A call uses the
        memory at ``own`` if its ``own_size`` bytes suffice, and notes that in ``arena_word``; otherwise it uses the
        shared arena."""
        arena = self.value(arena)
        words = (_INT * len(self._values))(*self._values)
        at = [ctypes.addressof(words) + _WORD * i for i in range(len(words))]
        reads = (Read * len(self._reads))(*[Read(i, dim, at[to]) for i, dim, to in self._reads])
        steps = (SizeStep * len(self._steps))(*[SizeStep(kind, at[a], at[b], at[to]) for kind, a, b, to in self._steps])
        moves = (Move * len(self._moves))(*[Move(at[value], to) for value, to in self._moves])
        solver = Solver(arena=at[arena], arena_word=arena_word, own=own, own_size=own_size)
        solver.reads, solver.steps, solver.moves = (ctypes.addressof(records) for records in (reads, steps, moves))
        solver.read_count, solver.step_count, solver.move_count = len(reads), len(steps), len(moves)
        solver.owned = (words, reads, steps, moves)
        return solver

    def _word(self, value: int) -> int:
        self._values.append(value)
        return len(self._values) - 1

    def _operation(self, kind: int, a: int, b: int) -> int:
        if (kind, a, b) not in self._words:
            self._words[kind, a, b] = self._word(0)
            self._steps.append((kind, a, b, self._words[kind, a, b]))
        return self._words[kind, a, b]

    def _check(self, kind: int, a: int, b: int) -> None:
        self._steps.append((kind, a, b, a))

    def _sum(self, size: Size) -> int:
        first, *others = [self._product(monomial, coefficient) for monomial, coefficient in size.terms]
        for other in others:
            first = self._operation(ADD, first, other)
        return first

    def _product(self, monomial: Monomial, coefficient: int) -> int:
        factors = [self._atom(atom) for atom, power in monomial for _ in range(power)]
        if coefficient != 1 or not factors:
            factors.append(self.value(coefficient))
        first, *others = factors
        for other in others:
            first = self._operation(MULTIPLY, first, other)
        return first

    def _atom(self, atom: Atom) -> int:
        if isinstance(atom, Dimension):
            return self._dimensions[atom]
        if isinstance(atom, Positive):
            return self._operation(LARGER, self.value(atom.operand), self.value(0))
        return self._operation(DIVIDE, self.value(atom.operand), self.value(atom.divisor))
