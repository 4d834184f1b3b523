"""Writer of a library's LLVM functions, with checks that return a status code and with expressions of sizes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from graphc.base.sizes.size import Size, is_size
from graphc.base.sizes.size_terms import Atom, Dimension
from graphc.c_library.plan import CODES
from graphc.codegen.door.writer import NativeWriter
from graphc.codegen.llvm.module import Function, Item
from graphc.codegen.llvm.sizes import SizeWriter, register_of
from graphc.files.container import ALIGNMENT

CODE = "signext i32"
"""Return type of functions that return a status code."""
_SAFE = 2.0**62
"""Largest size computed without overflow."""


class GuardedWriter(NativeWriter):
    """Writer of one function that returns a status code."""

    def __init__(self, declarations: dict[str, Item]):
        super().__init__({})
        self.declarations = declarations
        self._sizes = SizeWriter(lambda name, text: self.declare(name, text))
        self._written = 0
        self._failures: dict[str, int] = {}

    def declare(self, name: str, text: str) -> None:
        """Declare an external function."""
        self.declarations[name] = text

    def room(self, kind: str, align: int, register: str = "") -> str:
        """Allocate stack memory at the start of the function, and return its address."""
        register = register or self._fresh("%room")
        self._lines.insert(1, f"  {register} = alloca {kind}, align {align}")
        return register

    def require(self, condition: str, status: str) -> None:
        """Emit a check that returns the code of ``status`` unless the condition holds."""
        self._failures[f"fail_{CODES[status]}"] = CODES[status]
        self.need(condition, f"fail_{CODES[status]}")

    def require_none(self, code: str) -> None:
        """Emit a check that returns ``code`` unless it is 0."""
        good, bad = self._fresh("good"), self._fresh("bad")
        self.choose(self.equal("i32", code, "0"), good, bad)
        self.label(bad)
        self.give("i32", code)
        self.label(good)

    def require_pointers(self, pointers: Sequence[tuple[str, int]]) -> None:
        """Emit a check that no pointer is null and each is a multiple of its alignment in bytes."""
        joined: dict[int, str] = {}
        for pointer, alignment in pointers:
            self.require(self.differ("ptr", pointer, "null"), "ERROR_NULL")
            number = self.value(f"ptrtoint ptr {pointer} to i64")
            joined[alignment] = self.value(f"or i64 {joined[alignment]}, {number}") if alignment in joined else number
        for alignment, bits in joined.items():
            if alignment > 1:
                low = self.value(f"and i64 {bits}, {alignment - 1}")
                self.require(self.equal("i64", low, "0"), "ERROR_ALIGNMENT")

    def require_context(self, magic: int) -> None:
        """Emit a check that ``%net`` is a context of this library."""
        self.require_pointers([("%net", ALIGNMENT)])
        signed = magic - (1 << 64) if magic >> 63 else magic
        self.require(self.equal("i64", self.load("i64", "%net"), str(signed)), "ERROR_CONTEXT")

    def within(self, value: str, low: int, high: int, status: str) -> None:
        """Emit a check that ``low <= value <= high``."""
        self.require(self.value(f"icmp sge i64 {value}, {low}"), status)
        self.require(self.value(f"icmp sle i64 {value}, {high}"), status)

    def size(self, size: Any) -> str:
        """Return a number, or the register of a computed size; the registers of dimensions must exist."""
        register = self._sizes.value(size)
        lines = self._sizes.lines
        for line in lines[self._written :]:
            self.do(line.strip())
        self._written = len(lines)
        return register

    def safe(self, size: Any) -> None:
        """Emit an overflow check: a size and its intermediate values must fit in 64 bits."""
        if is_size(size) and _largest(size) > _SAFE:
            good = self.value(f"fcmp ole double {self._magnitude(size)}, {_double(_SAFE)}")
            self.require(good, "ERROR_SIZE")

    def _magnitude(self, size: Any) -> str:
        """Emit an upper bound, as a double, of a size and all its intermediate values."""
        if not is_size(size):
            return _double(abs(int(size)))
        total = _double(0)
        for monomial, coefficient in size.terms:
            product = _double(abs(coefficient))
            for atom in (a for a, power in monomial for _ in range(power)):
                product = self.value(f"fmul double {product}, {self._atom(atom)}")
            total = self.value(f"fadd double {total}, {product}")
        return total

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Dimension):
            return self.value(f"uitofp i64 {register_of(atom)} to double")
        return self._magnitude(atom.operand)

    def function(self, name: str, parameters: Sequence[tuple[str, str]], local: bool = False) -> Function:
        """Finish the function with a return of 0, and return it."""
        self.give("i32", "0")
        for label, code in self._failures.items():
            self.label(label)
            self.give("i32", str(code))
        return Function(name, tuple(parameters), self.body, CODE, local=local, calls=True)


def _largest(size: Any) -> float:
    """Return the largest value of ``_magnitude`` over the ranges of the dimensions."""
    if type(size) is not Size:
        return abs(float(size))
    total = 0.0
    for monomial, coefficient in size.terms:
        product = abs(float(coefficient))
        for atom, power in monomial:
            product *= (float(atom.high) if isinstance(atom, Dimension) else _largest(atom.operand)) ** power
        total += product
    return total


def _double(value: float) -> str:
    """Format a number as an LLVM double."""
    return f"0x{struct.pack('>d', float(value)).hex()}"
