"""Vector registers transposed, as square blocks, and interleaved, by shuffles."""

from __future__ import annotations

from graphc.codegen.llvm_function import FunctionWriter
from graphc.codegen.llvm_scalar import memory_type
from graphc.dtypes import DType


def transpose_registers(function: FunctionWriter, rows: list[str], dtype: DType) -> list[str]:
    """The columns of a square block of vectors (a power of two), by exchanging ever larger off-diagonal blocks."""
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
    """``lanes`` elements from ``start`` on of the sequence that takes one element of each register by turns."""
    kind, sources = memory_type(dtype, lanes), [divmod(start + p, len(copies)) for p in range(lanes)]
    result = copies[0]
    for number, register in enumerate(copies[1:], start=1):
        picks = []
        for place, (lane, copy) in enumerate(sources):
            before = lane if number == 1 else place
            picks.append(before if copy < number else lanes + lane if copy == number else -1)
        result = _shuffle(function, kind, result, register, picks)
    return result


def _shuffle(function: FunctionWriter, kind: str, a: str, b: str, picks: list[int]) -> str:
    mask = ", ".join("i32 poison" if p < 0 else f"i32 {p}" for p in picks)
    return function.line(f"shufflevector {kind} {a}, {kind} {b}, <{len(picks)} x i32> <{mask}>")
