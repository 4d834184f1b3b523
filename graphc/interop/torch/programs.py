"""Programs of one graph: one for all sizes, or one for each range of sizes on which the trace depends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from graphc.base.locks import Lock
from graphc.base.sizes.assumptions import Assumptions
from graphc.base.sizes.shape_patterns import Number, ShapePatterns
from graphc.base.sizes.size import Dimension, at, hint
from graphc.base.sizes.size_limits import answered
from graphc.calls.program_store import OneForAll
from graphc.interop.torch.program import TorchProgram
from graphc.interop.torch.sizes import GraphSizes

REMEMBERED = 1024
"""Number of distinct call sizes whose program is remembered."""
MOST = 16
"""Number of programs to keep, newest first: of those for ranges of sizes, and of those for single sizes."""
Make = Callable[[GraphSizes, Assumptions], TorchProgram]
"""Makes a program that reads sizes this way, and records its assumptions about them."""


def programs_of(examples: Sequence[Any], names: Sequence[str], make: Make) -> Callable[[list[Any]], list[Any]]:
    """Return the callable that runs a graph for all sizes of its arguments: one program, or Programs.

    ``examples`` are stand-ins for the arguments.
    """
    sizes = GraphSizes()
    shapes = [Number((sizes.of(e),)) if isinstance(e, (int, torch.SymInt)) else sizes.shape(e.shape) for e in examples]
    patterns = ShapePatterns(shapes, names)
    return Programs(patterns, make) if patterns.dimensions else make(GraphSizes(), Assumptions())


class Programs:
    """Programs of a graph with named dimensions.

    No guard of Dynamo checks the assumptions of a trace about sizes (see base.sizes.assumptions). Each call therefore
    selects a program whose assumptions hold for its sizes. Sizes have a program of their own where no general program
    can be made, and where they lie outside the range of a dimension (negative numbers).
    """

    def __init__(self, patterns: ShapePatterns, make: Make):
        """Make the first program. ``patterns`` are the shapes of the arguments.

        Raises the errors of making a program, here and in calls.
        """
        self._boxed_call = True
        """Tells AOTAutograd that the call takes a list."""
        self._patterns = patterns
        self._make = make
        self._size_positions = [(e.tensor, -1 if e.tensor in patterns.numbers else e.dim) for e, *_ in patterns.steps]
        """Positions of the sizes that determine all dimensions: index of the argument and of its dimension."""
        self._lock = Lock()
        self._by_sizes: dict[tuple[int, ...], TorchProgram] = {}
        """Programs by the sizes of calls at these positions."""
        self._general: list[TorchProgram] = []
        self._specialized: list[tuple[int, ...]] = []
        """Sizes with a program of their own, newest last."""
        self._one_for_all = OneForAll("a graph")
        self.count = 0
        """Number of programs made so far."""
        self._select(tuple([hint(patterns.shapes[i][max(d, 0)]) for i, d in self._size_positions]))

    def __call__(self, args: list[Any]) -> list[Any]:
        """Return the results for these arguments. Empties the list."""
        key = tuple([args[i] if d < 0 else args[i].shape[d] for i, d in self._size_positions])
        program = self._by_sizes.get(key)
        if program is None:
            with self._lock:
                program = self._by_sizes.get(key) or self._select(key)
        return program(args)

    def _select(self, key: tuple[int, ...]) -> TorchProgram:
        """Return the program for the sizes of a call, and remember it."""
        sizes = self._sizes(key)
        fits = all(d.low <= n <= d.high for d, n in sizes.items())
        general = self._general if fits else []
        program = next((p for p in general if p.assumptions.broken(sizes) is None), None)
        if program is None:
            self.count += 1
            program = self._make_for(key, sizes) if fits else self._specialize(key, sizes)
        if len(self._by_sizes) >= REMEMBERED:
            self._by_sizes.clear()
            self._specialized.clear()
        self._by_sizes[key] = program
        return program

    def _sizes(self, key: tuple[int, ...]) -> dict[Dimension, int]:
        sizes: dict[Dimension, int] = {}
        for size, (_, dimension, factor, offset) in zip(key, self._patterns.steps, strict=True):
            sizes[dimension] = (size - at(offset, sizes)) // factor
        return sizes

    def _make_for(self, key: tuple[int, ...], sizes: Mapping[Dimension, int]) -> TorchProgram:
        """Make a program for a call and as many other calls as possible."""

        assumptions = Assumptions(sizes)

        def general() -> TorchProgram:
            program = self._make(GraphSizes(), assumptions)
            self._general = [program, *self._general][:MOST]
            return program

        return self._one_for_all.make(
            general,
            lambda: self._specialize(key, sizes),
            lambda error: answered(error, assumptions, self._patterns.dimensions),
        )

    def _specialize(self, key: tuple[int, ...], sizes: Mapping[Dimension, int]) -> TorchProgram:
        program = self._make(GraphSizes({d.name: n for d, n in sizes.items()}), Assumptions())
        self._specialized.append(key)
        if len(self._specialized) > MOST:
            self._by_sizes.pop(self._specialized.pop(0), None)
        return program
