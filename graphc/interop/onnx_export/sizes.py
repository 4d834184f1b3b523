"""Sizes that each call has: from the shapes of a model's inputs, by arithmetic on vectors of one i64."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import UnsupportedError
from graphc.base.sizes.size import Dimension, bounds, is_size, terms
from graphc.base.sizes.size_terms import Quotient

Add = Callable[..., str]
"""``add(op, *inputs, **attrs)``: appends an operator to the model's own graph, and names its result."""


def same(a: Any, b: Any) -> bool:
    """Whether two sizes are the same for all dimensions; nothing is assumed."""
    if is_size(a) or is_size(b):
        return is_size(a) and is_size(b) and a.terms == b.terms
    return a == b


class Sizes:
    """Computes each size once. ``shapes`` are those of the model's inputs by name, ``numbers`` the inputs that give a
    size as their only element."""

    def __init__(
        self,
        add: Add,
        constant: Callable[[np.ndarray], str],
        shapes: Iterable[tuple[str, Sequence[Any]]],
        numbers: Iterable[tuple[str, Any]] = (),
    ):
        self._add = add
        self._constant = constant
        self._known: dict[str, str] = {}
        self._atoms: dict[Dimension | Quotient, str] = {}
        self._sources: dict[str, list[tuple[Any, Callable[[], str]]]] = {}
        for name, shape in shapes:
            for axis, size in enumerate(shape):
                self._note(size, lambda name=name, axis=axis: add("Shape", name, start=axis, end=axis + 1))
        for name, size in numbers:
            self._note(size, lambda name=name: add("Reshape", name, self._number(1)))

    def _note(self, size: Any, read: Callable[[], str]) -> None:
        names = {atom.name for monomial, _ in terms(size) for atom, _ in monomial if isinstance(atom, Dimension)}
        if is_size(size) and len(names) == 1:
            self._sources.setdefault(names.pop(), []).append((size, read))

    def vector(self, shape: Sequence[Any]) -> str:
        """The name of a vector of sizes."""
        if not any(map(is_size, shape)):
            return self._constant(np.array(shape, np.int64))
        parts: list[Any] = []
        for size in shape:
            if not is_size(size) and parts and isinstance(parts[-1], list):
                parts[-1].append(size)
            else:
                parts.append(size if is_size(size) else [size])
        names = [self.one(p) if is_size(p) else self._constant(np.array(p, np.int64)) for p in parts]
        return names[0] if len(names) == 1 else self._add("Concat", *names, axis=0)

    def one(self, size: Any) -> str:
        """The name of a vector that holds one size."""
        text = str(size)
        if text not in self._known:
            self._known[text] = self._computed(size) if is_size(size) else self._number(size)
        return self._known[text]

    def _number(self, value: int) -> str:
        return self._constant(np.array([value], np.int64))

    def _computed(self, size: Any) -> str:
        total = None
        for monomial, factor in terms(size):
            factors = [] if factor == 1 and monomial else [self._number(factor)]
            factors += [self._atom(atom) for atom, power in monomial for _ in range(power)]
            part = functools.reduce(lambda a, b: self._add("Mul", a, b), factors)
            total = part if total is None else self._add("Add", total, part)
        return total or self._number(0)

    def _atom(self, atom: Dimension | Quotient) -> str:
        if atom not in self._atoms:
            is_dimension = isinstance(atom, Dimension)
            self._atoms[atom] = self._dimension(atom) if is_dimension else self._quotient(atom.operand, atom.divisor)
        return self._atoms[atom]

    def _quotient(self, a: Any, b: Any) -> str:
        """floor(a / b); ONNX cuts the fraction off, which differs below 0 only."""
        top, bottom = self.one(a), self.one(b)
        if bounds(a)[0] < 0:
            top = self._add("Sub", top, self._add("Mod", top, bottom))
        return self._add("Div", top, bottom)

    def _dimension(self, dimension: Dimension) -> str:
        """From a size that is the dimension, or a multiple and a number more."""
        for wanted in (True, False):
            for size, read in self._sources.get(dimension.name, []):
                factor, rest = _linear(size)
                if factor is None or (wanted and (factor, rest) != (1, 0)):
                    continue
                found = read()
                found = self._add("Sub", found, self._number(rest)) if rest else found
                return found if factor == 1 else self._add("Div", found, self._number(factor))
        raise UnsupportedError(
            f"no input of the model has a size from which the dimension {dimension.name} can be computed",
            remedy="an input with a dimension of that size",
        )


def _linear(size: Any) -> tuple[int | None, int]:
    """(factor, rest) of ``factor * dimension + rest``; (None, 0) for another size."""
    factor, rest = None, 0
    for monomial, coefficient in terms(size):
        if not monomial:
            rest = coefficient
        elif len(monomial) == 1 and isinstance(monomial[0][0], Dimension) and monomial[0][1] == 1 and factor is None:
            factor = coefficient
        else:
            return None, 0
    return factor, rest


def stated(size: Any) -> int | str:
    """A size as ONNX states it: a number, or a name."""
    return str(size) if is_size(size) else int(size)
