"""Calls of a loaded entry with arguments in any form: arrays, tensors, by position, by name, nested as exported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.lazy import deferred
from graphc.compiler.native_call import native
from graphc.files.model_manifest import EntrySpec
from graphc.files.structure import nest
from graphc.models.chain import ChainedPrograms
from graphc.models.model_arguments import opened
from graphc.models.model_state import ModelState
from graphc.models.sized_model import SizedPrograms, SizesOfModel
from graphc.runtime.call import Executable

_call_on_tensors = deferred("graphc.models.model_tensors:call_on_tensors")
_PLAIN = frozenset({np.ndarray, bool, int, float})
"""Types of arguments that are no tensors. Others may be."""


class CallRecorder(Protocol):
    """Runs an entry and records the call on the autograd tape."""

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs, as tensors."""
        ...


class ModelCall:
    """Python calls of an entry. Native calls fall back to them when an argument is not exactly as declared."""

    def __init__(
        self,
        spec: EntrySpec,
        program: Any,
        state: ModelState,
        recorder: Callable[[], CallRecorder | None] | None = None,
        derived: Mapping[str, np.ndarray] = MappingProxyType({}),
    ):
        """``program`` is that of ``Loaded``. ``recorder`` creates a runner of calls
        with gradients; None where the file holds no derivative. For ``held`` see ``Loaded``.
        """
        self.spec = spec
        self.program = program
        self.state = state
        self.recorder = recorder
        self._paths = tuple(b.path for b in program.bound)
        self._writes = tuple(spec.writes)
        self.trained = [state.tensors[path] for path in spec.uses if path in state.parameters()]
        used = state.written.intersection(spec.uses)
        self.gate = state.gate if used else None
        """Serializes calls of which one writes a state that the other reads."""
        self._held = derived
        self.bound = self._arrays()
        self._names = [x.name for x in spec.inputs]
        checked = isinstance(program, (SizedPrograms, ChainedPrograms)) or not spec.assumptions
        self.checks = None if checked else SizesOfModel(spec)
        """Checks that the sizes of a call meet the assumptions of the graph."""
        self.others: Sequence[Any] = ()
        """Loaded entries for sizes that do not."""

    def nested(self, *arrays: np.ndarray, out: Any = None, **named: np.ndarray) -> Any:
        """Return the outputs nested as the model nests them."""
        out = [out] if isinstance(out, np.ndarray) else out
        positional, named = opened(self._names, arrays, named)
        ordered = self._order(positional, named) if named else positional
        fitting = self._fitting(ordered)
        return nest(fitting.spec.structure, fitting.run_any(ordered, out))

    def _fitting(self, arrays: Sequence[Any]) -> ModelCall:
        """Return the calls of the first entry whose assumptions the sizes of these arrays meet; the calls themselves
        where there is none, whose error says why."""
        if self.others and len(arrays) == len(self._names) and SizesOfModel(self.spec).refused(arrays) is not None:
            for other in self.others:
                if SizesOfModel(other.spec).refused(arrays) is None:
                    return other.prepare()[0]
        return self

    def listed(self, *arrays: Any, out: Sequence[np.ndarray] | None = None) -> list[Any]:
        """Return the outputs in order, as tensors where some input is one."""
        return self._fitting(arrays).run_any(arrays, out)

    def run_any(self, arrays: Sequence[Any], out: Sequence[np.ndarray] | None) -> list[Any]:
        """Return the outputs of this entry in order, as tensors where some input is one."""
        if all(type(a) in _PLAIN for a in arrays):
            return self.run(arrays, out)
        return _call_on_tensors(self, arrays, out)

    def run(self, arrays: Sequence[Any], out: Sequence[np.ndarray] | None) -> list[np.ndarray]:
        """Return the outputs in order, for arrays and numbers."""
        if self.checks is not None:
            self.checks.of(arrays)
        with self.alone():
            bound = self._arrays() if self.trained else self.bound
            outputs = self.program.run(arrays, bound, out)
            if self._writes:
                self.state.note_writes(self._writes)
        return outputs

    def _arrays(self) -> tuple[np.ndarray, ...]:
        """Return the program's arrays apart from the inputs."""
        return tuple([self._held[p] if p in self._held else self.state.arrays([p])[0] for p in self._paths])

    def alone(self) -> Any:
        """Return a context in which no other call writes to states that this call reads."""
        return nullcontext() if self.gate is None else self.gate.alone()

    def native(self) -> Callable[..., Any]:
        """Return a native ``nested`` where the outputs are one array, or one list or tuple of all; ``nested`` with a
        short way for a chain of native programs; else ``nested``."""
        if isinstance(self.program, ChainedPrograms):
            return self._chained()
        if not self._is_plain:
            return self.nested
        structure, count = self.spec.structure, len(self.spec.outputs)
        plain = list(range(count))
        kinds = {type(None): structure == 0 and count == 1, list: structure == {"list": plain}}
        kinds[tuple] = structure == {"tuple": plain}
        for kind, fits in kinds.items():
            if fits:
                return self._native(self.nested, None if kind is type(None) else kind)
        return self.nested

    def _chained(self) -> Callable[..., Any]:
        """Return ``nested``, with native calls of the programs of a chain for arrays by position."""
        chain = None if self.trained or self.gate or self._writes else self.program.native()
        if chain is None:
            return self.nested
        structure = self.spec.structure

        def call(*arrays: Any, out: Any = None, **named: Any) -> Any:
            results = None if named or out is not None or len(arrays) != len(self._names) else chain.run(arrays, {})
            if results is None:
                return self.nested(*arrays, out=out, **named)
            return nest(structure, results if type(results) is list else [results])

        return call

    def native_list(self) -> Callable[..., list[Any]]:
        """Return a native ``listed`` where possible; else ``listed``."""
        return self._native(self.listed, list) if self._is_plain else self.listed

    def _native(self, fallback: Callable[..., Any], kind: type | None) -> Callable[..., Any]:
        assumptions = [assumption.known() for assumption in self.spec.assumptions]
        return native(self.program, self.bound, fallback, kind, self.gate, assumptions=assumptions)

    @property
    def _is_plain(self) -> bool:
        """Whether a call depends on its arguments only."""
        if self.trained or (self._writes and self.state.is_recorded):
            return False  # Python must count the writes for tensors saved by the tape
        return isinstance(self.program, Executable)

    def _order(self, arrays: Sequence[np.ndarray], named: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        names, title = self._names, self.spec.title
        by_name: dict[str, np.ndarray] = dict(zip(names, arrays, strict=False))
        for name, array in named.items():
            if name not in names:
                raise ArgumentError(f"{title} has no input {name!r}", remedy=f"use one of {', '.join(names)}")
            if name in by_name:
                raise ArgumentError(f"input {name!r} of {title} is given twice")
            by_name[name] = array
        missing = [name for name in names if name not in by_name]
        if missing or len(arrays) > len(names):
            what = f"lacks {', '.join(missing)}" if missing else f"has {len(arrays)} arrays by position"
            raise ArgumentError(f"the call of {title} {what}; it takes {', '.join(names)}")
        return [by_name[name] for name in names]
