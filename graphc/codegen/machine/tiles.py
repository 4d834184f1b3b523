"""Registers that hold tiles of sums, and what works on them: the part that each family of processors writes its way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from graphc.codegen.machine.instruction import Writer

SIDE = 16
"""Rows of a tile at most, and words of 4 bytes in each."""
SUMS, ROWS, PANELS = 0, 4, 6
"""Numbers of the tiles that hold sums (two by two), rows, and parts of panels (two each)."""


@dataclass(frozen=True)
class Shape:
    """What the tiles of a block hold: its rows, and the steps of a sum that a product takes, two terms each."""

    rows: int
    steps: int

    @property
    def groups(self) -> tuple[int, ...]:
        """Rows of the tiles below each other."""
        return tuple([min(SIDE, self.rows - first) for first in range(0, self.rows, SIDE)])


@dataclass(frozen=True)
class Tiles:
    """LLVM statements on tiles of a family of processors; what they need is declared before."""

    configure: Callable[[Writer, Shape], str]
    """Gives all tiles the sizes that a shape asks for, and makes them zero."""
    release: Callable[[Writer], str]
    """Tiles are not used any more, so that threads need not be switched with them."""
    zero: Callable[[Writer, int], str]
    load: Callable[[Writer, int, str, int], str]
    """(writer, tile, pointer, bytes from one row to the next)."""
    store: Callable[[Writer, int, str, int], str]
    multiply: Callable[[Writer, int, int, int], str]
    """Adds the products of rows and a panel of pairs of bf16 to a tile of sums of f32."""
