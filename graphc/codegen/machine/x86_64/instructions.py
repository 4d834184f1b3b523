"""Instructions of x86-64 beyond LLVM's scalar operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llvmlite import binding

from graphc.codegen.machine.instruction import (
    BYTE_DOT,
    DOT_BUFFERS,
    DOT_FACTORS,
    NARROW,
    NOTHING,
    PAIR_DOT,
    WIDEN,
    Instruction,
    InstructionWriter,
    call,
    lanes_of,
    of_type,
    over_lanes,
    suffix_of,
    without_operands,
)

_PMADDWD = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}
"""Intrinsics by the number of sums."""
_SHORT_VECTORS = frozenset({"avx512f", "avx512vl"})
_LLVM_22 = binding.llvm_version_info[0] >= 22
"""Whether LLVM has the forms of version 22. Version 20 (llvmlite 0.45 to 0.47) takes the operands of vpdpbusd as i32,
and lowers llvm.ldexp of vectors to calls of ldexpf."""


def _products(
    writer: InstructionWriter, operands: Sequence[str], kind: str, name: str, count: int = 1, piece: str = "i32"
) -> str:
    """Return ``total`` plus products of the ``count`` pieces of each element of two operands."""
    left, right, total = operands
    lanes = lanes_of(kind)
    split, as_words, full = f"<{count * lanes} x {piece}>", of_type(kind, "i32"), f"{name}.{32 * lanes}"
    pairs = [(split, writer.line(f"bitcast {as_words} {x} to {split}")) for x in (left, right)]
    return call(writer, kind, full, [(kind, total), *pairs])


def _vpdpbusd(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    name = "llvm.x86.avx512.vpdpbusd"
    return _products(writer, operands, kind, name, 4, "i8") if _LLVM_22 else _products(writer, operands, kind, name)


def _pmaddwd(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    """Return ``total`` plus the products of the bytes of even and of odd number, each widened to 16 bits.

    LLVM computes the widened bytes of a row or vector once for all products of a register block. Measured with AVX2:
    operands that are stored in 16 bits save 15% of the time with many rows, and cost 15 to 50% with one.
    """
    lanes, total = lanes_of(kind), operands[2]
    halves = f"<{2 * lanes} x i16>"
    unsigned, signed = (writer.line(f"bitcast {kind} {x} to {halves}") for x in operands[:2])
    by_byte = "splat (i16 8)"
    upper = writer.line(f"shl {halves} {signed}, {by_byte}")
    even = writer.line(f"and {halves} {unsigned}, splat (i16 255)"), writer.line(f"ashr {halves} {upper}, {by_byte}")
    odd = writer.line(f"lshr {halves} {unsigned}, {by_byte}"), writer.line(f"ashr {halves} {signed}, {by_byte}")
    for pair in (even, odd):
        products = writer.line(call(writer, kind, _PMADDWD[lanes], [(halves, x) for x in pair]))
        sums = f"add {kind} {total}, {products}"
        total = sums if pair is odd else writer.line(sums)
    return total


def _pair_products(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    """Return ``total`` plus the products of the halves of each element."""
    lanes, total = lanes_of(kind), operands[2]
    halves = f"<{2 * lanes} x i16>"
    pairs = [(halves, writer.line(f"bitcast {kind} {x} to {halves}")) for x in operands[:2]]
    return f"add {kind} {total}, {writer.line(call(writer, kind, _PMADDWD[lanes], pairs))}"


def _vdpbf16ps(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    return _products(writer, operands, kind, "llvm.x86.avx512bf16.dpbf16ps", 2, "bfloat")


def _vscalef(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    value, power = operands
    lanes, single = lanes_of(kind), kind.endswith("float>")
    width = lanes * (32 if single else 64)
    name = f"llvm.x86.avx512.mask.scalef.{'ps' if single else 'pd'}.{width}"
    rounding = [("i32", "4")] if width == 512 else []
    mask = (f"i{max(lanes, 8)}", "-1")
    return call(writer, kind, name, [(kind, value), (kind, power), (kind, value), mask, *rounding])


def _ldexp(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    value, power = operands
    if not _LLVM_22:
        exponent = writer.line(f"sitofp {of_type(kind, 'i32')} {power} to {kind}")
        return _vscalef(writer, (value, exponent), kind)
    name = f"llvm.ldexp.{suffix_of(kind)}.v{lanes_of(kind)}i32"
    return call(writer, kind, name, [(kind, value), (of_type(kind, "i32"), power)])


def _vpermps(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    table = ", ".join(f"float {n if n < 8 else n - 16}.0" for n in range(16))
    name = "llvm.x86.avx512.permvar.sf.512"
    return call(writer, kind, name, [(kind, f"<{table}>"), (of_type(kind, "i32"), operands[0])])


def _flushed(name: str, value: str) -> tuple[str, ...]:
    """Return the meaning of flushing denormals to a zero of the same sign."""
    return (
        *(f"{name}_size: f32 = abs({value})", f"{name}_small: bool = lt({name}_size, f32({2.0**-126!r}))"),
        *(f"{name}_zero: f32 = copysign(f32(0.0), {value})",),
        f"{name}: f32 = select({name}_small, {name}_zero, {value})",
    )


def _pair_product(half: str, op: str, number: int, total: str) -> tuple[str, ...]:
    """Return the meaning of one of the two products, rounded once with the sum."""
    steps: list[str] = []
    for operand in "ab":
        steps.append(f"{half}{operand}_bits: i32 = {op}({operand}, i32({number}))")
        steps.append(f"{half}{operand}_all: f32 = bitcast({half}{operand}_bits)")
        steps += _flushed(f"{half}{operand}", f"{half}{operand}_all")
    steps.append(f"{half}_sum: f32 = fma({half}a, {half}b, {total})")
    return (*steps, *_flushed(half, f"{half}_sum"))


_SCALED = (
    *("<4 x float>", "<8 x float>", "<16 x float>"),
    *("<2 x double>", "<4 x double>", "<8 x double>"),
)
"""Vectors that fill a register, which vscalef takes."""
_POWER = "%x: TYPE[LANES] in, %p: {0}[LANES] in, %r: TYPE[LANES] out"

VPDPBUSD = Instruction(
    "dot4",
    _vpdpbusd,
    BYTE_DOT,
    ("vector", "vector", "vector"),
    mnemonics=("vpdpbusd",),
    features=frozenset({"avx512vnni", "avx512vl"}),
    kinds=("<4 x i32>", "<8 x i32>", "<16 x i32>"),
)
"""A total plus four products of bytes, unsigned by signed; it wraps."""
QUADS = (VPDPBUSD, replace(VPDPBUSD, features=frozenset({"avxvnni"}), kinds=("<4 x i32>", "<8 x i32>")))
"""The same by either feature."""
PMADDWD = tuple(
    replace(VPDPBUSD, text=_pmaddwd, mnemonics=("pmaddwd", "vpmaddwd"), features=frozenset(features), kinds=(kind,))
    for features, kind in (((), "<4 x i32>"), (("avx2",), "<8 x i32>"), (("avx512bw",), "<16 x i32>"))
)
"""The same in 16 bits, where pairs of products are exact sums in 32 bits."""
PAIRS = tuple(replace(instruction, name="dot2i", text=_pair_products, meaning=PAIR_DOT) for instruction in PMADDWD)
"""A total plus two products of 16 bits, both signed; it wraps."""
VDPBF16PS = Instruction(
    "dot2",
    _vdpbf16ps,
    over_lanes(
        DOT_BUFFERS.format("f32"),
        *(*DOT_FACTORS, "t_all: f32 = load %t[l]", *_flushed("t", "t_all")),
        *_pair_product("high", "and", -0x10000, "t"),
        *(*_pair_product("low", "shl", 16, "high"), "store %r[l] = low"),
    ),
    ("vector", "vector", "vector"),
    mnemonics=("vdpbf16ps",),
    features=frozenset({"avx512bf16", "avx512vl"}),
    kinds=("<4 x float>", "<8 x float>", "<16 x float>"),
)
"""A total plus two products of bf16, the upper halves first; each product and sum is rounded once, to the nearest.
Documented: denormals are read and written as zeros."""
VPERMPS = Instruction(
    "nibble",
    _vpermps,
    over_lanes(
        "%w: i32[LANES] in, %r: f32[LANES] out",
        *("w: i32 = load %w[l]", "x: i32 = shl(w, i32(28))", "n: i32 = shr(x, i32(28))"),
        *("v: f32 = cast(n)", "store %r[l] = v"),
    ),
    ("vector",),
    mnemonics=("vpermps", "vpermd"),
    features=frozenset({"avx512f"}),
    kinds=("<16 x float>",),
)
"""A number from -8 to 7 by its lowest four bits, from a table in a register; the other bits are ignored."""
VSCALEF = Instruction(
    "ldexp",
    _vscalef,
    over_lanes(
        _POWER.format("TYPE"),
        *("x: TYPE = load %x[l]", "p: TYPE = load %p[l]", "v: TYPE = ldexp(x, p)", "store %r[l] = v"),
    ),
    ("vector", "vector"),
    mnemonics=("vscalef",),
    features=_SHORT_VECTORS,
    kinds=("<16 x float>", "<8 x double>"),
    whole=("p",),
)
"""Product with a power of two, whose exponent is a float."""
LDEXP = Instruction(
    "ldexp by integer",
    _ldexp,
    over_lanes(
        _POWER.format("i32"),
        *(
            "x: TYPE = load %x[l]",
            "n: i32 = load %p[l]",
            "p: TYPE = cast(n)",
            "v: TYPE = ldexp(x, p)",
            "store %r[l] = v",
        ),
    ),
    ("vector", "vector"),
    mnemonics=("vscalef",),
    features=_SHORT_VECTORS,
    kinds=() if _LLVM_22 else _SCALED,
    whole=("p",),
)
"""Product with a power of two, whose exponent is an integer."""
VCVTPH2PS = Instruction(
    "widen", WIDEN.text, WIDEN.meaning, ("vector",), mnemonics=("vcvtph2ps",), features=frozenset({"f16c"})
)
"""The f32 of an f16."""
VCVTPS2PH = Instruction(
    "narrow", NARROW.text, NARROW.meaning, ("vector",), mnemonics=("vcvtps2ph",), features=frozenset({"f16c"})
)
"""The f16 of an f32."""
SFENCE = Instruction("fence", without_operands("llvm.x86.sse.sfence"), NOTHING, mnemonics=("sfence",))
"""Orders non-temporal stores before it, as other threads see them, ahead of later stores."""
PAUSE = Instruction("pause", without_operands("llvm.x86.sse2.pause"), NOTHING, mnemonics=("pause",))
"""Tells the processor that a loop only waits."""

INSTRUCTIONS = (
    *(*QUADS, *PMADDWD, *PAIRS),
    *(VDPBF16PS, VPERMPS, VSCALEF, LDEXP, VCVTPH2PS, replace(VCVTPH2PS, features=frozenset({"avx512f"}))),
    *(VCVTPS2PH, replace(VCVTPS2PH, features=frozenset({"avx512f"}))),
    *(SFENCE, PAUSE),
)
