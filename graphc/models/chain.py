"""Entries that are chains: programs that run one after the other, and give each other values and sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ShapeError
from graphc.base.sizes.assumptions import by_stage
from graphc.base.sizes.size import Dimension
from graphc.files.model_manifest import EntrySpec, SegmentSpec
from graphc.models.model_state import ModelState
from graphc.models.sized_model import Sizes, SizesOfModel

Program = Callable[[Sequence[Any], Sizes], Sequence[Any]]
"""Runs one program of an entry, for its inputs and for the sizes that are known then. Returns its outputs."""


class Chain:
    """The order of an entry's programs in a call. An entry without segments is a chain of one."""

    def __init__(self, spec: EntrySpec):
        self._title = spec.title
        self._segments = spec.segments or (SegmentSpec(tuple(range(len(spec.inputs)))),)
        dims = {d.name: d for d in spec.dims}
        self._counts = [[dims[size] for size in segment.sizes] for segment in self._segments]
        counts = [d for group in self._counts for d in group]
        self._first, *later = by_stage(spec.assumptions, counts)
        self._assumptions = dict(zip(counts, later, strict=True))
        self._sizes = SizesOfModel(spec, self._first)

    def run(self, inputs: Sequence[Any], programs: Sequence[Program]) -> Sequence[Any]:
        """Return the outputs of a call. Raise ShapeError where a size breaks an assumption of the trace."""
        known = self._sizes.of(inputs)
        values, results = list(inputs), list(inputs)
        for number, (segment, program) in enumerate(zip(self._segments, programs, strict=True)):
            results = list(program([values[i] for i in segment.inputs], known))
            values += results
            for dimension, count in zip(self._counts[number], results, strict=False):
                self._read(dimension, int(count), known)
        return results

    def _read(self, dimension: Dimension, count: int, known: Sizes) -> None:
        """Add the size that a program gives to the known ones."""
        known[dimension] = count
        what = ""
        if not dimension.low <= count <= dimension.high:
            what = f"{dimension.name} is {count}, outside of {dimension.low}..{dimension.high}"
        elif broken := next((a for a in self._assumptions[dimension] if not a.holds(known)), None):
            what = f"{self._title} was traced for {broken}, but this call computes {dimension.name} = {count}"
        if what:
            raise ShapeError(what, remedy="export it again with examples that compute such a size")


class ChainedPrograms:
    """The loaded programs of a chain, run in order by each call."""

    def __init__(self, spec: EntrySpec, loaded: Sequence[Any], state: ModelState):
        """``loaded`` has a ``model_programs.Loaded`` for each program."""
        self.programs = [part.program for part in loaded]
        seconds: Counter[str] = Counter()
        for part in loaded:
            seconds.update(part.seconds or {})
        self.seconds = seconds if any(part.seconds is not None for part in loaded) else None
        """Seconds of each stage of the compilations."""
        self._chain, self._state = Chain(spec), state
        self._held = [part.held for part in loaded]
        self.bound = ()
        """Empty: each program takes params and states from the model's."""

    def run(
        self, arrays: Sequence[Any], bound: Sequence[np.ndarray] = (), out: Sequence[np.ndarray] | None = None
    ) -> list[Any]:
        """Return the outputs in order, using the model's params and states."""

        def runner(number: int) -> Program:
            program, held = self.programs[number], self._held[number]
            outputs = out if number == len(self.programs) - 1 else None

            def run(inputs: Sequence[Any], sizes: Sizes) -> Sequence[Any]:
                own = [held[b.path] if b.path in held else self._state.arrays([b.path])[0] for b in program.bound]
                return program.run(inputs, own, outputs)

            return run

        return list(self._chain.run(arrays, [runner(i) for i in range(len(self.programs))]))
