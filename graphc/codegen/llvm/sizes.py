"""Sizes of a call as LLVM values, each computed once from the dimensions, at the head of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.base.sizes.size import Size, bounds, is_size
from graphc.base.sizes.size_terms import Atom, Dimension, Monomial, Positive

_MAX, _SIGNED_MAX = "llvm.umax.i64", "llvm.smax.i64"


def register_of(dimension: Dimension) -> str:
    """Return the i64 register of a dimension; its name may have letters that LLVM does not accept."""
    return "%n." + "".join(c if c.isascii() and (c.isalnum() or c in "_.") else f"${ord(c):x}$" for c in dimension.name)


class SizeWriter:
    """Turns sizes into literals and registers. The dimensions themselves must be parameters, or loaded before."""

    def __init__(self, declare: Callable[[str, str], None], word_bits: int = 64):
        self.declare = declare
        self.word_bits = word_bits
        """Bits of the target's registers for integers."""
        self.lines: list[str] = []
        """Lines that compute sizes; they come before all others."""
        self._registers: dict[Any, str] = {}
        """Registers by size, and by expression."""

    def type_of(self, low: int, high: int) -> str:
        """Return the LLVM type in which indices from ``low`` to ``high`` are counted and compared: that of a register
        of the target if they fit, else i64."""
        limit = 1 << self.word_bits - 1
        return f"i{self.word_bits}" if -limit <= low and high < limit else "i64"

    def value(self, size: Any) -> str:
        """Return a number as a literal, a size as an i64 register."""
        if not is_size(size):
            return str(int(size))
        if size not in self._registers:
            self._registers[size] = self._sum(size)
        return self._registers[size]

    def line(self, expression: str) -> str:
        """Return the register of ``expression``, whose operands are literals and registers of this writer."""
        if expression not in self._registers:
            register = f"%z{len(self.lines)}"
            self.lines.append(f"  {register} = {expression}")
            self._registers[expression] = register
        return self._registers[expression]

    def _sum(self, size: Size) -> str:
        total = ""
        for monomial, coefficient in sorted(size.terms, key=lambda term: term[1] < 0):
            if not total:
                total = self._product(monomial, coefficient)
                continue
            verb, term = "sub" if coefficient < 0 else "add", self._product(monomial, abs(coefficient))
            total = self.line(f"{verb} nsw i64 {total}, {term}")
        return total

    def _product(self, monomial: Monomial, coefficient: int) -> str:
        register = ""
        for atom in (a for a, power in monomial for _ in range(power)):
            value = self._atom(atom)
            register = self.line(f"mul nsw i64 {register}, {value}") if register else value
        if not register:
            return str(coefficient)
        return register if coefficient == 1 else self.line(f"mul nsw i64 {register}, {coefficient}")

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Dimension):
            return register_of(atom)
        if isinstance(atom, Positive):
            return self.not_negative(atom.operand)
        operand, divisor = self.value(atom.operand), self.positive(atom.divisor)
        if bounds(atom.operand)[0] >= 0:
            return self.line(f"udiv i64 {operand}, {divisor}")
        return self._floor(operand, divisor)

    def _floor(self, operand: str, divisor: str) -> str:
        """Return a quotient rounded down; the operand may be negative."""
        quotient = self.line(f"sdiv i64 {operand}, {divisor}")
        rest = self.line(f"srem i64 {operand}, {divisor}")
        less = self.line(f"ashr i64 {rest}, 63")
        return self.line(f"add nsw i64 {quotient}, {less}")

    def not_negative(self, size: Any) -> str:
        """Return the maximum of a size and 0."""
        if not is_size(size):
            return str(max(int(size), 0))
        register = self.value(size)
        if bounds(size)[0] >= 0:
            return register
        self.declare(_SIGNED_MAX, f"declare i64 @{_SIGNED_MAX}(i64, i64)")
        return self.line(f"call i64 @{_SIGNED_MAX}(i64 {register}, i64 0)")

    def positive(self, size: Any) -> str:
        """Return a divisor of at least 1: quotients by a size of 0 are computed, but never used."""
        register = self.value(size)
        if bounds(size)[0] > 0:
            return register
        self.declare(_MAX, f"declare i64 @{_MAX}(i64, i64)")
        return self.line(f"call i64 @{_MAX}(i64 {register}, i64 1)")
