"""Register blocks for named dimensions: of those that are as fast for expected sizes the best for smaller ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isqrt

from graphc.base.sizes.named_dims import Dim
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.contraction.match import find_contraction
from graphc.codegen.schedule.contraction.register_block import Tile, rank_tiles
from graphc.ir.kernel.dims import bind_kernel, dims_of_kernel
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.statements import Kernel


def suit_small_sizes(kernel: Kernel, tile: Tile, target: Target, free: frozenset[str] = frozenset()) -> Tile:
    """``tile``, the best block of a contraction with named dimensions for expected sizes, or another one that is about
    as fast, where that is expected to take clearly less time for fewer: rows of pixels instead of rows of images, of
    which a call may have one."""
    contraction = find_contraction(kernel)
    if contraction is None or contraction.expected is contraction:
        return tile
    k = target.costs.contraction
    found = rank_tiles(contraction, target, free)
    rivals = [t for t in found if t.cycles <= tile.cycles * k.as_fast and _axes(t) != _axes(tile)]
    if not rivals:
        return tile
    rivals.insert(0, tile)
    slower = dict.fromkeys((t.label for t in rivals), 0.0)
    for fewer in _fewer(kernel):
        again = find_contraction(fewer)
        cycles = {t.label: t.cycles for t in rank_tiles(again, target, free) if t.label in slower} if again else {}
        if cycles:
            best, worst = min(cycles.values()), max(cycles.values())
            slower = {label: most + cycles.get(label, worst) / best for label, most in slower.items()}
    suited = min(rivals, key=lambda t: slower[t.label])
    return suited if slower[suited.label] * k.clearly_less < slower[tile.label] else tile


def cycles_at(kernel: Kernel, tile: Tile, sizes: Mapping[str, int], target: Target, free: frozenset[str]) -> float:
    """Estimated cycles of a contraction, cut into a block like ``tile``, for the sizes of some dimensions: that of the
    best block over the same axes, as fewer vectors side by side are computed where a panel is not full."""
    contraction = find_contraction(_expecting(kernel, sizes))
    found = rank_tiles(contraction, target, free) if contraction else []
    alike = [t.cycles for t in found if _names(t) == _names(tile)]
    return min(alike, default=tile.cycles)


def _axes(tile: Tile) -> tuple[Axis | None, ...]:
    return tile.vector, tile.row, tile.column


def _names(tile: Tile) -> tuple[str, ...]:
    """What blocks have in common that differ in their sizes alone."""
    pack = tile.pack.buffer if tile.pack else ""
    return (*(axis.name if axis else "" for axis in _axes(tile)), pack)


def _fewer(kernel: Kernel) -> Iterator[Kernel]:
    """The kernel as it would be if the least sizes were expected, and if sizes between these and the expected ones."""
    dims = dims_of_kernel(kernel)
    least = {name: max(1, d.low) for name, d in dims.items()}
    between = {name: isqrt(least[name] * d.hint) for name, d in dims.items()}
    for sizes in (least, between):
        if any(sizes[name] < d.hint for name, d in dims.items()):
            yield _expecting(kernel, sizes)


def _expecting(kernel: Kernel, sizes: Mapping[str, int]) -> Kernel:
    """The kernel as it would be if these sizes were expected."""
    known = {name: d for name, d in dims_of_kernel(kernel).items() if name in sizes}
    return bind_kernel(kernel, {n: Dim(n, d.low, d.high, sizes[n], d.common) for n, d in known.items()})
