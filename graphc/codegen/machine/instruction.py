"""Instructions beyond LLVM's scalar operations: the LLVM text of each, and its meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from graphc.base.records import dataclass

_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}
_SHORT = {"float": "f32", "double": "f64"}


class InstructionWriter(Protocol):
    """Collector of the lines of a function."""

    def line(self, expression: str, /) -> str:
        """Append ``%t = expression``; return the register."""
        ...

    def declare(self, name: str, declaration: str, /) -> None:
        """Declare an external function, once."""
        ...


@dataclass(frozen=True)
class Instruction:
    """One instruction of a family of processors, or of all."""

    name: str
    """Name that the emitter asks for. Instructions for several types may share a name."""
    text: Callable[[InstructionWriter, Sequence[str], str], str]
    """(writer, registers of operands, LLVM type of a result or stored value) -> the LLVM instruction without ``%t =``.
    It declares functions and converts operands first."""
    meaning: str
    """Kernel over LANES elements of TYPE (LAST is LANES - 1, ZERO its zero). Its buffers are the operands in order,
    then the result, if any."""
    operands: tuple[str, ...] = ()
    """Form of each operand: a ``vector``, a ``mask`` of i1, a pointer to ``memory``, or a vector of pointers to
    ``places`` in the memory before it, at indices."""
    mnemonics: tuple[str, ...] = ()
    """Prefixes of its assembly names; the assembly contains one of them. Empty if LLVM also has a form for processors
    without it."""
    features: frozenset[str] = frozenset()
    """Features of processors that it needs."""
    kinds: tuple[str, ...] = ()
    """LLVM types for which it exists; empty for all."""
    whole: tuple[str, ...] = ()
    """Operands that must be integers whose squares are far within the range of exponents; others have no meaning."""

    def kernel(self, kind: str, dtype: str = "") -> str:
        """Return the kernel text of its meaning for an LLVM type, whose elements are ``dtype`` in kernel IR."""
        lanes, zero = lanes_of(kind) or 1, "0.0" if dtype.startswith("f") else "0"
        values = {"LANES": str(lanes), "LAST": str(lanes - 1), "ZERO": zero, "TYPE": dtype}
        return re.sub("|".join(values), lambda match: values[match[0]], self.meaning)


def lanes_of(kind: str) -> int:
    """Return the number of lanes of an LLVM type: 16 for ``<16 x float>``, 0 for ``float``."""
    match = re.match(r"<(\d+) x ", kind)
    return int(match[1]) if match else 0


def element_of(kind: str) -> str:
    """Return the type of an element: ``float`` for ``<16 x float>``."""
    return kind.rpartition("x ")[2].removesuffix(">")


def bytes_of(kind: str) -> int:
    """Return the bytes of an element."""
    return _BYTES[element_of(kind)]


def suffix_of(kind: str) -> str:
    """Return the overload suffix of an intrinsic: ``v16f32``."""
    element, lanes = element_of(kind), lanes_of(kind)
    return f"{f'v{lanes}' if lanes else ''}{_SHORT.get(element, element)}"


def of_type(kind: str, element: str) -> str:
    """Return the type of equally many elements of another type."""
    lanes = lanes_of(kind)
    return f"<{lanes} x {element}>" if lanes else element


def call(writer: InstructionWriter, result: str, name: str, operands: Sequence[tuple[str, str]]) -> str:
    """Declare an intrinsic, and return its call on (type, register) of each operand."""
    writer.declare(name, f"declare {result} @{name}({', '.join(kind for kind, _ in operands)})")
    return f"call {result} @{name}({', '.join(f'{kind} {register}' for kind, register in operands)})"


def without_operands(name: str, operand: str = "") -> Callable[[InstructionWriter, Sequence[str], str], str]:
    """Return the text function of an instruction without operands, or with one literal and its type."""

    def text(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
        kind, _, literal = operand.partition(" ")
        return call(writer, "void", name, [(kind, literal)] if operand else [])

    return text


def over_lanes(buffers: str, *steps: str) -> str:
    """Return the text of a kernel that runs ``steps`` for each lane ``l``."""
    body = "\n".join(f"    {step}" for step in steps)
    return f"kernel @k({buffers}) {{\n  for l in LANES parallel {{\n{body}\n  }}\n}}\n"


NOTHING = over_lanes("%x: i32[LANES] inout", "x: i32 = load %x[l]", "store %x[l] = x")
"""Meaning of an instruction that changes no value."""

DOT_BUFFERS = "%a: i32[LANES] in, %b: i32[LANES] in, %t: {0}[LANES] in, %r: {0}[LANES] out"
"""Buffers of a total plus products of parts of two words, by the type of the total."""
DOT_FACTORS = "a: i32 = load %a[l]", "b: i32 = load %b[l]"


def _byte_product(shift: int) -> tuple[str, ...]:
    """Return the meaning of one of the four products of unsigned bytes of ``a`` with signed bytes of ``b``."""
    n = shift // 8
    return (
        *(f"a{n}: i32 = shr_unsigned(a, i32({shift}))", f"u{n}: i32 = and(a{n}, i32(255))"),
        *(f"b{n}: i32 = shl(b, i32({24 - shift}))", f"s{n}: i32 = shr(b{n}, i32(24))"),
        *(f"p{n}: i32 = mul(u{n}, s{n})", f"t{n + 1}: i32 = add(t{n}, p{n})"),
    )


def _half_product(half: str, left: str, right: str) -> tuple[str, ...]:
    """Return the meaning of the product of the upper halves of two numbers."""
    parts = [f"{half}_{x}: i32 = shr({x}, i32(16))" for x in (left, right)]
    return (*parts, f"{half}: i32 = mul({half}_{left}, {half}_{right})")


BYTE_DOT = over_lanes(
    DOT_BUFFERS.format("i32"),
    *(*DOT_FACTORS, "t0: i32 = load %t[l]", *(step for shift in range(0, 32, 8) for step in _byte_product(shift))),
    "store %r[l] = t4",
)
"""Meaning of ``dot4``: a total plus four products of bytes, unsigned by signed; it wraps."""
PAIR_DOT = over_lanes(
    DOT_BUFFERS.format("i32"),
    *(*DOT_FACTORS, "t: i32 = load %t[l]", *_half_product("high", "a", "b")),
    *("c: i32 = shl(a, i32(16))", "d: i32 = shl(b, i32(16))", *_half_product("low", "c", "d")),
    *("p: i32 = add(high, low)", "s: i32 = add(t, p)", "store %r[l] = s"),
)
"""Meaning of ``dot2i``: a total plus two products of 16 bits, both signed; it wraps."""


def _widen(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    half = of_type(kind, "half")
    bits = writer.line(f"bitcast {of_type(kind, 'i16')} {operands[0]} to {half}")
    return f"fpext {half} {bits} to {kind}"


WIDEN = Instruction(
    "widen",
    _widen,
    over_lanes("%h: f16[LANES] in, %r: f32[LANES] out", "h: f16 = load %h[l]", "x: f32 = cast(h)", "store %r[l] = x"),
    ("vector",),
)
"""The f32 of the bits of an f16, exactly, for families with an instruction for it. Which NaN a NaN becomes is
unspecified."""


def _narrow(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    half = of_type(kind, "half")
    rounded = writer.line(f"fptrunc {kind} {operands[0]} to {half}")
    return f"bitcast {half} {rounded} to {of_type(kind, 'i16')}"


NARROW = Instruction(
    "narrow",
    _narrow,
    over_lanes("%x: f32[LANES] in, %r: f16[LANES] out", "x: f32 = load %x[l]", "h: f16 = cast(x)", "store %r[l] = h"),
    ("vector",),
)
"""The bits of an f32 rounded to f16, to nearest, ties to even, for families with an instruction for it."""
