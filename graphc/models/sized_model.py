"""Models from files whose inputs have named dimensions: one program for each combination of sizes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.lazy import deferred
from graphc.base.sizes.named_dims import chosen_sizes
from graphc.base.sizes.shape_patterns import ShapePatterns, as_pattern
from graphc.base.sizes.size import Dimension
from graphc.calls.machine import compile_on, load_on
from graphc.calls.program_store import ProgramStore
from graphc.files.model_manifest import EntrySpec
from graphc.models.model_state import ModelState
from graphc.runtime.call import Explain

if TYPE_CHECKING:
    from graphc.ir.graph.graph import Graph

# Import graphs only when a program is made.
bind = deferred("graphc.ir.graph.interpret:bind")
freeze = deferred("graphc.compiler.freeze:freeze")

Sizes = dict[Dimension, int]


class SizesOfModel:
    """Resolves the sizes of a model's dimensions in a call, and checks the assumptions of the trace on them."""

    def __init__(self, spec: EntrySpec):
        self._spec = spec
        self._patterns = ShapePatterns([s.pattern for s in spec.inputs], [s.name for s in spec.inputs])

    def of(self, arrays: Sequence[Any]) -> Sizes:
        """Return the sizes in a call with these arrays. Raise ArgumentError and ShapeError."""
        inputs = self._spec.inputs
        if len(arrays) != len(inputs):
            signature = ", ".join(map(str, inputs))
            raise ArgumentError(f"{self._spec.title}({signature}) takes {len(inputs)} inputs, got {len(arrays)}")
        remedy = "export it again with examples of these sizes"
        return self._patterns.sizes_of_call(arrays, self._spec.assumptions, self._spec.title, remedy)

    def refused(self, arrays: Sequence[Any]) -> dict[str, int] | None:
        """Return the sizes in a call, by name, where they break an assumption of the trace; None where all hold."""
        sizes = self._patterns.solve([as_pattern(x, s) for x, s in zip(arrays, self._patterns.shapes, strict=True)])
        is_broken = any(not a.holds(sizes) for a in self._spec.assumptions)
        return {d.name: n for d, n in sizes.items()} if is_broken else None

    def named(self, sizes: Mapping[str, int]) -> Sizes:
        """Return the sizes with these names, and the expected sizes of the other dimensions.

        Raise ArgumentError for an unknown name, and for a size out of its range.
        """
        dims = {d.name: d for d in self._spec.dims}
        return chosen_sizes(dims, {**{name: d.hint for name, d in dims.items()}, **sizes})


class ProgramsBySizes:
    """Programs of a model, each for one size of every dimension. The least recently used are dropped."""

    def __init__(self, spec: EntrySpec, graph: Graph, state: ModelState, machine: str):
        """``graph`` is the graph of the file. ``machine`` names the place where programs run (see calls.machine)."""
        self.spec = spec
        self.seconds: dict[str, float] = {}
        """Seconds of each stage of the last compilation."""
        self.sizes = SizesOfModel(spec)
        self._state = state
        self._graph, self._machine = graph, machine
        self._programs: ProgramStore[Any] = ProgramStore()
        self.explain: Explain | None = None
        """Explains which check fails in a call."""
        self.bound = ()
        """Empty: it takes params and states from the model's."""

    def of(self, sizes: Sizes) -> Any:
        """Return the program for these sizes. Compile it at the first use; calls with other sizes proceed meanwhile."""
        key = tuple([sizes[d] for d in self.spec.dims if d in sizes])
        return self._programs.find_or_make(key, lambda: self._make(sizes))

    def _make(self, sizes: Sizes) -> Any:
        start = time.perf_counter()
        graph = bind(self._graph, {d.name: n for d, n in sizes.items() if d.name in self._graph.dims})
        compiled = compile_on(freeze(graph, self._state.constants), self._machine)
        self.seconds.clear()
        self.seconds.update(compiled.stages.seconds or {"cache": time.perf_counter() - start})
        program = load_on(compiled, self._machine)
        program.explain = self.explain
        return program

    def run(
        self, arrays: Sequence[Any], bound: Sequence[np.ndarray] = (), out: Sequence[np.ndarray] | None = None
    ) -> list[np.ndarray]:
        """Return the outputs in order, using the model's params and states."""
        program = self.of(self.sizes.of(arrays))
        return program.run(arrays, self._state.arrays([spec.path for spec in program.bound]), out)
