"""Winograd: turn convolutions with 3x3 kernels into matrix products of transformed tiles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from graphc.base import config
from graphc.base.records import dataclass
from graphc.base.sizes.size import always, hint, is_size
from graphc.codegen.machine.costs import DEFAULT, Costs, RewriteCosts
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.graph.rewrite import Rule, apply_rules
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.contraction.winograd import (
    tiles_of,
    transform_weights,
    winograd_input,
    winograd_output,
    winograd_weight,
)
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement.shape import pad
from graphc.passes.base import PassResult
from graphc.passes.call_invariant import constant_array, is_call_invariant

_TILES, _KERNEL = (2, 4), 3


@dataclass(frozen=True)
class Winograd:
    """Compute convolutions with 4 multiplications instead of 9, by the transforms of ops.contraction.winograd.

    Needs: canonical form with padding in nodes of its own, after constant folding. Does: turns a 3x3 convolution with
    stride and groups of 1 into transform, product, transform where the estimate is lower; constant weights are
    transformed at compile time. A dilated convolution is a dense one of each image that every dilation-th row and
    column form. GRAPHC_WINOGRAD=off and strict order disable the pass. Leaves: results that differ from the direct sum
    by about its own rounding error; an infinite or NaN element makes NaN of all tiles that read it.

        %y = conv(%x, %w) : f32[1,64,8,8]    ->    %v = winograd_input(%x) {...} : f32[36,4,64]
                                                   %m = matmul(%v, %u) : f32[36,4,64]
                                                   %y = winograd_output(%m) {...} : f32[1,64,8,8]
    """

    name: str = "winograd"
    costs: Costs = DEFAULT

    def run(self, graph: Graph) -> PassResult:
        """Change the graph in place; count convolutions."""
        if not is_allowed(self.costs):
            return PassResult(graph, 0)
        reasons: list[str] = []
        rewrite = partial(_convolution, self.costs.rewrites, reasons)
        rule = Rule("conv", rewrite, "convolution", _convolution.__doc__ or "")
        return PassResult(graph, apply_rules(graph, [rule]), tuple(reasons))


def is_allowed(costs: Costs) -> bool:
    """Check that neither the user nor strict order disables the method."""
    return config.read().winograd and not costs.strict_order


def takes_window(node: Node) -> bool:
    """Check for a convolution with a 3x3 kernel, stride 1, and the same dilation of rows and columns."""
    square = node.operands[1].shape[2:] == (_KERNEL, _KERNEL)
    return square and set(node.attrs["stride"]) == {1} and len(set(node.attrs["dilation"])) == 1


def _convolution(costs: RewriteCosts, reasons: list[str], graph: Graph, node: Node) -> Value | None:
    """Rewrite conv(x, weight) as a product of transformed tiles and weights, transformed back."""
    x, weight = node.operands
    plain = node.attrs["groups"] == 1 and not any(map(any, node.attrs["padding"]))
    if not plain or weight.dtype.kind != "f" or not takes_window(node):
        return None
    dilation = node.attrs["dilation"][0]
    tile, gain = best_tile(node, costs)
    if not tile:
        reasons.append(f"%{node.result.name}: no tiles, for sizes that are known at run time decide how many there are")
        return None
    if gain < costs.winograd_advantage:
        return None
    constant = constant_array(weight)
    reasons.append(f"%{node.result.name}: {gain:.2f} times less work by tiles of {tile}x{tile}, estimated")
    with use(GraphDispatcher(graph, node.location)):
        spare, image = _spare(node, tile, dilation, costs), _whole_tiles(x, _missing(node, tile, dilation))
        tiles = winograd_input(image, tile=tile, kernel=_KERNEL, spare=spare, dilation=dilation)
        if constant is not None:
            (factors,) = emit(graph, CONSTANT, (), {"value": transform_weights(constant, tile)}, node.location)
        else:
            factors = winograd_weight(weight, tile=tile)
        products = matmul(tiles, factors)
        return winograd_output(products, tile=tile, kernel=_KERNEL, shape=node.result.shape, dilation=dilation)


def best_tile(node: Node, costs: RewriteCosts) -> tuple[int, float]:
    """Return the tile with the least work for a convolution that ``takes_window`` accepts, and how many times less that
    is than the direct sum's. Return 0, 0 where no tile is possible."""
    x, weight = node.operands
    dilation = node.attrs["dilation"][0]
    tiles = [tile for tile in _TILES if _covers(node, tile, dilation)]
    if not tiles:
        return 0, 0.0
    price = costs.winograd_weight if is_call_invariant(weight) else costs.winograd_live_weight
    work = {tile: _transformed_work(node, tile, dilation, price, costs) for tile in tiles}
    tile = min(tiles, key=work.__getitem__)
    positions = hint(x.shape[0] * prod(node.result.shape[2:]))
    direct = _KERNEL**2 * x.shape[1] * node.result.shape[1] * (positions + costs.winograd_weight)
    return tile, direct / work[tile]


def _covers(node: Node, tile: int, dilation: int) -> bool:
    """Check whether tiles cover the result for any image size, with the same number of extra rows and columns for
    all."""
    if not any(map(is_size, (*node.operands[1].shape, *node.result.shape[1:]))):
        return True
    if dilation > 1 or any(map(is_size, (*node.operands[1].shape, node.result.shape[1]))):
        return False
    missing = _missing(node, tile, dilation)
    counts = ((side + more) // tile for side, more in zip(node.result.shape[2:], missing, strict=True))
    return not any(map(is_size, missing)) and all(always("<=", 1, count) for count in counts)


def _missing(node: Node, tile: int, dilation: int) -> list[int]:
    """Return how many more rows and columns complete the tiles of the result."""
    return [-s % (tile * dilation) for s in node.result.shape[2:]]


def _spare(node: Node, tile: int, dilation: int, costs: RewriteCosts) -> int:
    """Return 1 where the components of a transformed tile would be a multiple of a page apart, in one set of a cache;
    an extra tile prevents that."""
    result = node.result
    tiles = hint(tiles_of(result.shape, tile, dilation))
    channels = (node.operands[0].shape[1], result.shape[1])
    return int(any(tiles * n * result.dtype.itemsize % costs.winograd_page_bytes == 0 for n in channels))


def _transformed_work(node: Node, tile: int, dilation: int, price: int, costs: RewriteCosts) -> int:
    """Estimate the work as multiply-adds; transforms and the reading of weights (``price`` for each) count as such."""
    channels, result = node.operands[0].shape[1], node.result.shape
    tiles = hint(tiles_of(result, tile, dilation))
    weights = channels * result[1] * (tiles + price)
    return (tile + _KERNEL - 1) ** 2 * (weights + costs.winograd_transform * tiles * (channels + result[1]))


def _whole_tiles(x: Value, missing: Sequence[int]) -> Value:
    """Pad the image after its last rows and columns so that tiles cover it; merge this with an existing padding."""
    if not any(missing):
        return x
    low, high, source = (0, 0, 0, 0), (0, 0, *missing), x
    attrs = x.node.attrs
    if x.node.op is pad.op and attrs["value"] == 0 and not any(attrs["interior"]):
        source, low = x.node.operands[0], attrs["low"]
        high = tuple(a + b for a, b in zip(attrs["high"], high, strict=True))
    return pad(source, low=low, high=high, interior=(0, 0, 0, 0), value=0)
