"""Signal-to-noise ratio of each layer with narrow weights, for the inputs that it gets with full weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np

from graphc.base.difference import SignalNoise
from graphc.base.records import dataclass
from graphc.ir.graph.graph import Node, Value
from graphc.ir.graph.interpret import Evaluator
from graphc.passes.precision import Images, Narrowed

_MARKS = ("<- lowest", "<- second lowest", "<- third lowest")
"""Marks of rows in a table."""


@dataclass(frozen=True)
class WeightNoise:
    """Error of the layer that reads a narrow weight."""

    name: str
    """Dotted path of the parameter."""
    stored: str
    """Form of the weight: a precision, or the class of a layer of ``gc.quantize``."""
    snr: float
    """Signal-to-noise ratio in dB of the layer by itself: squares of its results with full weights over squares of the
    differences from them, for the same inputs. A weight with several readers has the sums of all; a recurrent layer has
    one ratio for all of its weights. Infinity for equal results, -infinity where a result overflows."""


def weight_noise(
    narrowed: Narrowed,
    images: Images,
    exact: Mapping[Value, np.ndarray],
    arguments: Sequence[Any],
    paths: Collection[str],
) -> tuple[WeightNoise, ...]:
    """Return the error of each narrow weight, in the order of the first nodes that compute with them.

    ``exact`` has the values of the graph with full weights, ``arguments`` are those of the graph with narrow ones.
    ``paths`` are the paths of all params and states.
    """
    readers = _readers(images)
    evaluator = _LocalNoise(images, exact, readers)
    with np.errstate(all="ignore"):
        evaluator.run(narrowed.graph, arguments)
    first = {weight: node for node, weights in reversed(readers.items()) for weight in weights}
    return tuple(
        WeightNoise(_path(weight, first[weight], paths), images.stored[weight], sums.snr)
        for weight, sums in evaluator.noise.items()
    )


def table(rows: Sequence[WeightNoise]) -> str:
    """Return the rows as aligned text, with marks at the lowest ratios: three, and at most half of the rows."""
    names = max((len(row.name) for row in rows), default=0)
    forms = max((len(row.stored) for row in rows), default=0)
    lowest = sorted((row.snr, i) for i, row in enumerate(rows) if not isnan(row.snr))[: len(rows) // 2]
    marks = {i: f"  {mark}" for (_, i), mark in zip(lowest, _MARKS, strict=False)}
    return "\n".join(
        f"{row.name:{names}}  {row.stored:{forms}}  {row.snr:6.1f} dB{marks.get(i, '')}" for i, row in enumerate(rows)
    )


def _readers(images: Images) -> dict[Node, list[Value]]:
    """Return the nodes that compute with narrow weights, in order, each with the weights that it reads."""
    moved = images.moved_weights()
    readers = {}
    for node in images.graph.nodes():
        weights = [moved[v] for v in node.operands if v in moved]
        if weights and node.results[0] not in moved:
            readers[node] = weights
    return readers


def _path(weight: Value, reader: Node, paths: Collection[str]) -> str:
    """Return the path of a weight. For a constant that was computed from parameters, such as the weight of a
    convolution with batch normalization folded into it, return the path of the reader's module."""
    if weight.name in paths or not reader.location.module:
        return weight.name
    path = f"{reader.location.module}.weight"
    return path if path in paths else reader.location.module


class _LocalNoise(Evaluator):
    """Evaluator of a graph with narrow weights, each of whose nodes gets exact operands: a computed value is compared
    with the one of the graph with full weights, and replaced by it."""

    def __init__(self, images: Images, exact: Mapping[Value, np.ndarray], readers: Mapping[Node, Sequence[Value]]):
        super().__init__()
        self.exact, self.readers = exact, readers
        moved = images.moved_weights()
        self.originals = {image: value for value, image in images.values.items() if value not in moved}
        self.noise = {weight: SignalNoise() for weights in readers.values() for weight in weights}

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        results = list(super().apply(node, operands))
        for i, value in enumerate(node.results):
            original = self.originals.get(value)
            if original is None:
                continue
            exact = self.exact[original]
            for weight in self.readers.get(original.node, ()):
                self.noise[weight].add(exact, results[i])
            results[i] = exact
        return results
