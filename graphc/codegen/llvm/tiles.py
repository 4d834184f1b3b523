"""Blocks of kernels with sums in tile registers: which tile holds which rows, and its loads and stores."""

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
    """Return the shapes of all blocks of a kernel."""
    loops = [(s, around) for s, around in walk(kernel.body) if isinstance(s, Loop) and s.kind == "tile"]
    return frozenset(_shape(s) for s, around in loops if not around or around[-1].kind != "tile")


def _shape(block: Loop) -> Shape:
    steps = next(around[-1].axis.extent for s, around in walk((block,)) if isinstance(s, Load))
    return Shape(block.axis.extent, steps)


class TileWriter:
    """Emits the blocks of one kernel with sums in tiles: loops of kind ``tile`` over rows, vectors side by side and
    lanes. Each run of the innermost loop inside is one product of tiles."""

    def __init__(self, function: FunctionWriter, memory: MemoryWriter, kernel: Kernel, target: Target):
        self.function = function
        self.memory = memory
        self.shapes = shapes_of(kernel)
        self.target_tiles = target.tiles
        if self.shapes and self.target_tiles is None:
            raise CompileError(f"@{kernel.name}: {target.cpu or target.triple} has no tiles")

    @property
    def tiles(self) -> Tiles:
        """Tile statements of the target."""
        assert self.target_tiles is not None
        return self.target_tiles

    def start(self) -> None:
        """Configure tiles at the start of a function, if all blocks have one shape."""
        if len(self.shapes) == 1:
            self.function.statement(self.tiles.configure(self.function, next(iter(self.shapes))))

    def end(self) -> None:
        """Release the tiles at the end of a function."""
        if self.shapes:
            self.function.statement(self.tiles.release(self.function))

    def block(self, stmt: Loop) -> None:
        """Emit a block: its sums, and their stores."""
        axes, body = [stmt.axis], stmt.body
        while isinstance(body[0], Loop) and body[0].kind == "tile":
            axes.append(body[0].axis)
            body = body[0].body
        row, side, lane = axes
        loop, store, shape = next(s for s in body if isinstance(s, Loop)), body[-1], _shape(stmt)
        if not isinstance(store, Store) or lane.extent != SIDE:
            raise CompileError(f"cannot emit tiles of {lane.extent} lanes, or of sums that are not stored")
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
        """Emit the loops around the products, and the products."""
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
