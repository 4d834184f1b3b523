"""Winograd: convolutions by small square kernels of constant weights become matrix products of transformed tiles."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from graphc import config
from graphc.ir.build import emit
from graphc.ir.graph import CONSTANT, Graph, Node, Value
from graphc.ir.rewrite import Rule, apply_rules
from graphc.ops.contraction import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.shape import pad
from graphc.ops.winograd import transform_weights, winograd_input, winograd_output
from graphc.passes.base import PassResult

_TILES, _KERNEL = (2, 4), 3
_ADVANTAGE = 1.05
"""By how much the estimate must be better."""
_TRANSFORM, _WEIGHT = 20, 16
"""Multiply-adds that take as long as one element of a transformed tile, and as one weight from memory."""


@dataclass(frozen=True)
class Winograd:
    """Computes convolutions with 4 multiplications where the direct sum takes 9, by the transforms of ops.winograd.

    Needs: canonical form with padding as nodes of its own, after folding of constants. Does: a 3x3 convolution with
    stride, dilation and groups of 1 and constant weights becomes transform, product, transform where the estimate says
    that it takes less than 1 / 1.3 of the time; the weights are transformed at once. GRAPHC_WINOGRAD=off leaves all as
    they are. Leaves: results that differ from the direct sum by rounding, about as much again as that itself does.

        %y = conv(%x, %w) : f32[1,64,8,8]    ->    %v = winograd_input(%x) {...} : f32[36,4,64]
                                                   %m = matmul(%v, %u) : f32[36,4,64]
                                                   %y = winograd_output(%m) {...} : f32[1,64,8,8]
    """

    name: str = "winograd"

    def run(self, graph: Graph) -> PassResult:
        """Changes the graph in place; counts convolutions."""
        return PassResult(graph, apply_rules(graph, RULES) if config.read().winograd else 0)


def _convolution(graph: Graph, node: Node) -> Value | None:
    """conv(x, constant) -> its tiles times transformed weights, transformed back."""
    x, weight = node.operands
    plain = all(v == 1 for v in (*node.attrs["stride"], *node.attrs["dilation"], node.attrs["groups"]))
    padded = any(map(any, node.attrs["padding"]))
    if not plain or padded or weight.node.op is not CONSTANT or weight.shape[2:] != (_KERNEL, _KERNEL):
        return None
    tile = min(_TILES, key=lambda t: _turned(x.shape, node.result.shape, t))
    if weight.dtype.kind != "f" or not _pays(x.shape, node.result.shape, tile):
        return None
    with use(GraphDispatcher(graph, node.location)):
        tiles = winograd_input(_whole_tiles(x, tile), tile=tile, kernel=_KERNEL)
        turned = transform_weights(np.asarray(weight.node.attrs["value"]), tile)
        (factors,) = emit(graph, CONSTANT, (), {"value": turned}, node.location)
        return winograd_output(matmul(tiles, factors), tile=tile, kernel=_KERNEL, shape=node.result.shape)


def _pays(image: tuple[int, ...], result: tuple[int, ...], tile: int) -> bool:
    direct = _KERNEL**2 * image[1] * result[1] * (result[0] * prod(result[2:]) + _WEIGHT)
    return _turned(image, result, tile) * _ADVANTAGE < direct


def _turned(image: tuple[int, ...], result: tuple[int, ...], tile: int) -> int:
    """Multiply-adds, with transforms and the reading of weights counted as such."""
    tiles = result[0] * prod(-(-s // tile) for s in result[2:])
    weights = image[1] * result[1] * (tiles + _WEIGHT)
    return (tile + _KERNEL - 1) ** 2 * (weights + _TRANSFORM * tiles * (image[1] + result[1]))


def _whole_tiles(x: Value, tile: int) -> Value:
    """The image with zeros after the last rows and columns, so that tiles cover it; one padding instead of two."""
    missing = [-(s - _KERNEL + 1) % tile for s in x.shape[2:]]
    if not any(missing):
        return x
    low, high, source = (0, 0, 0, 0), (0, 0, *missing), x
    attrs = x.node.attrs
    if x.node.op is pad.op and attrs["value"] == 0 and not any(attrs["interior"]):
        source, low = x.node.operands[0], attrs["low"]
        high = tuple(a + b for a, b in zip(attrs["high"], high, strict=True))
    return pad(source, low=low, high=high, interior=(0, 0, 0, 0), value=0)


RULES = [Rule("conv", _convolution)]
"""What makes three nodes of a convolution."""
