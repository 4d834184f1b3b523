"""Blocks of kernels whose sums are held in tiles, in LLVM: which tile holds what, where it is read and written."""

from __future__ import annotations

from graphc.base.errors import CompileError
from graphc.codegen.llvm.function import FunctionWriter
from graphc.codegen.llvm.memory import MemoryWriter
from graphc.codegen.machine.target import Target
from graphc.codegen.machine.tiles import PANELS, ROWS, SIDE, SUMS, Shape, Tiles
from graphc.ir.kernel.index import Axis, Index, axes_of
from graphc.ir.kernel.statements import Kernel, Load, Loop, Store, walk

_WORD = 4
"""Bytes of a pair of bf16, and of an f32."""


def shapes_of(kernel: Kernel) -> frozenset[Shape]:
    """The shapes of all blocks of a kernel."""
    loops = [(s, around) for s, around in walk(kernel.body) if isinstance(s, Loop) and s.kind == "tile"]
    return frozenset(_shape(s) for s, around in loops if not around or around[-1].kind != "tile")


def _shape(block: Loop) -> Shape:
    steps = next(around[-1].axis.extent for s, around in walk((block,)) if isinstance(s, Load))
    return Shape(block.axis.extent, steps)


class TileWriter:
    """Emits the blocks of one kernel whose sums are held in tiles: loops of kind ``tile`` over rows, vectors side by
    side and lanes, and what is summed inside, of whose innermost loop each run is one product of tiles."""

    def __init__(self, function: FunctionWriter, memory: MemoryWriter, kernel: Kernel, target: Target):
        self.function = function
        self.memory = memory
        self.shapes = shapes_of(kernel)
        self.known = target.tiles
        if self.shapes and self.known is None:
            raise CompileError(f"@{kernel.name}: {target.cpu or target.triple} has no tiles")

    @property
    def tiles(self) -> Tiles:
        """What works on tiles."""
        assert self.known is not None
        return self.known

    def start(self) -> None:
        """At the start of a function: configures tiles once, where all blocks have one shape."""
        if len(self.shapes) == 1:
            self.function.statement(self.tiles.configure(self.function, next(iter(self.shapes))))

    def end(self) -> None:
        """At its end."""
        if self.shapes:
            self.function.statement(self.tiles.release(self.function))

    def block(self, stmt: Loop) -> None:
        """The sums of a block."""
        axes, body = [stmt.axis], stmt.body
        while isinstance(body[0], Loop) and body[0].kind == "tile":
            axes.append(body[0].axis)
            body = body[0].body
        row, side, lane = axes
        loop, store, shape = next(s for s in body if isinstance(s, Loop)), body[-1], _shape(stmt)
        if not isinstance(store, Store) or lane.extent != SIDE:
            raise CompileError(f"tiles of {lane.extent} lanes, or of sums that are not stored, are not known")
        if len(self.shapes) > 1:
            self.function.statement(self.tiles.configure(self.function, shape))
        sums = [(group, v) for group in range(len(shape.groups)) for v in range(side.extent)]
        for group, v in sums:
            self.function.statement(self.tiles.zero(self.function, SUMS + 2 * group + v))
        self._sum(loop, (row, side, lane), shape)
        for group, v in sums:
            pointer = self._pointer(store.buffer, store.index, {row: SIDE * group, side: v, lane: 0})
            step = _WORD * store.index.coefficient(row)
            self.function.statement(self.tiles.store(self.function, SUMS + 2 * group + v, pointer, step))

    def _sum(self, loop: Loop, axes: tuple[Axis, Axis, Axis], shape: Shape) -> None:
        """The loops around the products, and these."""
        if isinstance(loop.body[0], Loop):
            opened = self.function.open_loop(loop.axis)
            self._sum(loop.body[0], axes, shape)
            self.function.close_loop(opened, [])
            return
        loads = [s for s in loop.body if isinstance(s, Load)]
        rows, panel = sorted(loads, key=lambda s: axes[2] in axes_of(s.index))
        for v in range(axes[1].extent):
            for group in range(len(shape.groups)):
                if not v:
                    self._load(ROWS + group, rows, {axes[0]: SIDE * group, loop.axis: 0}, axes[0])
                if not group:
                    self._load(PANELS + v, panel, {axes[1]: v, axes[2]: 0, loop.axis: 0}, loop.axis)
                text = self.tiles.multiply(self.function, SUMS + 2 * group + v, ROWS + group, PANELS + v)
                self.function.statement(text)

    def _load(self, tile: int, stmt: Load, at: dict[Axis, int], along: Axis) -> None:
        step = _WORD * stmt.index.coefficient(along)
        pointer = self._pointer(stmt.buffer, stmt.index, at)
        self.function.statement(self.tiles.load(self.function, tile, pointer, step))

    def _pointer(self, buffer: str, index: Index, at: dict[Axis, int]) -> str:
        return self.memory.address(buffer, self.memory.fix(index, at), {})
