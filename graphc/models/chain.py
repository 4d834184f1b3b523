"""Entries that are chains: programs that run one after the other, and give each other values and sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ShapeError
from graphc.base.sizes.assumptions import by_stage
from graphc.base.sizes.size import Dimension
from graphc.compiler.native_call import native, not_native
from graphc.files.model_manifest import EntrySpec, SegmentSpec
from graphc.models.model_state import ModelState
from graphc.models.sized_model import Sizes, SizesOfModel
from graphc.runtime.call import Executable
from graphc.runtime.native_chain import ChainStep, NativeChain

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

    def __init__(self, spec: EntrySpec, loaded: Sequence[Any], specs: Sequence[EntrySpec], state: ModelState):
        """``loaded`` has a ``model_programs.Loaded`` for each program, ``specs`` its entry."""
        self._spec, self._specs = spec, specs
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
            program = self.programs[number]
            outputs = out if number == len(self.programs) - 1 else None
            return lambda inputs, sizes: program.run(inputs, self._bound(number), outputs)

        return list(self._chain.run(arrays, [runner(i) for i in range(len(self.programs))]))

    def _bound(self, number: int) -> list[np.ndarray]:
        """Return the arrays of a program besides its inputs."""
        held, bound = self._held[number], self.programs[number].bound
        return [held[b.path] if b.path in held else self._state.arrays([b.path])[0] for b in bound]

    def native(self) -> NativeChain | None:
        """Return the native calls of the programs; None where calls of one choose between programs."""
        if not all(isinstance(program, Executable) for program in self.programs):
            return None
        dims = {d.name: d for d in self._spec.dims}
        # The indices of the entry's values among those of the native chain, which also has the sizes as numbers.
        indices, numbers = list(range(len(self._spec.inputs))), dict[int, int]()
        count, steps = len(indices), []
        for number, (segment, spec) in enumerate(zip(self._spec.segments, self._specs, strict=True)):
            inputs = [
                numbers[i] if s.equals is not None and i in numbers else indices[i]
                for i, s in zip(segment.inputs, spec.inputs, strict=True)
            ]
            is_single, assumptions = len(spec.outputs) == 1, [a.known() for a in spec.assumptions]
            kind, arrays = None if is_single else list, self._bound(number)
            call = native(self.programs[number], arrays, not_native, kind, assumptions=assumptions)
            ranges = tuple([(dims[size].low, dims[size].high) for size in segment.sizes])
            steps.append(ChainStep(number, call, tuple(inputs), is_single, ranges))
            numbers |= {len(indices) + i: count + len(spec.outputs) + i for i in range(len(ranges))}
            indices += range(count, count + len(spec.outputs))
            count += len(spec.outputs) + len(ranges)
        return NativeChain(steps)
