"""AMX: eight tiles of x86-64 with up to 16 rows of 64 bytes, and products of pairs of bf16 summed in f32.

A product (TDPBF16PS) computes two sums for each element of a tile of sums: of the first terms of all steps, one after
the other from zero, and of the second ones likewise. It rounds each product and sum once, to the nearest, adds both
sums, and adds that to the element. Documented: denormals are read and written as zeros, whatever the control word says,
and nothing traps.
"""

from __future__ import annotations

from graphc.codegen.machine.instruction import InstructionWriter
from graphc.codegen.machine.tiles import PANELS, ROWS, SIDE, SUMS, Shape, Tiles

_LENGTHS, _ROWS = 16, 48
"""Offsets in the configuration: bytes of a row of each tile (two bytes each), and rows (one byte each)."""


def _bytes(shape: Shape) -> list[int]:
    """Return the 64 bytes that configure the tiles, in palette 1."""
    numbers, line = [1, *[0] * 63], 4 * SIDE
    sizes = [(PANELS + i, line, shape.steps) for i in range(2)]
    for group, rows in enumerate(shape.groups):
        sizes += [(SUMS + 2 * group + i, line, rows) for i in range(2)]
        sizes.append((ROWS + group, 4 * shape.steps, rows))
    for tile, length, rows in sizes:
        numbers[_LENGTHS + 2 * tile], numbers[_ROWS + tile] = length, rows
    return numbers


def _call(writer: InstructionWriter, name: str, *operands: str) -> str:
    kinds = (f"{x.split()[0]}{' immarg' if x.startswith('i8') else ''}" for x in operands)
    writer.declare(f"llvm.x86.{name}", f"declare void @llvm.x86.{name}({', '.join(kinds)})")
    return f"call void @llvm.x86.{name}({', '.join(operands)})"


def _configure(writer: InstructionWriter, shape: Shape) -> str:
    name = f"@tiles.{shape.rows}.{shape.steps}"
    numbers = ", ".join(f"i8 {n}" for n in _bytes(shape))
    writer.declare(name, f"{name} = private unnamed_addr constant [64 x i8] [{numbers}], align 64")
    return _call(writer, "ldtilecfg", f"ptr {name}")


def _move(name: str):
    def text(writer: InstructionWriter, tile: int, pointer: str, step: int) -> str:
        return _call(writer, name, f"i8 {tile}", f"ptr {pointer}", f"i64 {step}")

    return text


TILES = Tiles(
    configure=_configure,
    release=lambda writer: _call(writer, "tilerelease"),
    zero=lambda writer, tile: _call(writer, "tilezero", f"i8 {tile}"),
    load=_move("tileloadd64"),
    store=_move("tilestored64"),
    multiply=lambda writer, sums, rows, panel: _call(writer, "tdpbf16ps", f"i8 {sums}", f"i8 {rows}", f"i8 {panel}"),
)
FEATURES = frozenset({"+amx-tile", "+amx-bf16"})
"""Features of processors with these tiles."""
