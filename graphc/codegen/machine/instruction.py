"""An instruction that a scalar operation of LLVM does not name: the LLVM text that makes it, and its meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}
_SHORT = {"float": "f32", "double": "f64"}


class Writer(Protocol):
    """What collects the lines of a function."""

    def line(self, expression: str, /) -> str:
        """Appends ``%t = expression``; returns the register."""
        ...

    def declare(self, name: str, part: str, /) -> None:
        """Makes sure that an external function is declared."""
        ...


@dataclass(frozen=True)
class Instruction:
    """One instruction of a family of processors, or of all."""

    name: str
    """What the emitter asks for; several instructions have a name in common when they do it for other types."""
    text: Callable[[Writer, Sequence[str], str], str]
    """(writer, registers of operands, LLVM type of a result or stored value) -> the LLVM instruction without ``%t =``;
    what it needs is declared, and converted, before."""
    meaning: str
    """A kernel over LANES elements of TYPE (LAST is one less, ZERO its zero): its buffers are the operands in order,
    then the result if there is one."""
    operands: tuple[str, ...] = ()
    """How the text takes each operand: a ``vector``, a ``mask`` of i1, a pointer to ``memory``, or a vector of pointers
    to ``places`` in the memory before it, at indices."""
    mnemonics: tuple[str, ...] = ()
    """How the names begin by which an assembler knows it: one stands in the assembly. Empty where LLVM has a form for
    processors without it."""
    features: frozenset[str] = frozenset()
    """Features that a processor needs for it."""
    kinds: tuple[str, ...] = ()
    """LLVM types for which it exists; empty for all."""
    whole: tuple[str, ...] = ()
    """Operands that the emitter gives as whole numbers far within the range of exponents squared: others have no
    meaning here."""

    def kernel(self, kind: str, dtype: str = "") -> str:
        """The text of its meaning for an LLVM type, whose elements are ``dtype`` in kernel IR."""
        lanes, zero = lanes_of(kind) or 1, "0.0" if dtype.startswith("f") else "0"
        values = {"LANES": str(lanes), "LAST": str(lanes - 1), "ZERO": zero, "TYPE": dtype}
        return re.sub("|".join(values), lambda found: values[found[0]], self.meaning)


def lanes_of(kind: str) -> int:
    """Lanes of an LLVM type: 16 for ``<16 x float>``, 0 for ``float``."""
    found = re.match(r"<(\d+) x ", kind)
    return int(found[1]) if found else 0


def element_of(kind: str) -> str:
    """The type of an element: ``float`` for ``<16 x float>``."""
    return kind.rpartition("x ")[2].removesuffix(">")


def bytes_of(kind: str) -> int:
    """Bytes of an element."""
    return _BYTES[element_of(kind)]


def suffix_of(kind: str) -> str:
    """Overload suffix of an intrinsic: ``v16f32``."""
    element, lanes = element_of(kind), lanes_of(kind)
    return f"{f'v{lanes}' if lanes else ''}{_SHORT.get(element, element)}"


def of_type(kind: str, element: str) -> str:
    """As many elements of another type."""
    lanes = lanes_of(kind)
    return f"<{lanes} x {element}>" if lanes else element


def call(writer: Writer, result: str, name: str, operands: Sequence[tuple[str, str]]) -> str:
    """A call of an intrinsic on (type, register) of each operand, which is declared."""
    writer.declare(name, f"declare {result} @{name}({', '.join(kind for kind, _ in operands)})")
    return f"call {result} @{name}({', '.join(f'{kind} {register}' for kind, register in operands)})"


def without_operands(name: str, operand: str = "") -> Callable[[Writer, Sequence[str], str], str]:
    """The text of an instruction that takes nothing, or one literal with its type."""

    def text(writer: Writer, operands: Sequence[str], kind: str) -> str:
        kind, _, literal = operand.partition(" ")
        return call(writer, "void", name, [(kind, literal)] if operand else [])

    return text


def over_lanes(buffers: str, *steps: str) -> str:
    """The text of a kernel that does ``steps`` for each lane ``l``."""
    body = "\n".join(f"    {step}" for step in steps)
    return f"kernel @k({buffers}) {{\n  for l in LANES parallel {{\n{body}\n  }}\n}}\n"


NOTHING = over_lanes("%x: i32[LANES] inout", "x: i32 = load %x[l]", "store %x[l] = x")
"""The meaning of what changes no value."""


def _widen(writer: Writer, operands: Sequence[str], kind: str) -> str:
    half = of_type(kind, "half")
    bits = writer.line(f"bitcast {of_type(kind, 'i16')} {operands[0]} to {half}")
    return f"fpext {half} {bits} to {kind}"


WIDEN = Instruction(
    "widen",
    _widen,
    over_lanes("%h: f16[LANES] in, %r: f32[LANES] out", "h: f16 = load %h[l]", "x: f32 = cast(h)", "store %r[l] = x"),
    ("vector",),
)
"""The f32 of the bits of an f16, exactly, where a family has an instruction for it. Which NaN a NaN becomes is not
said."""


def _narrow(writer: Writer, operands: Sequence[str], kind: str) -> str:
    half = of_type(kind, "half")
    rounded = writer.line(f"fptrunc {kind} {operands[0]} to {half}")
    return f"bitcast {half} {rounded} to {of_type(kind, 'i16')}"


NARROW = Instruction(
    "narrow",
    _narrow,
    over_lanes("%x: f32[LANES] in, %r: f16[LANES] out", "x: f32 = load %x[l]", "h: f16 = cast(x)", "store %r[l] = h"),
    ("vector",),
)
"""The bits of an f32 rounded to f16, to nearest, ties to even, where a family has an instruction for it."""
