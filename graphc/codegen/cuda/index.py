"""Indices, guards and sizes of kernels as expressions of CUDA C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphc.base.sizes.size import bounds as size_bounds
from graphc.base.sizes.size import is_size
from graphc.base.sizes.size_terms import Atom, Dimension, Monomial, Positive
from graphc.codegen.cuda.types import integer
from graphc.ir.kernel.index import Axis, Div, Dynamic, Index, Mod, bounds
from graphc.ir.kernel.statements import Guard


def parameter_of(dimension: Dimension) -> str:
    """Return the kernel parameter for a dimension; its name may have letters that C does not accept."""
    return "n_" + "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"u{ord(c):x}_" for c in dimension.name)


def size_text(size: Any) -> str:
    """Return a number, or a size as an expression of type long long."""
    if not is_size(size):
        return integer(int(size), True)
    return f"({' + '.join(_term(monomial, factor) for monomial, factor in size.terms)})"


def _term(monomial: Monomial, factor: int) -> str:
    atoms = [_atom(atom) for atom, power in monomial for _ in range(power)]
    return " * ".join([integer(factor, True), *atoms] if factor != 1 or not atoms else atoms)


def _atom(atom: Atom) -> str:
    if isinstance(atom, Dimension):
        return parameter_of(atom)
    if isinstance(atom, Positive):
        return f"gc_max<long long>({size_text(atom.operand)}, 0)"
    if size_bounds(atom.operand)[0] >= 0:
        return f"({size_text(atom.operand)} / {size_text(atom.divisor)})"
    return f"gc_floor_div<long long>({size_text(atom.operand)}, {size_text(atom.divisor)})"


def reach(index: Index) -> int:
    """Return the largest magnitude of any partial sum of an index, computed from left to right."""
    most, inside = _magnitude(index.constant), 0
    for atom, factor in index.terms:
        most += _magnitude(factor) * max(map(_magnitude, bounds(Index(((atom, 1),)))))
        if isinstance(atom, Div | Mod):
            inside = max(inside, reach(atom.operand), _magnitude(atom.divisor))
    return max(most, inside)


def _magnitude(value: Any) -> int:
    return max(map(abs, size_bounds(value))) if is_size(value) else abs(int(value))


class IndexWriter:
    """Writes indices in one integer type, with the names of axes and run-time terms."""

    def __init__(self, wide: bool, names: Mapping[Any, str]):
        self.wide = wide
        self.type = "long long" if wide else "int"
        self.names = names
        """Texts by axis, and by name of a run-time term."""

    def number(self, value: Any) -> str:
        """Return a number or a size in the type of indices."""
        if is_size(value):
            return size_text(value) if self.wide else f"(int){size_text(value)}"
        return integer(int(value), self.wide)

    def index(self, index: Index) -> str:
        """Return the value of an index expression."""
        summands = [self._product(atom, factor) for atom, factor in index.terms]
        if index.constant or not summands:
            summands.append(self.number(index.constant))
        return summands[0] if len(summands) == 1 else f"({' + '.join(summands)})"

    def guard(self, guard: Guard) -> str:
        """Return the conjunction of bounds, evaluated from left to right, without those that always hold."""
        tests = []
        for bound in guard:
            low, high = bounds(bound.index)
            text = self.index(bound.index)
            if is_size(bound.low) or is_size(low) or low < bound.low:
                tests.append(f"{text} >= {self.number(bound.low)}")
            if is_size(bound.high) or is_size(high) or high >= bound.high:
                tests.append(f"{text} < {self.number(bound.high)}")
        return " && ".join(tests) or "true"

    def _product(self, atom: Any, factor: Any) -> str:
        text = self._atom(atom)
        if not is_size(factor) and factor == 1:
            return text
        return f"{self.number(factor)} * {text}"

    def _atom(self, atom: Any) -> str:
        if isinstance(atom, Axis):
            return self.names[atom]
        if isinstance(atom, Dynamic):
            return f"({self.type}){self.names[atom.name]}"
        operand, divisor = self.index(atom.operand), self.number(atom.divisor)
        low = bounds(atom.operand)[0]
        if (size_bounds(low)[0] if is_size(low) else low) >= 0:
            return self._quotient(operand, "/" if isinstance(atom, Div) else "%", divisor)
        verb = "gc_floor_div" if isinstance(atom, Div) else "gc_floor_mod"
        return f"{verb}<{self.type}>({operand}, {divisor})"

    def _quotient(self, operand: str, operator: str, divisor: str) -> str:
        """Return a quotient or remainder of a non-negative operand: unsigned, which takes fewer instructions."""
        unsigned = "unsigned long long" if self.wide else "unsigned"
        return f"({self.type})(({unsigned}){operand} {operator} ({unsigned}){divisor})"
