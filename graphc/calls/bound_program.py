"""Compiled programs as they are called: with the params and states of a binding, or on arrays that are all given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from operator import is_
from typing import Any

import numpy as np

from graphc.calls.bindings import Binding, Slot
from graphc.calls.device_binding import DeviceBinding, DeviceProgram
from graphc.calls.machine import HOST, compile_on, load_on
from graphc.compiler.native_call import native
from graphc.guards.watch_words import Watch
from graphc.ir.graph.graph import Graph, Value, input_class
from graphc.passes.base import Pass
from graphc.passes.pipeline import PIPELINE
from graphc.runtime.call import Executable
from graphc.runtime.devices.program import DeviceExecutable
from graphc.runtime.fast_call import REUSE_FROM, Gate
from graphc.runtime.host_calls import rewind
from graphc.tensors.journal import USED


def build(graph: Graph, passes: Sequence[Pass] = PIPELINE, machine: str = HOST) -> Any:
    """Code for a graph, loaded where it runs: an Executable, or a DeviceExecutable."""
    return load_on(compile_on(graph, machine, passes), machine)


def bind(program: Any, binding: Binding, words: Watch, results: int) -> BoundProgram | DeviceProgram:
    """A program with its params and states, of whose outputs the first ``results`` are given to the caller."""
    if isinstance(binding, DeviceBinding):
        return DeviceProgram(program, binding, results)
    return BoundProgram(program, binding, words)


def binding_of(program: Any, slots: Sequence[Slot], written: Sequence[bool]) -> Binding:
    """The binding that a program takes."""
    if isinstance(program, DeviceExecutable):
        return DeviceBinding(slots, written, program.device)
    return Binding(slots, written)


def bound_values(graph: Graph, program: Executable) -> list[Value]:
    """The params and states of a graph in the order in which its program takes them."""
    by_path = {v.node.attrs["path"]: v for v in graph.inputs if input_class(v) != "input"}
    return [by_path[spec.path] for spec in program.bound]


class BoundProgram:
    """A program with its params and states, called natively where it can be."""

    def __init__(self, program: Executable, binding: Binding, words: Watch, single: bool = False):
        """``words`` must be what they were for a native call."""
        self.program = program
        self.binding = binding
        self._words = words
        self.single = single
        """Whether the native callable returns the one output itself, not a list."""
        self._native: tuple[Any, Callable[..., Any]] = (None, not_native)
        self._gate = Gate() if any(spec.written for spec in program.bound) else None

    @property
    def nbytes(self) -> int:
        """Bytes of the program, and of the two blocks per large output that native calls use again."""
        if self.program.manifest.dims:
            return self.program.nbytes
        blocks = (2 * spec.nbytes for spec in self.program.outputs if spec.nbytes >= REUSE_FROM)
        return self.program.nbytes + sum(blocks)

    def native(self) -> Callable[..., Any]:
        """The native callable for the arrays of the binding as they are; it returns None where it does nothing."""
        bound = self.binding.arrays()
        source, call = self._native
        if source is not bound:
            kind = None if self.single else list
            call = native(self.program, bound, not_native, kind, self._gate, self._words, apart=True)
            self._native = (bound, call)
        return call

    def run(self, given: list[Any]) -> list[np.ndarray]:
        """The outputs for these inputs, arrays and whole numbers; calls that write to the same states run one after the
        other."""
        if USED[0]:
            self.binding.tell_writes()
        found = self.native()(*given)
        if found is None:
            rewind()
            found = self._run_checked(given)
        elif self.single:
            found = [found]
        self.binding.note_writes()
        return found

    def _run_checked(self, given: list[Any]) -> list[np.ndarray]:
        with self.alone():
            return self.program.run(given, self.binding.arrays())

    def alone(self) -> Any:
        """A context in which no other call of the program writes to the states."""
        return nullcontext() if self._gate is None else self._gate.alone()


class GivenProgram:
    """A program without written states, of which each call gives all arrays: params that are the same as in the call
    before cost nothing."""

    def __init__(self, program: Any):
        self.program = program
        self._native: tuple[Sequence[Any] | None, Callable[..., Any]] = (None, not_native)

    @property
    def nbytes(self) -> int:
        """Bytes of the program."""
        return self.program.nbytes

    def run(
        self, given: Sequence[Any], bound: tuple[Any, ...] = (), sizes: Mapping[str, int] | None = None
    ) -> list[Any]:
        """The outputs for these inputs and params; ``sizes`` are those of named dimensions that no input tells."""
        program = self.program
        if isinstance(program, DeviceExecutable):
            return program.run(given, bound, None, sizes, host=False)
        known, call = self._native
        if known is None or len(known) != len(bound) or not all(map(is_, bound, known)):
            call = native(program, bound, not_native, apart=True)
            known, self._native = bound, (bound, call)
        found = call(*given)
        if found is None:
            rewind()
            found = program.run(given, known, None, sizes)
        return found


def not_native(*_: Any, **__: Any) -> None:
    """The fallback of native calls: the call is left to the Python way, which knows the tensors."""
