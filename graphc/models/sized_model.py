"""Models from files whose inputs have named dimensions: programs for all sizes, for some, or for single ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.locks import Lock
from graphc.base.sizes.assumptions import Assumption, Assumptions
from graphc.base.sizes.named_dims import chosen_sizes
from graphc.base.sizes.shape_patterns import ShapePatterns, as_pattern
from graphc.base.sizes.size import Dimension
from graphc.base.sizes.size_limits import answered
from graphc.calls.program_store import OneForAll, ProgramStore
from graphc.files.model_manifest import AssumptionSpec, EntrySpec
from graphc.models.model_state import ModelState
from graphc.runtime.call import Explain

Sizes = dict[Dimension, int]
_FOR_MANY = "for many"
"""Key of the programs for more than single sizes."""


class SizesOfModel:
    """Resolves the sizes of a model's dimensions in a call, and checks the assumptions of the trace on them."""

    def __init__(self, spec: EntrySpec, assumptions: Sequence[AssumptionSpec] | None = None):
        """``assumptions`` are those to check (default: all)."""
        self._spec = spec
        self._assumptions = spec.assumptions if assumptions is None else assumptions
        self._patterns = ShapePatterns([s.pattern for s in spec.inputs], [s.name for s in spec.inputs])

    def of(self, arrays: Sequence[Any]) -> Sizes:
        """Return the sizes in a call with these arrays. Raise ArgumentError and ShapeError."""
        inputs = self._spec.inputs
        if len(arrays) != len(inputs):
            signature = ", ".join(map(str, inputs))
            raise ArgumentError(f"{self._spec.title}({signature}) takes {len(inputs)} inputs, got {len(arrays)}")
        remedy = "export it again with examples of these sizes"
        return self._patterns.sizes_of_call(arrays, self._assumptions, self._spec.title, remedy)

    def by_name(self, arrays: Sequence[Any]) -> dict[str, int]:
        """Return the sizes in a call with these arrays, by name. Raise as ``of`` does."""
        return {dimension.name: size for dimension, size in self.of(arrays).items()}

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


class SizedProgram:
    """Program for the sizes for which its assumptions hold."""

    def __init__(self, program: Any, assumptions: Sequence[Assumption]):
        self.program, self.assumptions = program, tuple(assumptions)
        self.used = 0
        """Time of the last use, see ProgramStore."""

    @property
    def nbytes(self) -> int:
        """Bytes that dropping the program frees."""
        return self.program.nbytes


class SizedPrograms:
    """Programs of an entry with named dimensions: one for all sizes, or one for each side of what a stage of the
    compiler assumes of them. Where no such program can be made, each size has one.

    The least recently used are dropped.
    """

    def __init__(
        self,
        spec: EntrySpec,
        state: ModelState,
        general: Callable[[Sequence[Assumption]], Any],
        alone: Callable[[Mapping[str, int]], Any],
    ):
        """``general`` makes the program for all sizes that meet further assumptions besides those of the graph,
        ``alone`` the program of single sizes.
        """
        self.spec = spec
        self.sizes = SizesOfModel(spec)
        self._state = state
        self._general, self._alone = general, alone
        self._one_for_all = OneForAll(spec.title)
        self._assumed = tuple([assumption.known() for assumption in spec.assumptions])
        self._programs: ProgramStore[SizedProgram] = ProgramStore()
        self._lock = Lock()
        self.explain: Explain | None = None
        """Explains which check fails in a call."""
        self.bound = ()
        """Empty: it takes params and states from the model's."""

    def add(self, program: Any, assumptions: Sequence[Assumption]) -> None:
        """Add a program for the sizes for which further assumptions hold."""
        self._programs.add(_FOR_MANY, SizedProgram(program, assumptions))

    def of(self, sizes: Sizes) -> Any:
        """Return the program for these sizes. Make it at the first use."""
        made = self.for_many(sizes)
        if made is not None:
            return made.program
        key = tuple([sizes[d] for d in self.spec.dims if d in sizes])
        named = {d.name: n for d, n in sizes.items()}
        return self._programs.find_or_make(key, lambda: SizedProgram(self._alone(named), ())).program

    def for_many(self, sizes: Sizes) -> SizedProgram | None:
        """Return the program for these sizes and as many others as possible; None where these need one of their own."""
        made = self._fitting(sizes)
        if made is None and self._one_for_all.holds:
            with self._lock:
                made = self._fitting(sizes) or self._make(sizes)
        return made

    def _fitting(self, sizes: Sizes) -> SizedProgram | None:
        programs = self._programs.find(_FOR_MANY)
        made = next((p for p in programs if all(a.holds(sizes) for a in p.assumptions)), None)
        if made is not None and made is not self._programs.last:
            self._programs.use(made)
        return made

    def _make(self, sizes: Sizes) -> SizedProgram | None:
        assumptions = Assumptions.after(self._assumed, sizes)
        count, dims = len(assumptions.found), {d.name: d for d in self.spec.dims}

        def general() -> SizedProgram:
            added = tuple(assumptions.found.values())[count:]
            made = SizedProgram(self._general(added), added)
            self._programs.add(_FOR_MANY, made)
            return made

        return self._one_for_all.make(general, lambda: None, lambda error: answered(error, assumptions, dims))

    def run(
        self, arrays: Sequence[Any], bound: Sequence[np.ndarray] = (), out: Sequence[np.ndarray] | None = None
    ) -> list[np.ndarray]:
        """Return the outputs in order, using the model's params and states."""
        program = self.of(self.sizes.of(arrays))
        program.explain = self.explain
        return program.run(arrays, self._state.arrays([spec.path for spec in program.bound]), out)
