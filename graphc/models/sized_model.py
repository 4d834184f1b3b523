"""Models from files whose inputs have named dimensions: programs for the sizes that calls have."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base import config
from graphc.base.errors import ArgumentError, GraphcError, ShapeError
from graphc.base.lazy import deferred
from graphc.base.locks import Lock
from graphc.base.sizes.named_dims import chosen_sizes
from graphc.base.sizes.shape_patterns import ShapePatterns, as_pattern
from graphc.base.sizes.size import Dimension
from graphc.calls.machine import compile_on, load_on
from graphc.files.model_manifest import EntrySpec
from graphc.models.model_state import ModelState
from graphc.runtime.call import Explain

if TYPE_CHECKING:
    from graphc.compiler.compile import CompiledGraph
    from graphc.ir.graph.graph import Graph

# Graphs are imported when a program is made.
bind = deferred("graphc.ir.graph.interpret:bind")
freeze = deferred("graphc.compiler.freeze:freeze")
settle = deferred("graphc.ir.graph.interpret:settle")

Sizes = dict[Dimension, int]


class SizesOfModel:
    """The sizes of the dimensions of a model in a call, which must be such as its trace has assumed."""

    def __init__(self, spec: EntrySpec):
        self._spec = spec
        self._patterns = ShapePatterns([s.pattern for s in spec.inputs], [s.name for s in spec.inputs])

    def of(self, arrays: Sequence[Any]) -> Sizes:
        """The sizes in a call with these arrays; raises ArgumentError and ShapeError."""
        inputs = self._spec.inputs
        if len(arrays) != len(inputs):
            signature = ", ".join(map(str, inputs))
            raise ArgumentError(f"{self._spec.title}({signature}) takes {len(inputs)} inputs, got {len(arrays)}")
        sizes = self._patterns.solve([as_pattern(a, s.pattern) for a, s in zip(arrays, inputs, strict=True)])
        broken = next((a for a in self._spec.assumptions if not a.holds(sizes)), None)
        if broken is not None:
            known = ", ".join(f"{d.name} = {n}" for d, n in sizes.items())
            raise ShapeError(
                f"{self._spec.title} was traced for {broken}, and is called with {known}",
                remedy="export it again with a hint for the other sizes: gc.Dim(..., hint=...)",
            )
        return sizes

    def named(self, sizes: Mapping[str, int]) -> Sizes:
        """The sizes with these names, the expected ones of others; raises ArgumentError for an unknown name, and for a
        size outside of its range."""
        known = {d.name: d for d in self._spec.dims}
        return chosen_sizes(known, {**{name: d.hint for name, d in known.items()}, **sizes})


class ProgramsBySizes:
    """Programs of a model, each for one size of every dimension; those that were not used for the longest go."""

    def __init__(self, spec: EntrySpec, graph: Graph, state: ModelState, machine: str):
        """``graph`` as it stands in the file, ``machine`` where programs run (see compiled.machine)."""
        self.spec = spec
        self.seconds: dict[str, float] = {}
        """How long the stages of the last compile took."""
        self.sizes = SizesOfModel(spec)
        self._state = state
        self._graph, self._machine = graph, machine
        self._programs: dict[tuple[int, ...], Any] = {}
        self._lock = Lock()
        self._making: dict[tuple[int, ...], Lock] = {}
        """Held while the program for these sizes is made."""
        self.explain: Explain | None = None
        """Says which check fails in a call."""
        self.bound = ()
        """Nothing: it takes params and states out of the model's."""

    def of(self, sizes: Sizes) -> Any:
        """The program for these sizes, compiled when it is the first time."""
        key = tuple([sizes[d] for d in self.spec.dims if d in sizes])
        with self._lock:
            program = self._programs.pop(key, None)
            if program is not None:
                self._programs[key] = program
                return program
            making = self._making.setdefault(key, Lock())
        # Calls of other sizes go on meanwhile.
        with making:
            program = self._programs.get(key) or self._make(sizes)
            with self._lock:
                self._programs[key] = program
                self._making.pop(key, None)
                while len(self._programs) > max(1, config.read().programs):
                    del self._programs[next(iter(self._programs))]
        return program

    def _make(self, sizes: Sizes) -> Any:
        start = time.perf_counter()
        graph = bind(self._graph, {d.name: n for d, n in sizes.items() if d.name in self._graph.dims})
        compiled = compile_on(freeze(graph, self._state.constants), self._machine)
        with self._lock:
            self.seconds.clear()
            self.seconds.update(compiled.stages.seconds or {"cache": time.perf_counter() - start})
        program = load_on(compiled, self._machine)
        program.explain = self.explain
        return program

    def run(
        self, arrays: Sequence[Any], bound: Sequence[np.ndarray] = (), out: Sequence[np.ndarray] | None = None
    ) -> list[np.ndarray]:
        """The outputs in order; params and states are those of the model."""
        program = self.of(self.sizes.of(arrays))
        return program.run(arrays, self._state.arrays([spec.path for spec in program.bound]), out)


def for_all_sizes(
    graph: Graph, weights: Mapping[str, np.ndarray], compile: Callable[[Graph], CompiledGraph]
) -> CompiledGraph | GraphcError:
    """One program for all sizes of the dimensions of a graph for which it holds, with these weights as constants, as
    ``compile`` makes it; or why there is none."""
    try:
        return compile(freeze(settle(graph), weights))
    except GraphcError as error:
        return error
