"""Sums in tiles on x86-64 (AMX): their shapes, products of tiles of bf16, and where tiles are read and written."""

from __future__ import annotations

from dataclasses import dataclass

from graphc.base.errors import CompileError
from graphc.codegen.llvm.function import FunctionWriter
from graphc.codegen.llvm.memory import MemoryWriter
from graphc.ir.kernel.index import Axis, axes_of
from graphc.ir.kernel.statements import Kernel, Load, Loop, Store, walk

_SIDE = 16
"""Rows of a tile, and f32 in each."""
_SUMS, _ROWS, _PANELS = 0, 4, 6
"""Tiles that hold sums (two by two), rows, and what is read of panels."""


@dataclass(frozen=True)
class Shape:
    """What the tiles of a block hold: its rows, and the steps of a sum that a product takes."""

    rows: int
    steps: int

    @property
    def groups(self) -> list[int]:
        """Rows of the tiles below each other."""
        return [min(_SIDE, self.rows - first) for first in range(0, self.rows, _SIDE)]

    @property
    def text(self) -> str:
        """The 64 bytes that configure the processor's tiles so: bytes of a row, and rows, of each."""
        numbers = [1, *[0] * 63]
        for group, rows in enumerate(self.groups):
            for tile, length in ((_SUMS + 2 * group, 64), (_SUMS + 2 * group + 1, 64), (_ROWS + group, 4 * self.steps)):
                numbers[16 + 2 * tile], numbers[48 + tile] = length, rows
        for tile in (_PANELS, _PANELS + 1):
            numbers[16 + 2 * tile], numbers[48 + tile] = 64, self.steps
        return ", ".join(f"i8 {n}" for n in numbers)


def shapes_of(kernel: Kernel) -> frozenset[Shape]:
    """The shapes of all blocks of a kernel."""
    loops = [(s, around) for s, around in walk(kernel.body) if isinstance(s, Loop) and s.kind == "tile"]
    return frozenset(_shape(s) for s, around in loops if not around or around[-1].kind != "tile")


def _shape(block: Loop) -> Shape:
    steps = [s.axis.extent for s, around in walk((block,)) if isinstance(s, Load) for s in around[-1:]]
    return Shape(block.axis.extent, steps[0])


class TileWriter:
    """Emits the blocks of one kernel whose sums are held in tiles."""

    def __init__(self, function: FunctionWriter, memory: MemoryWriter, kernel: Kernel):
        self.function = function
        self.memory = memory
        self.shapes = shapes_of(kernel)

    def start(self) -> None:
        """At the start of a function: configures tiles once, where all blocks have one shape."""
        if len(self.shapes) == 1:
            self._configure(next(iter(self.shapes)))

    def end(self) -> None:
        """At its end: tiles are given back, so that threads need not be switched with them."""
        if self.shapes:
            self._call("tilerelease", "")

    def block(self, stmt: Loop) -> None:
        """The sums of a block of rows, vectors side by side, and lanes."""
        axes, body = [stmt.axis], stmt.body
        while isinstance(body[0], Loop) and body[0].kind == "tile":
            axes.append(body[0].axis)
            body = body[0].body
        row, side, lane = axes
        loop, store = next(s for s in body if isinstance(s, Loop)), body[-1]
        if not isinstance(store, Store) or lane.extent != _SIDE:
            raise CompileError(f"tiles of {lane.extent} lanes, or of sums that are not stored, are not known")
        shape = _shape(stmt)
        if len(self.shapes) > 1:
            self._configure(shape)
        tiles = [(group, v) for group in range(len(shape.groups)) for v in range(side.extent)]
        for group, v in tiles:
            self._call("tilezero", f"i8 {_SUMS + 2 * group + v}")
        self._sum(loop, (row, side, lane), shape)
        for group, v in tiles:
            at = {row: _SIDE * group, side: v, lane: 0}
            self._move("tilestored64", _SUMS + 2 * group + v, store, at, store.index.coefficient(row))

    def _sum(self, loop: Loop, axes: tuple[Axis, Axis, Axis], shape: Shape) -> None:
        inner = loop.body[0]
        if isinstance(inner, Loop):
            opened = self.function.open_loop(loop.axis)
            self._sum(inner, axes, shape)
            self.function.close_loop(opened, [])
            return
        row, side, lane = axes
        loads = [s for s in loop.body if isinstance(s, Load)]
        rows, panel = sorted(loads, key=lambda s: lane in axes_of(s.index))
        step, done = loop.axis, set[int]()
        for v in range(side.extent):
            for group in range(len(shape.groups)):
                if not v:
                    at = {row: _SIDE * group, step: 0}
                    self._move("tileloadd64", _ROWS + group, rows, at, rows.index.coefficient(row))
                if v not in done:
                    at = {side: v, lane: 0, step: 0}
                    self._move("tileloadd64", _PANELS + v, panel, at, panel.index.coefficient(step))
                    done.add(v)
                self._call("tdpbf16ps", f"i8 {_SUMS + 2 * group + v}, i8 {_ROWS + group}, i8 {_PANELS + v}")

    def _move(self, name: str, tile: int, stmt: Load | Store, at: dict[Axis, int], step: int) -> None:
        """Reads or writes a tile whose rows lie ``step`` elements of 4 bytes apart."""
        pointer = self.memory.address(stmt.buffer, self.memory.fix(stmt.index, dict(at)), {})
        self._call(name, f"i8 {tile}, ptr {pointer}, i64 {4 * (step or _SIDE)}")

    def _configure(self, shape: Shape) -> None:
        name = f"@tiles.{shape.rows}.{shape.steps}"
        self.function.declare(name, f"{name} = private unnamed_addr constant [64 x i8] [{shape.text}], align 64")
        self._call("ldtilecfg", f"ptr {name}")

    def _call(self, name: str, given: str) -> None:
        kinds = ", ".join(x.split()[0] + (" immarg" if x.startswith("i8") else "") for x in given.split(", ") if x)
        self.function.declare(f"llvm.x86.{name}", f"declare void @llvm.x86.{name}({kinds})")
        self.function.statement(f"call void @llvm.x86.{name}({given})")
