"""Instructions with an LLVM form for every family: masked memory, prefetch, non-temporal stores."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.codegen.machine.instruction import (
    Instruction,
    InstructionWriter,
    bytes_of,
    call,
    lanes_of,
    of_type,
    over_lanes,
    suffix_of,
)


def _masked_load(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    pointer, mask, fill = operands
    mask_kind = of_type(kind, "i1")
    name = f"llvm.masked.load.{suffix_of(kind)}.p0"
    arguments = [("ptr", pointer), ("i32", str(bytes_of(kind))), (mask_kind, mask), (kind, fill)]
    return call(writer, kind, name, arguments)


def _masked_store(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    value, pointer, mask = operands
    name = f"llvm.masked.store.{suffix_of(kind)}.p0"
    arguments = [(kind, value), ("ptr", pointer), ("i32", str(bytes_of(kind))), (of_type(kind, "i1"), mask)]
    return call(writer, "void", name, arguments)


def _gather(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    pointers, mask, fill = operands
    name = f"llvm.masked.gather.{suffix_of(kind)}.v{lanes_of(kind)}p0"
    arguments = [
        (of_type(kind, "ptr"), pointers),
        ("i32", str(bytes_of(kind))),
        (of_type(kind, "i1"), mask),
        (kind, fill),
    ]
    return call(writer, kind, name, arguments)


def _scatter(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    value, pointers, mask = operands
    name = f"llvm.masked.scatter.{suffix_of(kind)}.v{lanes_of(kind)}p0"
    arguments = [
        (kind, value),
        (of_type(kind, "ptr"), pointers),
        ("i32", str(bytes_of(kind))),
        (of_type(kind, "i1"), mask),
    ]
    return call(writer, "void", name, arguments)


def _prefetch(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    arguments = [("ptr", operands[0]), ("i32", "0"), ("i32", "3"), ("i32", "1")]
    return call(writer, "void", "llvm.prefetch.p0", arguments)


def _non_temporal_store(writer: InstructionWriter, operands: Sequence[str], kind: str) -> str:
    value, pointer = operands
    return f"store {kind} {value}, ptr {pointer}, align {lanes_of(kind) * bytes_of(kind)}, !nontemporal !{{i32 1}}"


_MASK = "m: bool = load %m[l]", "n: i64 = cast(m)"
_SET = "1 <= [n:0..1] < 2"
_POSITION = "p: i64 = load %p[l]"
_INDEXED = "[p:0..LAST]"

MASKED_LOAD = Instruction(
    "masked load",
    _masked_load,
    over_lanes(
        "%x: TYPE[LANES] in, %m: bool[LANES] in, %o: TYPE[LANES] in, %r: TYPE[LANES] out",
        *(*_MASK, f"x: TYPE = load %x[l] if {_SET} else TYPE(ZERO)", "o: TYPE = load %o[l]"),
        *("v: TYPE = select(m, x, o)", "store %r[l] = v"),
    ),
    ("memory", "mask", "vector"),
)
"""Loads neighbours in memory where a mask is set, else takes the fill value; does not access memory elsewhere."""
MASKED_STORE = Instruction(
    "masked store",
    _masked_store,
    over_lanes(
        "%v: TYPE[LANES] in, %r: TYPE[LANES] inout, %m: bool[LANES] in",
        *(*_MASK, "v: TYPE = load %v[l]", f"store %r[l] = v if {_SET}"),
    ),
    ("vector", "memory", "mask"),
)
"""Stores neighbours in memory where a mask is set."""
GATHER = Instruction(
    "gather",
    _gather,
    over_lanes(
        "%x: TYPE[LANES] in, %p: i64[LANES] in, %m: bool[LANES] in, %o: TYPE[LANES] in, %r: TYPE[LANES] out",
        *(*_MASK, _POSITION, f"x: TYPE = load %x[{_INDEXED}] if {_SET} else TYPE(ZERO)", "o: TYPE = load %o[l]"),
        *("v: TYPE = select(m, x, o)", "store %r[l] = v"),
    ),
    ("places", "mask", "vector"),
)
"""Loads elements at addresses where a mask is set, else takes the fill value."""
SCATTER = Instruction(
    "scatter",
    _scatter,
    over_lanes(
        "%v: TYPE[LANES] in, %r: TYPE[LANES] inout, %p: i64[LANES] in, %m: bool[LANES] in",
        *(*_MASK, _POSITION, "v: TYPE = load %v[l]", f"store %r[{_INDEXED}] = v if {_SET}"),
    ),
    ("vector", "places", "mask"),
)
"""Stores elements at addresses where a mask is set, in the order of the lanes."""
PREFETCH = Instruction(
    "prefetch",
    _prefetch,
    over_lanes("%x: TYPE[LANES] inout", "x: TYPE = load %x[l]", "store %x[l] = x"),
    ("memory",),
    mnemonics=("prefetch", "prfm"),
)
"""Fetches a line of memory into the caches; changes no value."""
NON_TEMPORAL_STORE = Instruction(
    "non-temporal store",
    _non_temporal_store,
    over_lanes("%v: TYPE[LANES] in, %r: TYPE[LANES] inout", "v: TYPE = load %v[l]", "store %r[l] = v"),
    ("vector", "memory"),
    mnemonics=("movnt", "vmovnt", "stnp"),
)
"""Writes a whole line of memory past the caches."""

COMMON = (MASKED_LOAD, MASKED_STORE, GATHER, SCATTER, PREFETCH, NON_TEMPORAL_STORE)
