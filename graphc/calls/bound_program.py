"""Callable programs: bound to params and states, or with all arrays as arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from operator import is_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base import config
from graphc.base.dtypes import DType, float32
from graphc.base.lazy import deferred
from graphc.base.records import NamedTuple
from graphc.base.sizes.assumptions import Assumption
from graphc.calls.bindings import Binding, Maker, Slot
from graphc.calls.machine import HOST, build_on, compile_on, is_device, load_on
from graphc.compiler import cache
from graphc.compiler.cache import CacheEntry
from graphc.compiler.graph_programs import key_inputs_of
from graphc.compiler.native_call import native, not_native
from graphc.compiler.ready import find_or_build, spec_and_text
from graphc.compiler.tune_budget import no_search, search_first
from graphc.guards.watch_words import WatchTable
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.verify import foreign_ops
from graphc.passes.base import STANDARD, Pass
from graphc.runtime.call import TIMING, Executable
from graphc.runtime.fast_call import REUSE_FROM, Gate
from graphc.runtime.host_calls import rewind
from graphc.tensors.journal import USED
from graphc.tensors.tensor import Tensor

if TYPE_CHECKING:
    from graphc.calls.device_binding import DeviceProgram

DeviceBinding = deferred("graphc.calls.device_binding:DeviceBinding")
bind_on_device = deferred("graphc.calls.device_binding:DeviceProgram")


def program_on(graph: Graph, machine: str, passes: Sequence[Pass] = STANDARD) -> CacheEntry:
    """Return the program of a graph: from the cache, without importing the compiler, or compiled."""
    if passes is not STANDARD or is_device(machine) or foreign_ops(graph):
        no_search(graph)
        return compile_on(graph, machine, passes)
    search_first(graph, machine)
    disk = cache.current()
    spec, facts = spec_and_text(machine)
    key = key_inputs_of(graph, facts) if disk else ()
    entry, is_cached = find_or_build(disk, spec, key, lambda: build_on(graph, machine))
    if is_cached:
        config.logger("compile").info("%s: found in the cache", graph.name)
    return entry


def build(graph: Graph, passes: Sequence[Pass] = STANDARD, machine: str = HOST) -> Any:
    """Compile a graph and load it where it runs: an Executable, or a DeviceExecutable."""
    return load_on(program_on(graph, machine, passes), machine, graph)


def bind(
    program: Any, binding: Binding, words: WatchTable, results: int, assumptions: Sequence[Assumption] = ()
) -> BoundProgram | DeviceProgram:
    """Bind a program to its params and states. The caller gets the first ``results`` outputs."""
    if binding.device is not None:
        return bind_on_device(program, binding, results)
    return BoundProgram(program, binding, words, assumptions=assumptions)


def binding_of(
    program: Any, slots: Sequence[Slot], written: Sequence[bool], makers: Mapping[int, Maker] = MappingProxyType({})
) -> Binding:
    """Return a binding of the kind for a program. ``makers`` convert elements of some slots for a device."""
    if program.device is not None:
        return DeviceBinding(slots, written, program.device, makers)
    return Binding(slots, written)


class BoundProgram:
    """A program bound to its params and states, called natively where possible."""

    def __init__(
        self,
        program: Executable,
        binding: Binding,
        words: WatchTable,
        single: bool = False,
        assumptions: Sequence[Assumption] = (),
    ):
        """A native call requires that ``words`` are unchanged, and sizes that meet ``assumptions``."""
        self.program = program
        self.binding = binding
        self._words, self._assumptions = words, assumptions
        self.single = single
        """Whether the native callable returns the one output itself instead of a list."""
        self._native: tuple[Any, Callable[..., Any]] = (None, not_native)
        self._gate = Gate() if any(spec.written for spec in program.bound) else None

    @property
    def nbytes(self) -> int:
        """Bytes of the program, and of the two blocks per large output that native calls reuse."""
        if self.program.manifest.dims:
            return self.program.nbytes
        blocks = (2 * spec.nbytes for spec in self.program.outputs if spec.nbytes >= REUSE_FROM)
        return self.program.nbytes + sum(blocks)

    def native(self) -> Callable[..., Any]:
        """Return the native callable for the binding's present arrays. It returns None where it declines a call, as all
        do while kernels are timed."""
        return not_native if TIMING else self.bound_native()

    def bound_native(self) -> Callable[..., Any]:
        """Return the native callable for the binding's present arrays, also while kernels are timed."""
        bound = self.binding.arrays()
        source, call = self._native
        if source is not bound:
            kind = None if self.single else list
            refused = (True, self._assumptions)
            call = native(self.program, bound, not_native, kind, self._gate, self._words, *refused)
            self._native = (bound, call)
        return call

    def run(self, arguments: list[Any]) -> list[np.ndarray]:
        """Return the outputs for these inputs, arrays and whole numbers.

        Calls that write to the same states run one after another.
        """
        if USED[0]:
            self.binding.announce_writes()
        outputs = self.native()(*arguments)
        if outputs is None:
            rewind()
            outputs = self._run_checked(arguments)
        elif self.single:
            outputs = [outputs]
        self.binding.note_writes()
        return outputs

    def _run_checked(self, arguments: list[Any]) -> list[np.ndarray]:
        with self.alone():
            return self.program.run(arguments, self.binding.arrays())

    def alone(self) -> Any:
        """Return a context in which no other call of the program writes to the states."""
        return nullcontext() if self._gate is None else self._gate.alone()


class GivenProgram:
    """A program without written states, with all arrays as arguments of each call.

    Params unchanged since the previous call cost nothing.
    """

    def __init__(self, program: Any):
        self.program = program
        self._native: tuple[Sequence[Any] | None, Callable[..., Any]] = (None, not_native)

    @property
    def nbytes(self) -> int:
        """Bytes of the program."""
        return self.program.nbytes

    def run(
        self, arguments: Sequence[Any], bound: tuple[Any, ...] = (), sizes: Mapping[str, int] | None = None
    ) -> list[Any]:
        """Return the outputs for these inputs and params. ``sizes`` are the named sizes that no input determines."""
        program = self.program
        if program.device is not None:
            return program.run(arguments, bound, None, sizes, host=False)
        previous, call = self._native
        if previous is None or len(previous) != len(bound) or not all(map(is_, bound, previous)):
            call = native(program, bound, not_native, apart=True)
            previous, self._native = bound, (bound, call)
        outputs = None if TIMING else call(*arguments)
        if outputs is None:
            rewind()
            outputs = program.run(arguments, previous, None, sizes)
        return outputs


class Shortcut(NamedTuple):
    """The state in which the previous call's native code can serve the next call directly."""

    epoch: int
    """The mutation epoch of the previous call."""
    inputs: int
    grad_enabled: bool
    call: Callable[..., Any]
    dtype: DType | None
    """Element type of the result; None for a tuple of results."""
    counters: list[list[int]]
    versions: list[list[int]]
    """Values of the counters for which the shortcut is valid."""
    numbers: bool = False
    """Whether some arguments are whole numbers that are sizes."""


def native_arguments(args: tuple[Any, ...], grad_enabled: bool) -> list[Any]:
    """Return the arguments of a native call: arrays of tensors without history, and ints. Omit all others."""
    return [
        t if t.__class__ is int else t._data
        for t in args
        if t.__class__ is int
        or (t.__class__ is Tensor and not (grad_enabled and (t._requires_grad or t._view is not None)))
    ]


NO_SHORTCUT = Shortcut(-1, 0, False, not_native, float32, [], [])
