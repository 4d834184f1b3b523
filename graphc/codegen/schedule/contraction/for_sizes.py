"""Register blocks for named dimensions: among the fastest for expected sizes, choose the best for smaller sizes."""

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
    """Return ``tile``, the best block for expected sizes, or one about as fast and clearly better for small sizes.

    An example is a block over rows of pixels instead of images, since a call may have only one image.
    """
    contraction = find_contraction(kernel)
    if contraction is None or contraction.expected is contraction:
        return tile
    k = target.costs.contraction
    ranked = rank_tiles(contraction, target, free)
    rivals = [t for t in ranked if t.cycles <= tile.cycles * k.as_fast and _axes(t) != _axes(tile)]
    if not rivals:
        return tile
    rivals.insert(0, tile)
    slower = dict.fromkeys((t.label for t in rivals), 0.0)
    for smaller in _smaller(kernel):
        again = find_contraction(smaller)
        cycles = {t.label: t.cycles for t in rank_tiles(again, target, free) if t.label in slower} if again else {}
        if cycles:
            best, worst = min(cycles.values()), max(cycles.values())
            slower = {label: most + cycles.get(label, worst) / best for label, most in slower.items()}
    suited = min(rivals, key=lambda t: slower[t.label])
    return suited if slower[suited.label] * k.clearly_less < slower[tile.label] else tile


def cycles_at(kernel: Kernel, tile: Tile, sizes: Mapping[str, int], target: Target, free: frozenset[str]) -> float:
    """Return the estimated cycles of a contraction for the sizes of some dimensions, with a block like ``tile``.

    The best block over the same axes counts, because a partial panel computes fewer vectors.
    """
    contraction = find_contraction(_expecting(kernel, sizes))
    ranked = rank_tiles(contraction, target, free) if contraction else []
    alike = [t.cycles for t in ranked if _names(t) == _names(tile)]
    return min(alike, default=tile.cycles)


def _axes(tile: Tile) -> tuple[Axis | None, ...]:
    return tile.vector, tile.row, tile.column


def _names(tile: Tile) -> tuple[str, ...]:
    """Return a key with equal values for blocks of different sizes over the same axes."""
    pack = tile.pack.buffer if tile.pack else ""
    return (*(axis.name if axis else "" for axis in _axes(tile)), pack)


def _smaller(kernel: Kernel) -> Iterator[Kernel]:
    """Yield the kernel with the least sizes as expected sizes, with sizes between these and the expected ones, and with
    one of several dimensions at 1, as for one long recording or one step of many."""
    dims = dims_of_kernel(kernel)
    expected = {name: d.hint for name, d in dims.items()}
    least = {name: max(1, d.low) for name, d in dims.items()}
    between = {name: isqrt(least[name] * d.hint) for name, d in dims.items()}
    one = [expected | {name: 1} for name, size in least.items() if size == 1 and len(dims) > 1]
    for sizes in (least, between, *one):
        if any(sizes[name] < hint for name, hint in expected.items()):
            yield _expecting(kernel, sizes)


def _expecting(kernel: Kernel, sizes: Mapping[str, int]) -> Kernel:
    """Return the kernel with these sizes as expected sizes."""
    dims = {name: d for name, d in dims_of_kernel(kernel).items() if name in sizes}
    return bind_kernel(kernel, {n: Dim(n, d.low, d.high, sizes[n], d.common) for n, d in dims.items()})
