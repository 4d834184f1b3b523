"""Register transposes of square blocks, and interleaving, by shuffles."""

from __future__ import annotations

from graphc.base.dtypes import DType
from graphc.codegen.llvm.function import FunctionWriter
from graphc.codegen.llvm.module import Function
from graphc.codegen.llvm.scalar import memory_type


def transpose_registers(function: FunctionWriter, rows: list[str], dtype: DType) -> list[str]:
    """Return the columns of a square block of vectors (a power of two), by exchanging ever larger off-diagonal
    blocks."""
    lanes = len(rows)
    kind = memory_type(dtype, lanes)
    step = 1
    while step < lanes:
        low = [p if not p & step else p - step + lanes for p in range(lanes)]
        high = [p + step if not p & step else p + lanes for p in range(lanes)]
        new = list(rows)
        for i in range(lanes):
            if not i & step:
                new[i] = _shuffle(function, kind, rows[i], rows[i + step], low)
                new[i + step] = _shuffle(function, kind, rows[i], rows[i + step], high)
        rows = new
        step *= 2
    return rows


def interleave_registers(function: FunctionWriter, copies: list[str], start: int, lanes: int, dtype: DType) -> str:
    """Return ``lanes`` elements from ``start`` on of the registers' interleaved sequence."""
    kind, sources = memory_type(dtype, lanes), [divmod(start + p, len(copies)) for p in range(lanes)]
    result = copies[0]
    for number, register in enumerate(copies[1:], start=1):
        picks = []
        for lane_, (lane, copy) in enumerate(sources):
            before = lane if number == 1 else lane_
            picks.append(before if copy < number else lanes + lane if copy == number else -1)
        result = _shuffle(function, kind, result, register, picks)
    return result


def turning_function(dtype: DType, lanes: int) -> Function:
    """Return a function of (source, bytes between its rows, target, bytes between its rows) that transposes a square
    block of ``lanes`` rows in memory. LLVM takes long for its shuffles, so a module has it once."""
    name, kind = f"graphc_turn.{lanes}.{memory_type(dtype)}", memory_type(dtype, lanes)
    f = FunctionWriter({})
    rows = [f.line(f"load {kind}, ptr {p}, align {dtype.itemsize}") for p in _row_pointers(f, "%x", "%a", lanes)]
    columns = transpose_registers(f, rows, dtype)
    for column, pointer in zip(columns, _row_pointers(f, "%y", "%b", lanes), strict=True):
        f.statement(f"store {kind} {column}, ptr {pointer}, align {dtype.itemsize}")
    source, target = "ptr noalias nocapture readonly", "ptr noalias nocapture"
    parameters = ((source, "%x"), ("i64", "%a"), (target, "%y"), ("i64", "%b"))
    return Function(name, parameters, f"entry:\n{f.text()}\n  ret void")


def _row_pointers(function: FunctionWriter, base: str, step: str, rows: int) -> list[str]:
    """Return addresses ``step`` bytes apart. Every fourth one is computed; the others are sums that fit addressing
    modes."""
    steps = [step, *(function.line(f"mul i64 {step}, {k}") for k in (2, 3, 4))]
    pointers = []
    for row in range(rows):
        if row and row % 4 == 0:
            base = function.line(f"getelementptr inbounds i8, ptr {base}, i64 {steps[3]}")
        near = f"getelementptr inbounds i8, ptr {base}, i64 {steps[row % 4 - 1]}"
        pointers.append(function.line(near) if row % 4 else base)
    return pointers


def _shuffle(function: FunctionWriter, kind: str, a: str, b: str, picks: list[int]) -> str:
    mask = ", ".join("i32 poison" if p < 0 else f"i32 {p}" for p in picks)
    return function.line(f"shufflevector {kind} {a}, {kind} {b}, <{len(picks)} x i32> <{mask}>")
