"""Programs of one graph: one for all sizes of its calls, or as many as there are ways in which it depends on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from graphc.base import config
from graphc.base.errors import GraphcError
from graphc.base.locks import Lock
from graphc.base.sizes.assumptions import Assumptions
from graphc.base.sizes.shape_patterns import Number, ShapePatterns
from graphc.base.sizes.size import Dimension, at, hint
from graphc.interop.torch.program import Program
from graphc.interop.torch.sizes import Sizes

REMEMBERED = 1024
"""Of so many different sizes of calls it is remembered which program is theirs."""
MOST = 16
"""Programs that are kept, the newest: of those for ranges of sizes, and of those for the sizes of one call."""
Make = Callable[[Sizes, Assumptions], Program]
"""Makes a program that reads sizes so; it writes down what it assumes of them, answered as is said there."""


def programs_of(examples: Sequence[Any], names: Sequence[str], make: Make) -> Callable[[list[Any]], list[Any]]:
    """What runs a graph for all sizes of its arguments, for which ``examples`` stand: one program, or Programs."""
    sizes = Sizes()
    shapes = [Number((sizes.of(e),)) if isinstance(e, (int, torch.SymInt)) else sizes.shape(e.shape) for e in examples]
    patterns = ShapePatterns(shapes, names)
    return Programs(patterns, make) if patterns.dimensions else make(Sizes(), Assumptions())


class Programs:
    """The programs of a graph with named dimensions.

    What a trace assumes of sizes (see base.assumptions) no guard of Dynamo checks, so a call looks for a program of
    which all that was assumed holds for its sizes. Where no program for all sizes can be made, and for sizes out of the
    range that a dimension has (negative numbers), there is one for each."""

    def __init__(self, patterns: ShapePatterns, make: Make):
        """``patterns`` are the shapes of the arguments. Raises what making a program raises, here and in calls."""
        self._boxed_call = True
        """By which AOTAutograd knows that it takes a list."""
        self._patterns = patterns
        self._make = make
        self._places = [(e.tensor, -1 if e.tensor in patterns.numbers else e.dim) for e, *_ in patterns.steps]
        """Where the sizes stand from which all dimensions follow: number of the argument, and of its dimension."""
        self._lock = Lock()
        self._known: dict[tuple[int, ...], Program] = {}
        """By what calls have at these places."""
        self._general: list[Program] = []
        self._alone: list[tuple[int, ...]] = []
        """Those of calls that have a program of their own, the newest last."""
        self._is_general = True
        """False where no program for all sizes could be made."""
        self.count = 0
        """How many programs were made so far."""
        self._found(tuple([hint(patterns.shapes[i][max(d, 0)]) for i, d in self._places]))

    def __call__(self, args: list[Any]) -> list[Any]:
        """The results for these arguments; the list is emptied."""
        key = tuple([args[i] if d < 0 else args[i].shape[d] for i, d in self._places])
        program = self._known.get(key)
        if program is None:
            with self._lock:
                program = self._known.get(key) or self._found(key)
        return program(args)

    def _found(self, key: tuple[int, ...]) -> Program:
        """The program for a call, which is remembered."""
        sizes = self._sizes(key)
        fits = all(d.low <= n <= d.high for d, n in sizes.items())
        general = self._general if fits else []
        program = next((p for p in general if p.assumptions.broken(sizes) is None), None)
        if program is None:
            self.count += 1
            program = self._made(key, sizes) if fits and self._is_general else self._made_alone(key, sizes)
        if len(self._known) >= REMEMBERED:
            self._known.clear()
            self._alone.clear()
        self._known[key] = program
        return program

    def _sizes(self, key: tuple[int, ...]) -> dict[Dimension, int]:
        sizes: dict[Dimension, int] = {}
        for given, (_, dimension, factor, rest) in zip(key, self._patterns.steps, strict=True):
            sizes[dimension] = (given - at(rest, sizes)) // factor
        return sizes

    def _made(self, key: tuple[int, ...], sizes: Mapping[Dimension, int]) -> Program:
        """A program for a call, and for as many others as may be."""
        try:
            program = self._make(Sizes(), Assumptions(sizes))
        except GraphcError as error:
            # NOTE: what is wrong for other reasons is so for these sizes alone, too, and is raised there.
            program = self._made_alone(key, sizes)
            self._is_general = False
            config.logger("compile").warning("a graph is compiled for each size of its arguments: %s", error.what)
            return program
        self._general = [program, *self._general][:MOST]
        return program

    def _made_alone(self, key: tuple[int, ...], sizes: Mapping[Dimension, int]) -> Program:
        program = self._make(Sizes({d.name: n for d, n in sizes.items()}), Assumptions())
        self._alone.append(key)
        if len(self._alone) > MOST:
            self._known.pop(self._alone.pop(0), None)
        return program
