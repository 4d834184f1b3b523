"""Symbolic sizes of each call, computed from the shapes of a model's inputs by arithmetic on i64 vectors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import UnsupportedError
from graphc.base.sizes.named_dims import dimensions, size_of
from graphc.base.sizes.size import Dimension, bounds, is_size, terms
from graphc.base.sizes.size_terms import Atom, Positive

Add = Callable[..., str]
"""``add(op, *inputs, **attrs)``: appends an operator to the main graph and returns the name of its result."""


def same(a: Any, b: Any) -> bool:
    """Check whether two sizes are equal for all values of the dimensions. Assumes nothing."""
    if is_size(a) or is_size(b):
        return is_size(a) and is_size(b) and a.terms == b.terms
    return a == b


class Sizes:
    """Cache that computes each size once.

    ``shapes`` are the shapes of the model's inputs by name. ``numbers`` are the inputs whose only element is a size.
    """

    def __init__(
        self,
        add: Add,
        constant: Callable[[np.ndarray], str],
        shapes: Iterable[tuple[str, Sequence[Any]]],
        numbers: Iterable[tuple[str, Any]] = (),
    ):
        self._add = add
        self._constant = constant
        self._vectors: dict[str, str] = {}
        self._atoms: dict[Atom, str] = {}
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
        """Return the name of a vector of sizes."""
        if not any(map(is_size, shape)):
            return self._constant(np.array(shape, np.int64))
        runs: list[Any] = []
        for size in shape:
            if not is_size(size) and runs and isinstance(runs[-1], list):
                runs[-1].append(size)
            else:
                runs.append(size if is_size(size) else [size])
        names = [self.one(r) if is_size(r) else self._constant(np.array(r, np.int64)) for r in runs]
        return names[0] if len(names) == 1 else self._add("Concat", *names, axis=0)

    def one(self, size: Any) -> str:
        """Return the name of a vector that holds one size."""
        text = str(size)
        if text not in self._vectors:
            self._vectors[text] = self._computed(size) if is_size(size) else self._number(size)
        return self._vectors[text]

    def _number(self, value: int) -> str:
        return self._constant(np.array([value], np.int64))

    def _computed(self, size: Any) -> str:
        total = None
        for monomial, factor in terms(size):
            factors = [] if factor == 1 and monomial else [self._number(factor)]
            factors += [self._atom(atom) for atom, power in monomial for _ in range(power)]
            product = functools.reduce(lambda a, b: self._add("Mul", a, b), factors)
            total = product if total is None else self._add("Add", total, product)
        return total or self._number(0)

    def _atom(self, atom: Atom) -> str:
        if atom not in self._atoms:
            if isinstance(atom, Dimension):
                self._atoms[atom] = self._dimension(atom)
            elif isinstance(atom, Positive):
                self._atoms[atom] = self._add("Max", self.one(atom.operand), self._number(0))
            else:
                self._atoms[atom] = self._quotient(atom.operand, atom.divisor)
        return self._atoms[atom]

    def _quotient(self, a: Any, b: Any) -> str:
        """Compute floor(a / b). ONNX truncates, which differs for negative numbers only."""
        top, bottom = self.one(a), self.one(b)
        if bounds(a)[0] < 0:
            top = self._add("Sub", top, self._add("Mod", top, bottom))
        return self._add("Div", top, bottom)

    def _dimension(self, dimension: Dimension) -> str:
        """Compute a dimension from a size that equals it, or that equals a multiple of it plus a number."""
        for exact_only in (True, False):
            for size, read in self._sources.get(dimension.name, []):
                factor, offset = _linear(size)
                if factor is None or (exact_only and (factor, offset) != (1, 0)):
                    continue
                name = read()
                name = self._add("Sub", name, self._number(offset)) if offset else name
                return name if factor == 1 else self._add("Div", name, self._number(factor))
        raise UnsupportedError(
            f"no input of the model has a size from which the dimension {dimension.name} can be computed",
            remedy="give the model an input with a dimension of that size",
        )


def _linear(size: Any) -> tuple[int | None, int]:
    """Return (factor, offset) of ``factor * dimension + offset``, (None, 0) for other sizes."""
    factor, offset = None, 0
    for monomial, coefficient in terms(size):
        if not monomial:
            offset = coefficient
        elif len(monomial) == 1 and isinstance(monomial[0][0], Dimension) and monomial[0][1] == 1 and factor is None:
            factor = coefficient
        else:
            return None, 0
    return factor, offset


def stated(size: Any) -> int | str:
    """Convert a size to ONNX's form: a number, or a name."""
    names = dimensions([size]).values()
    return next((d.name for d in names if size_of(d) == size), str(size)) if names else int(size)
