"""Tile registers, and the interface of their instructions, which each family of processors implements."""

from __future__ import annotations

from collections.abc import Callable

from graphc.base.records import dataclass
from graphc.codegen.machine.instruction import InstructionWriter

SIDE = 16
"""Maximum number of rows of a tile, and of 4-byte words in each."""
SUMS, ROWS, PANELS = 0, 4, 6
"""Numbers of the tiles that hold sums (two by two), rows, and parts of panels (two each)."""


@dataclass(frozen=True)
class Shape:
    """Shape of the tiles of a block: its rows, and the steps of a sum per product, two terms each."""

    rows: int
    steps: int

    @property
    def groups(self) -> tuple[int, ...]:
        """Numbers of rows of the tiles below each other."""
        return tuple([min(SIDE, self.rows - first) for first in range(0, self.rows, SIDE)])


@dataclass(frozen=True)
class Tiles:
    """LLVM statements on tiles of a family of processors. Each declares its callees."""

    configure: Callable[[InstructionWriter, Shape], str]
    """Sets the sizes of all tiles for a shape, and zeroes the tiles."""
    release: Callable[[InstructionWriter], str]
    """Ends the use of tiles, so that thread switches need not save them."""
    zero: Callable[[InstructionWriter, int], str]
    load: Callable[[InstructionWriter, int, str, int], str]
    """(writer, tile, pointer, bytes from one row to the next)."""
    store: Callable[[InstructionWriter, int, str, int], str]
    multiply: Callable[[InstructionWriter, int, int, int], str]
    """Adds the products of rows and a panel of pairs of bf16 to a tile of sums of f32."""
