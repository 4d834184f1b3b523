"""Random graphs by number: the same graph for the same seed, in every process and with every version of hypothesis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any
from unittest import mock

import numpy as np

from graphc.ir.graph.graph import Graph
from tests.end_to_end import random_graphs


class _Chooser:
    """Strategies of random graphs, each as a drawn value."""

    def __init__(self, seed: int):
        self.random = Random(seed)

    def integers(self, low: int, high: int) -> int:
        """A number in low..high."""
        return self.random.randint(low, high)

    def booleans(self) -> bool:
        """True or False."""
        return self.random.random() < 0.5

    def sampled_from(self, options: Sequence[Any]) -> Any:
        """One of the options."""
        return self.random.choice(options)

    def permutations(self, options: Iterable[Any]) -> list[Any]:
        """The options in some order."""
        order = list(options)
        self.random.shuffle(order)
        return order


def seeded_graph(seed: int) -> Graph:
    """The random graph with this number."""
    return seeded_call(seed)[0]


def seeded_call(seed: int) -> tuple[Graph, list[np.ndarray]]:
    """The random graph with this number, and one array per input."""
    with mock.patch.object(random_graphs, "st", _Chooser(seed)):
        return random_graphs.grow(lambda chosen: chosen)
