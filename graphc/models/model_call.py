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
from graphc.models.model_arguments import opened
from graphc.models.model_state import ModelState
from graphc.models.sized_model import ProgramsBySizes, SizesOfModel
from graphc.runtime.call import Executable

_call_on_tensors = deferred("graphc.models.model_tensors:call_on_tensors")
_PLAIN = frozenset({np.ndarray, bool, int, float})
"""Arguments that are what they are; others may be tensors."""


class Recorder(Protocol):
    """What runs an entry so that its outputs are part of the autograd graph."""

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs, as tensors."""
        ...


class ModelCall:
    """Calls of an entry: what native calls turn to when an argument is not exactly as declared."""

    def __init__(
        self,
        spec: EntrySpec,
        program: Any,
        state: ModelState,
        recorder: Callable[[], Recorder | None] | None = None,
        held: Mapping[str, np.ndarray] = MappingProxyType({}),
    ):
        """``program`` is an Executable, a DeviceExecutable or ProgramsBySizes; ``recorder`` makes what runs calls that
        gradients go through, None where the file holds no derivative; ``held`` as Loaded has it."""
        self.spec = spec
        self.program = program
        self.state = state
        self.recorder = recorder
        self._paths = tuple(b.path for b in program.bound)
        self._writes = tuple(spec.writes)
        self.trained = [state.tensors[path] for path in spec.uses if path in state.parameters()]
        used = state.written.intersection(spec.uses)
        self.gate = state.gate if used else None
        """Keeps calls apart of which one writes states that the other takes."""
        self._held = held
        self.bound = self._arrays()
        self._names = [x.name for x in spec.inputs]
        checked = isinstance(program, ProgramsBySizes) or not spec.assumptions
        self.checks = None if checked else SizesOfModel(spec)
        """What tells of sizes for which the graph is not right."""

    def nested(self, *arrays: np.ndarray, out: Any = None, **named: np.ndarray) -> Any:
        """The outputs as the model nests them."""
        out = [out] if isinstance(out, np.ndarray) else out
        given, named = opened(self._names, arrays, named)
        results = self.listed(*(self._order(given, named) if named else given), out=out)
        return nest(self.spec.structure, results)

    def listed(self, *arrays: Any, out: Sequence[np.ndarray] | None = None) -> list[Any]:
        """The outputs in order; tensors where some input is one."""
        if all(type(a) in _PLAIN for a in arrays):
            return self.run(arrays, out)
        return _call_on_tensors(self, arrays, out)

    def run(self, arrays: Sequence[Any], out: Sequence[np.ndarray] | None) -> list[np.ndarray]:
        """The outputs in order, for arrays and numbers."""
        if self.checks is not None:
            self.checks.of(arrays)
        with self.alone():
            bound = self._arrays() if self.trained else self.bound
            found = self.program.run(arrays, bound, out)
            if self._writes:
                self.state.note_writes(self._writes)
        return found

    def _arrays(self) -> tuple[np.ndarray, ...]:
        """What the program is given besides the inputs."""
        return tuple([self._held[p] if p in self._held else self.state.arrays([p])[0] for p in self._paths])

    def alone(self) -> Any:
        """A context in which no other call writes to what this one takes."""
        return nullcontext() if self.gate is None else self.gate.alone()

    def native(self) -> Callable[..., Any]:
        """``nested``, natively where the outputs are one array or one list or tuple of all."""
        if not self._is_plain:
            return self.nested
        structure, count = self.spec.structure, len(self.spec.outputs)
        plain = list(range(count))
        kinds = {type(None): structure == 0 and count == 1, list: structure == {"list": plain}}
        kinds[tuple] = structure == {"tuple": plain}
        for kind, fits in kinds.items():
            if fits:
                return native(self.program, self.bound, self.nested, None if kind is type(None) else kind, self.gate)
        return self.nested

    def native_list(self) -> Callable[..., list[Any]]:
        """``listed``, natively where it can be."""
        return native(self.program, self.bound, self.listed, list, self.gate) if self._is_plain else self.listed

    @property
    def _is_plain(self) -> bool:
        """Whether nothing is to be looked at but the arguments."""
        if self.trained or (self._writes and self.state.is_recorded):
            return False  # who keeps what a call writes must see that it does
        return self.checks is None and isinstance(self.program, Executable)

    def _order(self, arrays: Sequence[np.ndarray], named: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        names, title = self._names, self.spec.title
        found: dict[str, np.ndarray] = dict(zip(names, arrays, strict=False))
        for name, array in named.items():
            if name not in names:
                raise ArgumentError(f"{title} has no input {name!r}", remedy=f"one of {', '.join(names)}")
            if name in found:
                raise ArgumentError(f"input {name!r} of {title} is given twice")
            found[name] = array
        missing = [name for name in names if name not in found]
        if missing or len(arrays) > len(names):
            what = f"lacks {', '.join(missing)}" if missing else f"has {len(arrays)} arrays by position"
            raise ArgumentError(f"the call of {title} {what}; it takes {', '.join(names)}")
        return [found[name] for name in names]
