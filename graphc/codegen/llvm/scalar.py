"""Scalar operations of kernels as LLVM instructions, on scalars and on vectors alike."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from graphc.base.dtypes import DType, bits_of, element, float32, float64, int32, int64, limits
from graphc.base.errors import CompileError
from graphc.codegen.llvm.angle import declare_reduction
from graphc.codegen.llvm.module import Item
from graphc.codegen.llvm.wide_fma import WideFma
from graphc.codegen.machine.instruction import Instruction
from graphc.codegen.machine.target import Target
from graphc.ir.kernel.statements import Const

_REGISTER = {"f32": "float", "f64": "double", "i64": "i64", "i32": "i32", "i8": "i8", "u8": "i8", "bool": "i1"} | {
    "u64": "i64",
    "u32": "i32",
    "i16": "i16",
    "u16": "i16",
    "f16": "i16",
    "bf16": "i16",
    "bf16x2": "i32",
}


def register_type(dtype: DType, lanes: int = 0) -> str:
    """Return the LLVM type of a value in registers; ``lanes`` 0 is a scalar. A bool is i1."""
    name = _REGISTER[dtype.name]
    return f"<{lanes} x {name}>" if lanes else name


def memory_type(dtype: DType, lanes: int = 0) -> str:
    """Return the LLVM type of a value in memory. A bool is a byte."""
    name = "i8" if dtype.kind == "b" else _REGISTER[dtype.name]
    return f"<{lanes} x {name}>" if lanes else name


def literal(const: Const) -> str:
    """Return a constant in LLVM syntax; floats in hex, to avoid locales and rounding."""
    if const.dtype.kind == "f":
        value = float(const.value)
        if const.dtype.name == "f32":
            value = struct.unpack("f", struct.pack("f", value))[0] if abs(value) != float("inf") else value
        return "0x" + struct.pack(">d", value).hex().upper()
    if const.dtype.kind == "b":
        return "true" if const.value else "false"
    if const.dtype.kind == "h":
        return str(bits_of(element(const.value, const.dtype)))
    return str(int(const.value))


def splat_literal(const: Const, lanes: int) -> str:
    """Return a vector constant with every lane equal."""
    return f"splat ({register_type(const.dtype)} {literal(const)})" if lanes else literal(const)


def suffix(dtype: DType, lanes: int) -> str:
    """Return the overload suffix of an intrinsic, e.g. ``v16f32``."""
    name = {"float": "f32", "double": "f64"}.get(_REGISTER[dtype.name], _REGISTER[dtype.name])
    return f"v{lanes}{name}" if lanes else name


_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "weigh": "fmul", "div": "fdiv", "rem": "frem"}
_INT = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_FCMP = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_FLOAT_CALL = {"sqrt", "floor", "ceil", "trunc", "roundeven", "copysign"}


class ScalarEmitter:
    """Emits single operations through ``line(expression) -> name`` and ``declare(signature)`` of a function writer."""

    def __init__(self, line: Callable[[str], str], declare: Callable[[str, Item], None], target: Target):
        self.line = line
        self.declare = declare
        self.target = target

    def emit(self, op: str, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        """Emit ``op(args)``; return the name of the result. ``types`` are the operand types."""
        special = _SPECIAL.get(op)
        if special is not None:
            return special(self, args, types, result, lanes)
        if op in _FCMP:
            return self._compare(op, args, types[0], lanes)
        kind = register_type(types[0], lanes)
        if types[0].kind == "f":
            if op in _FLOAT:
                return self.line(f"{_FLOAT[op]} {kind} {args[0]}, {args[1]}")
            if op in _FLOAT_CALL:
                return self.call(f"llvm.{op}", types[0], lanes, args)
        elif op in _INT:
            return self.line(f"{_INT[op]} {kind} {args[0]}, {args[1]}")
        raise CompileError(f"no instruction for {op} on {types[0]}")

    def call(self, name: str, dtype: DType, lanes: int, args: list[str]) -> str:
        """Emit the call of an intrinsic whose operands and result have one type."""
        kind = register_type(dtype, lanes)
        full = f"{name}.{suffix(dtype, lanes)}"
        self.declare(full, f"declare {kind} @{full}({', '.join([kind] * len(args))})")
        return self.line(f"call {kind} @{full}({', '.join(f'{kind} {a}' for a in args)})")

    def constant(self, value: bool | int | float, dtype: DType, lanes: int) -> str:
        """Return a literal operand."""
        return splat_literal(Const(value, dtype), lanes)

    def _compare(self, op: str, args: list[str], dtype: DType, lanes: int) -> str:
        kind = register_type(dtype, lanes)
        if dtype.kind == "f":
            return self.line(f"fcmp {_FCMP[op]} {kind} {args[0]}, {args[1]}")
        sign = "" if op in ("eq", "ne") else "s" if dtype.kind == "i" else "u"
        return self.line(f"icmp {sign}{op} {kind} {args[0]}, {args[1]}")

    def select(self, condition: str, a: str, b: str, dtype: DType, lanes: int) -> str:
        """Emit ``condition ? a : b`` lane by lane."""
        kind = register_type(dtype, lanes)
        mask = f"<{lanes} x i1>" if lanes else "i1"
        return self.line(f"select {mask} {condition}, {kind} {a}, {kind} {b}")

    def _neg(self, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        kind = register_type(result, lanes)
        if result.kind == "f":
            return self.line(f"fneg {kind} {args[0]}")
        return self.line(f"sub {kind} {self.constant(0, result, lanes)}, {args[0]}")

    def _abs(self, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        if result.kind == "f":
            return self.call("llvm.fabs", result, lanes, args)
        if result.kind == "u":
            return args[0]
        kind = register_type(result, lanes)
        full = f"llvm.abs.{suffix(result, lanes)}"
        self.declare(full, f"declare {kind} @{full}({kind}, i1)")
        return self.line(f"call {kind} @{full}({kind} {args[0]}, i1 false)")

    def minmax(self, op: str, args: list[str], dtype: DType, lanes: int) -> str:
        """Emit a NaN-propagating ``min`` or ``max``. A literal operand saves the explicit test: the compare-and-select
        form returns its second operand when unordered, which is the other one."""
        if dtype.kind == "b":
            kind = register_type(dtype, lanes)
            return self.line(f"{'or' if op == 'max' else 'and'} {kind} {args[0]}, {args[1]}")
        compare = "gt" if op == "max" else "lt"
        a, b = args
        if dtype.kind != "f":
            return self.select(self._compare(compare, [a, b], dtype, lanes), a, b, dtype, lanes)
        if _is_literal(b) and "7FF8" not in b:
            a, b = b, a
        best = self.select(self._compare(compare, [a, b], dtype, lanes), a, b, dtype, lanes)
        if _is_literal(a) and "7FF8" not in a:
            return best
        kind = register_type(dtype, lanes)
        unordered = self.line(f"fcmp uno {kind} {a}, {a}")
        return self.select(unordered, a, best, dtype, lanes)

    def _fma(self, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        kind = register_type(result, lanes)
        instruction = self.target.instruction("fma", kind)
        if instruction is not None:
            return self.line(instruction.text(self, args, kind))
        if self.target.fma or result.bits == 64:
            return self.call("llvm.fma", result, lanes, args)
        exact = self.target.costs.strict_order
        return WideFma(self.line, rounds_once=exact, in_halves=self.target.converts_pairs).text(args, lanes)

    def _not(self, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        ones = self.constant(True if result.kind == "b" else -1, result, lanes)
        return self.line(f"xor {register_type(result, lanes)} {args[0]}, {ones}")

    def _shift(self, op: str, args: list[str], dtype: DType, lanes: int) -> str:
        """Emit a shift; a count of the width or more gives 0 (or the sign), as numpy does."""
        kind = register_type(dtype, lanes)
        if _is_literal(args[1]):
            return self.line(f"{op} {kind} {args[0]}, {args[1]}")
        limit = self.constant(dtype.bits - 1, dtype, lanes)
        over = self.line(f"icmp ugt {kind} {args[1]}, {limit}")
        if op == "ashr":
            count = self.select(over, limit, args[1], dtype, lanes)
            return self.line(f"ashr {kind} {args[0]}, {count}")
        count = self.select(over, self.constant(0, dtype, lanes), args[1], dtype, lanes)
        shifted = self.line(f"{op} {kind} {args[0]}, {count}")
        return self.select(over, self.constant(0, dtype, lanes), shifted, dtype, lanes)

    def _mulhi(self, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        if lanes and lanes % 2 == 0:
            return self._mulhi_pairs(args, result, lanes)
        narrow, wide = register_type(result, lanes), f"<{lanes} x i64>" if lanes else "i64"
        a, b = (self.line(f"zext {narrow} {x} to {wide}") for x in args)
        product = self.line(f"mul {wide} {a}, {b}")
        shift = "splat (i64 32)" if lanes else "32"
        return self.line(f"trunc {wide} {self.line(f'lshr {wide} {product}, {shift}')} to {narrow}")

    def _mulhi_pairs(self, args: list[str], result: DType, lanes: int) -> str:
        """Multiply pairs of lanes as words of 64 bits: once for the lower halves, once for the upper ones."""
        narrow, wide = register_type(result, lanes), f"<{lanes // 2} x i64>"
        halves: list[list[str]] = [[], []]
        for arg in args:
            pair = self.line(f"bitcast {narrow} {arg} to {wide}")
            halves[0].append(self.line(f"and {wide} {pair}, splat (i64 4294967295)"))
            halves[1].append(self.line(f"lshr {wide} {pair}, splat (i64 32)"))
        low, high = (self.line(f"mul {wide} {a}, {b}") for a, b in halves)
        low, high = (self.line(f"bitcast {wide} {x} to {narrow}") for x in (low, high))
        upper = ", ".join(f"i32 {i + 1}, i32 {lanes + i + 1}" for i in range(0, lanes, 2))
        return self.line(f"shufflevector {narrow} {low}, {narrow} {high}, <{lanes} x i32> <{upper}>")

    def _int_div(self, op: str, args: list[str], dtype: DType, lanes: int) -> str:
        """Emit an integer division that never traps: 0 for a zero divisor; the lowest value over -1 wraps."""
        kind = register_type(dtype, lanes)
        zero, one = self.constant(0, dtype, lanes), self.constant(1, dtype, lanes)
        none = self.line(f"icmp eq {kind} {args[1]}, {zero}")
        unsafe, minus = none, ""
        if dtype.kind == "i":
            minus = self.line(f"icmp eq {kind} {args[1]}, {self.constant(-1, dtype, lanes)}")
            mask = f"<{lanes} x i1>" if lanes else "i1"
            unsafe = self.line(f"or {mask} {none}, {minus}")
        divisor = self.select(unsafe, one, args[1], dtype, lanes)
        sign = "s" if dtype.kind == "i" else "u"
        result = self.line(f"{sign}{op} {kind} {args[0]}, {divisor}")
        if minus:
            other = self.line(f"sub {kind} {zero}, {args[0]}") if op == "div" else zero
            result = self.select(minus, other, result, dtype, lanes)
        return self.select(none, zero, result, dtype, lanes)

    def _cast(self, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        source = types[0]
        if source.kind == "h" and source is not result:
            return self._cast([self._widen(args[0], source, lanes)], [float32], result, lanes)
        if source is result:
            return args[0]
        if result.kind == "h":
            return self._narrow(self._cast(args, types, float32, lanes), result, lanes)
        from_type, to_type = register_type(source, lanes), register_type(result, lanes)
        if result.kind == "b":
            zero = self.constant(0, source, lanes)
            compare = "fcmp une" if source.kind == "f" else "icmp ne"
            return self.line(f"{compare} {from_type} {args[0]}, {zero}")
        if source.kind == "f" and result.kind != "f":
            return self._to_integer(args[0], source, result, lanes)
        if source.kind == "f":
            verb = "fpext" if result.bits > source.bits else "fptrunc"
        elif result.kind == "f":
            verb = "sitofp" if source.kind == "i" else "uitofp"
        elif source.kind != "b" and result.bits == source.bits:
            return args[0]
        elif source.kind != "b" and result.bits < source.bits:
            verb = "trunc"
        else:
            verb = "sext" if source.kind == "i" else "zext"
        return self.line(f"{verb} {from_type} {args[0]} to {to_type}")

    def _to_integer(self, value: str, source: DType, result: DType, lanes: int) -> str:
        """Return a float as an integer, truncated and saturated, and 0 for NaN.

        LLVM converts one element after the other where a vector saturates to fewer than 32 bits. Such numbers are
        limited before they are converted.
        """
        kind, word, narrow = (register_type(t, lanes) for t in (source, int32, result))
        if result.bits > 16:
            sign = "u" if result.kind == "u" else "s"
            full = f"llvm.fpto{sign}i.sat.{suffix(result, lanes)}.{suffix(source, lanes)}"
            self.declare(full, f"declare {narrow} @{full}({kind})")
            return self.line(f"call {narrow} @{full}({kind} {value})")
        low, high = (self.constant(float(end), source, lanes) for end in limits(result))
        inside = self.select(self.line(f"fcmp ogt {kind} {value}, {low}"), value, low, source, lanes)
        inside = self.select(self.line(f"fcmp olt {kind} {inside}, {high}"), inside, high, source, lanes)
        if result.kind == "i":
            is_nan = self.line(f"fcmp uno {kind} {value}, {value}")
            inside = self.select(is_nan, self.constant(0.0, source, lanes), inside, source, lanes)
        return self.line(f"trunc {word} {self.line(f'fptosi {kind} {inside} to {word}')} to {narrow}")

    def _widen(self, bits: str, source: DType, lanes: int) -> str:
        """Return the f32 of the bits of an f16 or a bf16."""
        narrow, word, kind = register_type(source, lanes), register_type(int32, lanes), register_type(float32, lanes)
        instruction = self.target.instruction("widen", kind) if source.name == "f16" else None
        if instruction is not None:
            return self.line(instruction.text(self, (bits,), kind))
        wide = self.line(f"zext {narrow} {bits} to {word}")
        if source.name == "bf16":
            placed = self.line(f"shl {word} {wide}, {self._word(16, lanes)}")
            return self.line(f"bitcast {word} {placed} to {kind}")
        return self._widen_by_bits(wide, lanes)

    def _narrow(self, value: str, result: DType, lanes: int) -> str:
        """Return the bits of an f32 as an f16 or a bf16, rounded to nearest, ties to even.

        NOTE: the instruction for bf16 flushes denormals to zero, unlike the reference.
        """
        narrow, word, kind = register_type(result, lanes), register_type(int32, lanes), register_type(float32, lanes)
        if result.name == "bf16":
            bits = self.line(f"lshr {word} {self._rounded(value, lanes)}, {self._word(16, lanes)}")
            return self.line(f"trunc {word} {bits} to {narrow}")
        instruction = self.target.instruction("narrow", kind)
        if instruction is not None:
            return self.line(instruction.text(self, (value,), kind))
        return self.line(f"trunc {word} {self._narrow_by_bits(value, lanes)} to {narrow}")

    def _narrow_by_bits(self, value: str, lanes: int) -> str:
        """Convert f32 to f16 without the instruction. Normal numbers get a new bias; half a unit and their last bit are
        added, and the lower bits are cut off. Smaller ones are added to a number whose last digit is that of the
        denormals."""
        word, kind = register_type(int32, lanes), register_type(float32, lanes)

        def step(op: str, value: str, number: int) -> str:
            return self.line(f"{op} {word} {value}, {self._word(number, lanes)}")

        bits = self.line(f"bitcast {kind} {value} to {word}")
        sign = step("and", step("lshr", bits, 16), 0x8000)
        magnitude = step("and", bits, 0x7FFFFFFF)
        odd = step("and", step("lshr", magnitude, 13), 1)
        biased = self.line(f"add {word} {step('add', magnitude, 0xFFF - (112 << 23))}, {odd}")
        normal = step("lshr", biased, 13)
        positive = self.line(f"bitcast {word} {magnitude} to {kind}")
        moved = self.line(f"fadd {kind} {positive}, {self.constant(0.5, float32, lanes)}")
        small = step("sub", self.line(f"bitcast {kind} {moved} to {word}"), 0x3F000000)
        result = self.select(
            self.line(f"icmp ult {word} {magnitude}, {self._word(0x38800000, lanes)}"), small, normal, int32, lanes
        )
        large = self.line(f"icmp ugt {word} {magnitude}, {self._word(0x477FEFFF, lanes)}")
        result = self.select(large, self._word(0x7C00, lanes), result, int32, lanes)
        quiet = step("or", step("and", step("lshr", bits, 13), 0x1FF), 0x7E00)
        result = self.select(self.line(f"fcmp uno {kind} {value}, {value}"), quiet, result, int32, lanes)
        return self.line(f"or {word} {result}, {sign}")

    def _pair(self, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        """Return two f32 rounded to bf16, the first one in the low half."""
        word = register_type(int32, lanes)
        low, high = (self._rounded(x, lanes) for x in args)
        below = self.line(f"lshr {word} {low}, {self._word(16, lanes)}")
        above = self.line(f"and {word} {high}, {self._word(-0x10000, lanes)}")
        return self.line(f"or {word} {below}, {above}")

    def _rounded(self, value: str, lanes: int) -> str:
        """Return the bits of an f32 with the upper half rounded to nearest, ties to even; a NaN stays one."""
        word, kind = register_type(int32, lanes), register_type(float32, lanes)
        bits = self.line(f"bitcast {kind} {value} to {word}")
        above = self.line(f"lshr {word} {bits}, {self._word(16, lanes)}")
        odd = self.line(f"and {word} {above}, {self._word(1, lanes)}")
        half = self.line(f"add {word} {odd}, {self._word(0x7FFF, lanes)}")
        rounded = self.line(f"add {word} {bits}, {half}")
        quiet = self.line(f"or {word} {bits}, {self._word(0x400000, lanes)}")
        return self.select(self.line(f"fcmp uno {kind} {value}, {value}"), quiet, rounded, int32, lanes)

    def _dot2(self, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        return self._add_dot2(args[0], args[1], self.constant(0.0, float32, lanes), lanes)

    def _dot4(self, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        return self._add_dot4(args[0], args[1], self.constant(0, int32, lanes), lanes)

    def add_dot(self, op: str, a: str, b: str, total: str, lanes: int) -> str:
        """Return ``total`` plus a product of parts of ``a`` and ``b``, by one instruction if the target has it."""
        add = {"dot2": self._add_dot2, "dot4": self._add_dot4, "dot2i": self._add_dot2i}[op]
        return add(a, b, total, lanes)

    def _dot2i(self, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        return self._add_dot2i(args[0], args[1], self.constant(0, int32, lanes), lanes)

    def _add_dot2i(self, a: str, b: str, total: str, lanes: int) -> str:
        word = register_type(int32, lanes)
        instruction = self.target.instruction("dot2i", word)
        if instruction is not None:
            return self.line(instruction.text(self, (a, b, total), word))
        for place in ("low", "high"):
            parts = [x if place == "high" else self.line(f"shl {word} {x}, {self._word(16, lanes)}") for x in (a, b)]
            left, right = (self.line(f"ashr {word} {x}, {self._word(16, lanes)}") for x in parts)
            total = self.line(f"add {word} {total}, {self.line(f'mul {word} {left}, {right}')}")
        return total

    def _add_dot4(self, a: str, b: str, total: str, lanes: int) -> str:
        word = register_type(int32, lanes)
        instruction = self.target.instruction("dot4", word)
        if instruction is not None:
            return self.line(instruction.text(self, (a, b, total), word))
        for shift in range(0, 32, 8):
            low = self.line(f"lshr {word} {a}, {self._word(shift, lanes)}")
            left = self.line(f"and {word} {low}, {self._word(0xFF, lanes)}")
            high = self.line(f"shl {word} {b}, {self._word(24 - shift, lanes)}")
            right = self.line(f"ashr {word} {high}, {self._word(24, lanes)}")
            total = self.line(f"add {word} {total}, {self.line(f'mul {word} {left}, {right}')}")
        return total

    def _add_dot2(self, a: str, b: str, total: str, lanes: int) -> str:
        kind, word = register_type(float32, lanes), register_type(int32, lanes)
        instruction = self.target.instruction("dot2", kind)
        if instruction is not None:
            return self.line(instruction.text(self, (a, b, total), kind))
        for op, number in (("and", -0x10000), ("shl", 16)):
            halves = (self.line(f"{op} {word} {x}, {self._word(number, lanes)}") for x in (a, b))
            left, right = (self.line(f"bitcast {word} {x} to {kind}") for x in halves)
            total = self._fma([left, right, total], [float32] * 3, float32, lanes)
        return total

    def _nibble(self, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        """Convert a nibble to f32, by a table if the target has one. Otherwise put the nibble, with its sign bit
        flipped, into the last four bits of an f32 integer: the result exceeds 2^23 + 8 by the nibble's value. That
        takes one logic operation and a subtraction, where a second shift and a conversion would use the same few
        units."""
        kind, word = register_type(float32, lanes), register_type(int32, lanes)
        instruction = self.target.instruction("nibble", kind)
        if instruction is not None:
            return self.line(instruction.text(self, (args[0],), kind))
        middle = 2.0**23 + 8
        low = self.line(f"and {word} {args[0]}, {self._word(15, lanes)}")
        turned = self.line(f"xor {word} {low}, {self._word(int(np.float32(middle).view(np.int32)), lanes)}")
        number = self.line(f"bitcast {word} {turned} to {kind}")
        return self.line(f"fsub {kind} {number}, {self.constant(middle, float32, lanes)}")

    def _widen_by_bits(self, wide: str, lanes: int) -> str:
        """Convert f16 to f32 without the instruction: shift exponent and mantissa, and multiply by a power of two that
        corrects the bias (and normalizes denormals). Infinities and NaN get the largest exponent."""
        word, kind = register_type(int32, lanes), register_type(float32, lanes)

        def step(op: str, value: str, number: int) -> str:
            return self.line(f"{op} {word} {value}, {self._word(number, lanes)}")

        placed = self.line(f"bitcast {word} {step('shl', step('and', wide, 0x7FFF), 13)} to {kind}")
        scaled = self.line(f"fmul {kind} {placed}, {self.constant(2.0**112, float32, lanes)}")
        magnitude = self.line(f"bitcast {kind} {scaled} to {word}")
        special = self.line(f"icmp eq {word} {step('and', wide, 0x7C00)}, {self._word(0x7C00, lanes)}")
        infinite = step("or", magnitude, 0x7F800000)
        magnitude = self.select(special, infinite, magnitude, int32, lanes)
        signed = self.line(f"or {word} {magnitude}, {step('shl', step('and', wide, 0x8000), 16)}")
        return self.line(f"bitcast {word} {signed} to {kind}")

    def _reduced(self, op: str, args: list[str], lanes: int) -> str:
        kind, name = register_type(float64, lanes), declare_reduction(op, lanes, self.declare)
        return self.line(f"call {kind} @{name}({kind} {args[0]})")

    def _word(self, number: int, lanes: int) -> str:
        return self.constant(number, int32, lanes)

    def _ldexp(self, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        kind = register_type(result, lanes)
        by_float = self.target.instruction("ldexp", kind) if types[1].kind == "f" else None
        if by_float is not None:
            return self.line(by_float.text(self, args, kind))
        by_integer = self.target.instruction("ldexp by integer", kind) if lanes else None
        if by_integer is not None:
            return self._ldexp_by_integer(by_integer, args, types, kind, lanes)
        if types[1].kind == "f":
            return self._ldexp_by_float(args, result, lanes)
        return self._ldexp_by_bits(args, types, result, lanes)

    def _ldexp_by_integer(
        self, instruction: Instruction, args: list[str], types: list[DType], kind: str, lanes: int
    ) -> str:
        (value, power), types = self._integer_power(args, types, lanes)
        if types[1].bits == 64:  # the instruction takes i32 exponents
            clamped = self._clamp(power, -5000, 5000, types[1], lanes)
            power = self.line(f"trunc {register_type(types[1], lanes)} {clamped} to {register_type(int32, lanes)}")
        return self.line(instruction.text(self, (value, power), kind))

    def _integer_power(self, args: list[str], types: list[DType], lanes: int) -> tuple[list[str], list[DType]]:
        """Return an integer-valued float power of ldexp as i32 or i64: adding 1.5 * 2^mantissa puts it in the low
        bits."""
        if types[1].kind != "f":
            return args, types
        integer = int64 if types[1].bits == 64 else int32
        magic, bits = (float(3 << 51), 0x4338 << 48) if integer is int64 else (float(3 << 22), 0x4B40 << 16)
        kind, word = register_type(types[1], lanes), register_type(integer, lanes)
        shifted = self.line(f"fadd {kind} {args[1]}, {self.constant(magic, types[1], lanes)}")
        cast = self.line(f"bitcast {kind} {shifted} to {word}")
        power = self.line(f"sub {word} {cast}, {self.constant(bits, integer, lanes)}")
        return [args[0], power], [types[0], integer]

    def _clamp(self, value: str, low: int, high: int, dtype: DType, lanes: int) -> str:
        low_text, high_text = self.constant(low, dtype, lanes), self.constant(high, dtype, lanes)
        value = self.select(self._compare("lt", [value, low_text], dtype, lanes), low_text, value, dtype, lanes)
        return self.select(self._compare("gt", [value, high_text], dtype, lanes), high_text, value, dtype, lanes)

    def _ldexp_by_bits(self, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        """Multiply by two powers of two made of exponent bits, each by half of the power, so that a denormal result is
        rounded once. Powers are clamped to twice the range of exponents."""
        bias, mantissa = (127, 23) if result.bits == 32 else (1023, 52)
        power, kind, integer = types[1], register_type(result, lanes), register_type(types[1], lanes)
        clamped = self._clamp(args[1], -2 * bias + 2, 2 * bias, power, lanes)
        half = self.line(f"ashr {integer} {clamped}, {self.constant(1, power, lanes)}")
        value = args[0]
        for step in (half, self.line(f"sub {integer} {clamped}, {half}")):
            biased = self.line(f"add {integer} {step}, {self.constant(bias, power, lanes)}")
            bits = self.line(f"shl {integer} {biased}, {self.constant(mantissa, power, lanes)}")
            scale = self.line(f"bitcast {integer} {bits} to {kind}")
            value = self.line(f"fmul {kind} {value}, {scale}")
        return value

    def _ldexp_by_float(self, args: list[str], result: DType, lanes: int) -> str:
        """Do the same as ``_ldexp_by_bits`` for a float power, at most twice the bias: adding 1.5 * 2^mantissa + 2 bias
        puts the sum of the two biased halves into the low bits. Shifted by one bit less than the mantissa, without its
        lowest bit, it is the first half as an exponent; the second half is the rest."""
        integer, bias, mantissa = (int32, 127, 23) if result.bits == 32 else (int64, 1023, 52)
        kind, word = register_type(result, lanes), register_type(integer, lanes)
        magic = self.constant(1.5 * 2.0**mantissa + 2 * bias, result, lanes)
        both = self.line(f"bitcast {kind} {self.line(f'fadd {kind} {args[1]}, {magic}')} to {word}")
        doubled = self.line(f"shl {word} {both}, {self.constant(mantissa - 1, integer, lanes)}")
        first = self.line(f"and {word} {doubled}, {self.constant(-1 << mantissa, integer, lanes)}")
        whole = self.line(f"shl {word} {both}, {self.constant(mantissa, integer, lanes)}")
        value = args[0]
        for bits in (first, self.line(f"sub {word} {whole}, {first}")):
            value = self.line(f"fmul {kind} {value}, {self.line(f'bitcast {word} {bits} to {kind}')}")
        return value

    def _bitcast(self, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        if register_type(types[0]) == register_type(result):
            return args[0]
        return self.line(f"bitcast {register_type(types[0], lanes)} {args[0]} to {register_type(result, lanes)}")


def _is_literal(text: str) -> bool:
    return not text.startswith("%")


def _division(op: str) -> Callable[..., str]:
    def run(self: ScalarEmitter, args: list[str], types: list[DType], result: DType, lanes: int) -> str:
        if result.kind == "f":
            return self.line(f"f{op} {register_type(result, lanes)} {args[0]}, {args[1]}")
        return self._int_div(op, args, result, lanes)

    return run


_SPECIAL: dict[str, Callable[..., str]] = {
    "neg": ScalarEmitter._neg,
    "abs": ScalarEmitter._abs,
    "min": lambda self, args, types, result, lanes: self.minmax("min", args, result, lanes),
    "max": lambda self, args, types, result, lanes: self.minmax("max", args, result, lanes),
    "fma": ScalarEmitter._fma,
    "not": ScalarEmitter._not,
    "div": _division("div"),
    "rem": _division("rem"),
    "shl": lambda self, args, types, result, lanes: self._shift("shl", args, result, lanes),
    "shr": lambda self, args, types, result, lanes: self._shift(
        "ashr" if result.kind == "i" else "lshr", args, result, lanes
    ),
    "shr_unsigned": lambda self, args, types, result, lanes: self._shift("lshr", args, result, lanes),
    "mulhi_unsigned": ScalarEmitter._mulhi,
    "select": lambda self, args, types, result, lanes: self.select(*args, result, lanes),
    "cast": ScalarEmitter._cast,
    "bitcast": ScalarEmitter._bitcast,
    "ldexp": ScalarEmitter._ldexp,
    "pair": ScalarEmitter._pair,
    "dot2": ScalarEmitter._dot2,
    "dot4": ScalarEmitter._dot4,
    "dot2i": ScalarEmitter._dot2i,
    "nibble": ScalarEmitter._nibble,
    "reduce_large": lambda self, args, types, result, lanes: self._reduced("reduce_large", args, lanes),
    "reduce_large_rest": lambda self, args, types, result, lanes: self._reduced("reduce_large_rest", args, lanes),
}
