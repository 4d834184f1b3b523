"""Programs of the entries of a loaded model: native code out of the file, out of the cache, or compiled here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphc.base import config, own_ops
from graphc.base.errors import ArtifactError, GraphcError
from graphc.base.lazy import deferred
from graphc.base.sizes.named_dims import chosen_sizes
from graphc.base.sizes.size import at
from graphc.base.sizes.size_limits import limits
from graphc.calls.machine import HOST, compile_on, is_device, load_on, strict_name
from graphc.compiler import cache
from graphc.compiler.ready import find_or_build, load_ready, prepare_threads, running_target, target_spec
from graphc.files.manifest import PREPACKED
from graphc.files.model_content import Artifact, Code, StoredEntry
from graphc.models.model_read import check_weights
from graphc.models.model_state import ModelState
from graphc.models.sized_model import ProgramsBySizes, for_all_sizes
from graphc.runtime.call import Executable
from graphc.runtime.loader import load_object, runs_here

if TYPE_CHECKING:
    from graphc.codegen.machine.target import Target
    from graphc.ir.graph.graph import Graph

# Graphs and the compiler are imported when a program is made, which neither the file nor the cache has.
Refusals = deferred("graphc.compiler.refusals:Refusals")
Stages = deferred("graphc.compiler.stages:Stages")
assumed = deferred("graphc.ir.graph.interpret:assumed")
checks_of = deferred("graphc.compiler.refusals:checks_of")
compile_stages = deferred("graphc.compiler.compile:compile_stages")
freeze = deferred("graphc.compiler.freeze:freeze")
watch = deferred("graphc.compiler.freeze:watch")
key_parts = deferred("graphc.compiler.compile:key_parts")
read_graph = deferred("graphc.models.model_graph:read_graph")


class Loaded(NamedTuple):
    """A program that runs."""

    program: Any
    """An Executable, a DeviceExecutable or ProgramsBySizes."""
    seconds: Mapping[str, float] | None
    """How long each stage of the compile took; None when object code from the file runs."""
    held: Mapping[str, np.ndarray] = MappingProxyType({})
    """Arrays that its calls are given besides params and states of the model: weights, and what was made of them."""


class Live(NamedTuple):
    """A program in which no weight is a constant, and the one that packs the weights for it."""

    program: Executable
    prepacking: Executable | None
    seconds: Mapping[str, float]


class Programs:
    """Makes the programs of a model's entries."""

    def __init__(self, stored: Artifact, state: ModelState, machine: str, trust: bool):
        """``machine`` is where programs run (see compiled.machine), ``trust`` whether code of the file may."""
        self.stored, self.state = stored, state
        self.machine = machine
        self._trust = trust and not is_device(machine)
        self._live: dict[str, Live] = {}
        """By name of the entry."""

    def of(self, entry: StoredEntry) -> Loaded:
        """The program of an entry. Raises ArtifactError and CompileError."""
        is_live = self.state.is_changed and not entry.spec.of and not entry.spec.dims and not is_device(self.machine)
        found = self._with_weights(entry) if is_live else self._native(entry) or self._compiled(entry)
        found.program.explain = lambda inputs, bound: self._explain(entry, inputs, bound)
        return found

    def _explain(
        self, entry: StoredEntry, inputs: Sequence[Any], bound: Mapping[str, np.ndarray]
    ) -> GraphcError | None:
        """Which check a call has stopped at."""
        return Refusals(lambda: self._checks(entry))(inputs, bound)

    def graph(self, entry: StoredEntry) -> Graph:
        """The graph of an entry, its weights as constants."""
        return freeze(read_graph(self.stored, entry.spec.name), self.state.constants)

    def _checks(self, entry: StoredEntry) -> Graph:
        """What the checks of an entry's graph need."""
        graph = read_graph(self.stored, entry.spec.name)
        with assumed(graph):
            return checks_of(freeze(graph, self.state.constants))

    def _native(self, entry: StoredEntry) -> Loaded | None:
        """The program that the file holds for this machine, if there is one that may run."""
        if not self._trust or self.state.is_changed or self.state.parameters().keys() & set(entry.spec.uses):
            return None  # code of a file has all weights as constants that no entry writes
        wanted = {path for path in entry.spec.uses if path in self.state.tensors}
        fitting = [
            code
            for code in entry.natives
            if {b.path for b in code.manifest.of_class("param", "state")} <= wanted
            and not why_not_native(code)
            and self._is_made_for(code)
        ]
        if not fitting:
            return None
        # NOTE: of two instruction sets of one architecture the larger one has all extensions of the other.
        best = max(fitting, key=lambda code: len(code.manifest.target.features))
        return Loaded(_load_native(self.stored, entry, best), None)

    def _is_made_for(self, code: Code) -> bool:
        """Whether object code is for a target that is named; any is for this machine that can run here."""
        native = code.manifest.target
        if self.machine in (HOST, strict_name(HOST)):
            return self.machine == HOST or native.strict_order
        return native == target_spec(running_target(self.machine))

    def _with_weights(self, entry: StoredEntry) -> Loaded:
        """The program of an entry whose weights are others than in the file. Its code is the same for all weights: with
        new ones, nothing is compiled again."""
        live = self._live.get(entry.spec.name) or self._live.setdefault(entry.spec.name, self._make_live(entry))
        constants, held = self.state.constants, {}
        if live.prepacking is not None:
            made = live.prepacking.run([constants[spec.path] for spec in live.prepacking.inputs])
            held = {PREPACKED + spec.name: a for spec, a in zip(live.prepacking.outputs, made, strict=True)}
        held |= {spec.path: constants[spec.path] for spec in live.program.bound if spec.path in constants}
        return Loaded(live.program, live.seconds, held)

    def _make_live(self, entry: StoredEntry) -> Live:
        making = _Making(self, entry, running_target(self.machine), live=True)
        found, seconds = self._found(making)
        first = found.prepacking
        return Live(load_ready(found), None if first is None else load_ready(first), seconds)

    def _found(self, making: _Making) -> tuple[cache.Entry, Mapping[str, float]]:
        """The code out of the cache, or made here, and what that took. Raises _NoProgram."""
        disk = cache.current()
        # NOTE: the whole file stands for its graphs, so that a program in the cache is found without reading them; but
        # for ops of a user, whose rules are not in it, and for constants that are others now.
        given = ",".join(sorted(self.state.tensors))
        kind = "file, any weights" if making.live else "file"
        parts: tuple[Any, ...] = (kind, repr(making.target), self.stored.digest, making.entry.spec.name, given)
        own = not own_ops.NAMES.isdisjoint(making.entry.spec.ops)
        start = time.perf_counter()
        if disk is not None and (own or not self.stored.digest or (self.state.is_changed and not making.live)):
            parts = making.parts()
        made, was_there = find_or_build(disk, making.target, parts, making.build)
        return made, {"cache": time.perf_counter() - start} if was_there else making.stages.seconds

    def _compiled(self, entry: StoredEntry) -> Loaded:
        if is_device(self.machine):
            if entry.spec.dims:
                graph = read_graph(self.stored, entry.spec.name)
                found = for_all_sizes(graph, self.state.constants, lambda graph: compile_on(graph, self.machine))
                return self._by_sizes(entry, found) if isinstance(found, GraphcError) else self._on_device(found)
            return self._on_device(compile_on(self.graph(entry), self.machine))
        try:
            found, seconds = self._found(_Making(self, entry, running_target(self.machine)))
        except _NoProgram as refusal:
            return self._by_sizes(entry, refusal.error)
        return Loaded(load_ready(found), seconds)

    def _on_device(self, compiled: Any) -> Loaded:
        return Loaded(load_on(compiled, self.machine), compiled.stages.seconds)

    def _by_sizes(self, entry: StoredEntry, refusal: GraphcError) -> Loaded:
        """A program for each size of the dimensions, where there is none for all."""
        graph = read_graph(self.stored, entry.spec.name)
        config.logger("compile").warning("%s is compiled for each size of its dimensions: %s", graph.name, refusal.what)
        found = ProgramsBySizes(entry.spec, graph, self.state, self.machine)
        return Loaded(found, found.seconds)


class _NoProgram(Exception):
    """There is no program for all sizes of the dimensions of an entry."""

    def __init__(self, error: GraphcError):
        super().__init__(error.what)
        self.error = error


class _Making:
    """The compile of an entry, for all sizes of its dimensions where it has any."""

    def __init__(self, programs: Programs, entry: StoredEntry, target: Target, live: bool = False):
        """``live``: weights are arguments, and not constants."""
        self._programs = programs
        self.entry, self.target, self.live = entry, target, live
        self.stages: Any = None
        """Where the code comes from, once there is some."""

    def parts(self) -> tuple[Any, ...]:
        """What the code depends on, by its graph. Raises _NoProgram."""
        return self._of_graph(lambda graph: key_parts(Stages(graph, target=self.target)))

    def build(self) -> cache.Entry:
        """The code. Raises _NoProgram."""
        return self._of_graph(self._compile)

    def _compile(self, graph: Graph) -> Any:
        self.stages = Stages(graph, target=self.target)
        return compile_stages(self.stages)

    def _of_graph(self, make: Callable[[Graph], Any]) -> Any:
        spec, constants = self.entry.spec, self._programs.state.constants
        graph = read_graph(self._programs.stored, spec.name)
        if self.live:
            return make(watch(graph, constants.keys()))
        found = for_all_sizes(graph, constants, make) if spec.dims else make(freeze(graph, constants))
        if isinstance(found, GraphcError):
            raise _NoProgram(found)
        return found


def why_not_native(code: Code) -> str:
    """Why object code cannot run here, or an empty text."""
    built_by = code.manifest.versions.get("graphc")
    if built_by != cache.versions()["graphc"]:
        return f"it was built by graphc {built_by}, this is {cache.versions()['graphc']}"
    return runs_here(code.manifest.target)


def _load_native(stored: Artifact, entry: StoredEntry, code: Code) -> Executable:
    spec = entry.spec
    prepare_threads(code.object)
    manifest = code.manifest
    program = Executable(manifest, load_object(code.object, manifest.entry, manifest.target), code.constants)
    check_weights(stored, [(b.path, b.dtype, b.shape) for b in program.bound])
    types = [[(b.dtype, b.shape) for b in specs] for specs in (program.inputs, program.outputs)]
    known = {d.name: d for d in spec.dims}
    sizes = chosen_sizes(known, limits([a.known() for a in spec.assumptions], known))
    wanted = [[(s.dtype, tuple([at(n, sizes) for n in s.shape])) for s in ends] for ends in (spec.inputs, spec.outputs)]
    if types != wanted:
        raise ArtifactError("the native code has other inputs or outputs than the manifest")
    return program
