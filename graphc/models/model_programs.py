"""Programs of the entries of a loaded model: native code from the file, from the cache, or compiled here."""

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
from graphc.files.model_content import Artifact, Code, StoredEntry, check_weights
from graphc.models.model_state import ModelState
from graphc.models.sized_model import ProgramsBySizes, for_all_sizes
from graphc.runtime.call import Executable
from graphc.runtime.loader import load_object, runs_here

if TYPE_CHECKING:
    from graphc.codegen.machine.target import Target
    from graphc.ir.graph.graph import Graph

# Import graphs and the compiler only for programs that neither the file nor the cache has.
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
    """A loaded program."""

    program: Any
    """An Executable, a DeviceExecutable or ProgramsBySizes."""
    seconds: Mapping[str, float] | None
    """Seconds of each stage of the compilation. None when object code from the file runs."""
    held: Mapping[str, np.ndarray] = MappingProxyType({})
    """Arguments of its calls that are not params or states of the model: weights, and arrays packed from them."""


class Live(NamedTuple):
    """A program without constant weights, and the program that packs the weights for it."""

    program: Executable
    prepacking: Executable | None
    seconds: Mapping[str, float]


class Programs:
    """Makes the programs of a model's entries."""

    def __init__(self, stored: Artifact, state: ModelState, machine: str, trust: bool):
        """``machine`` names where programs run (see calls.machine). ``trust`` allows code from the file."""
        self.stored, self.state = stored, state
        self.machine = machine
        self._trust = trust and not is_device(machine)
        self._live: dict[str, Live] = {}
        """Programs without constant weights, by name of the entry."""

    def of(self, entry: StoredEntry) -> Loaded:
        """Return the program of an entry. Raise ArtifactError and CompileError."""
        is_live = self.state.is_changed and not entry.spec.of and not entry.spec.dims and not is_device(self.machine)
        loaded = self._with_weights(entry) if is_live else self._native(entry) or self._compiled(entry)
        loaded.program.explain = lambda inputs, bound: self._explain(entry, inputs, bound)
        return loaded

    def _explain(
        self, entry: StoredEntry, inputs: Sequence[Any], bound: Mapping[str, np.ndarray]
    ) -> GraphcError | None:
        """Return the error of the check that stopped a call."""
        return Refusals(lambda: self._checks(entry))(inputs, bound)

    def graph(self, entry: StoredEntry) -> Graph:
        """Return the graph of an entry with its weights as constants."""
        return freeze(read_graph(self.stored, entry.spec.name), self.state.constants)

    def _checks(self, entry: StoredEntry) -> Graph:
        """Return the part of an entry's graph that computes its checks."""
        graph = read_graph(self.stored, entry.spec.name)
        with assumed(graph):
            return checks_of(freeze(graph, self.state.constants))

    def _native(self, entry: StoredEntry) -> Loaded | None:
        """Return the file's program for this machine, or None where none may run."""
        if not self._trust or self.state.is_changed or self.state.parameters().keys() & set(entry.spec.uses):
            return None  # the file's code has constants for all weights that no entry writes
        arguments = {path for path in entry.spec.uses if path in self.state.tensors}
        fitting = [
            code
            for code in entry.natives
            if {b.path for b in code.manifest.of_class("param", "state")} <= arguments
            and not why_not_native(code)
            and self._is_made_for(code)
        ]
        if not fitting:
            return None
        # NOTE: of two instruction sets of one architecture, the larger one includes the other.
        best = max(fitting, key=lambda code: len(code.manifest.target.features))
        return Loaded(_load_native(self.stored, entry, best), None)

    def _is_made_for(self, code: Code) -> bool:
        """Check whether object code fits a named target. For the host, any code that runs here fits."""
        native = code.manifest.target
        if self.machine in (HOST, strict_name(HOST)):
            return self.machine == HOST or native.strict_order
        return native == target_spec(running_target(self.machine))

    def _with_weights(self, entry: StoredEntry) -> Loaded:
        """Return the program of an entry whose weights differ from the file's. Its code serves all weights, so that new
        ones need no compilation.
        """
        live = self._live.get(entry.spec.name) or self._live.setdefault(entry.spec.name, self._make_live(entry))
        constants, derived = self.state.constants, {}
        if live.prepacking is not None:
            packed = live.prepacking.run([constants[spec.path] for spec in live.prepacking.inputs])
            derived = {PREPACKED + spec.name: a for spec, a in zip(live.prepacking.outputs, packed, strict=True)}
        derived |= {spec.path: constants[spec.path] for spec in live.program.bound if spec.path in constants}
        return Loaded(live.program, live.seconds, derived)

    def _make_live(self, entry: StoredEntry) -> Live:
        making = _Making(self, entry, running_target(self.machine), live=True)
        code, seconds = self._found(making)
        first = code.prepacking
        return Live(load_ready(code), None if first is None else load_ready(first), seconds)

    def _found(self, making: _Making) -> tuple[cache.CacheEntry, Mapping[str, float]]:
        """Return the code, from the cache or compiled here, and its seconds. Raise _NoProgram."""
        disk = cache.current()
        # NOTE: the file's digest is the key, so that a lookup need not read the graphs. It is not enough for a user's
        # ops, whose rules are not in the file, or for changed constants.
        arguments = ",".join(sorted(self.state.tensors))
        kind = "file, any weights" if making.live else "file"
        key: tuple[Any, ...] = (kind, repr(making.target), self.stored.digest, making.entry.spec.name, arguments)
        own = not own_ops.NAMES.isdisjoint(making.entry.spec.ops)
        start = time.perf_counter()
        if disk is not None and (own or not self.stored.digest or (self.state.is_changed and not making.live)):
            key = making.parts()
        code, was_there = find_or_build(disk, making.target, key, making.build)
        return code, {"cache": time.perf_counter() - start} if was_there else making.stages.seconds

    def _compiled(self, entry: StoredEntry) -> Loaded:
        if is_device(self.machine):
            if entry.spec.dims:
                graph = read_graph(self.stored, entry.spec.name)
                result = for_all_sizes(graph, self.state.constants, lambda graph: compile_on(graph, self.machine))
                return self._by_sizes(entry, result) if isinstance(result, GraphcError) else self._on_device(result)
            return self._on_device(compile_on(self.graph(entry), self.machine))
        try:
            result, seconds = self._found(_Making(self, entry, running_target(self.machine)))
        except _NoProgram as refusal:
            return self._by_sizes(entry, refusal.error)
        return Loaded(load_ready(result), seconds)

    def _on_device(self, compiled: Any) -> Loaded:
        return Loaded(load_on(compiled, self.machine), compiled.stages.seconds)

    def _by_sizes(self, entry: StoredEntry, refusal: GraphcError) -> Loaded:
        """Return a program for each size of the dimensions, where none exists for all sizes."""
        graph = read_graph(self.stored, entry.spec.name)
        config.logger("compile").warning("%s is compiled for each size of its dimensions: %s", graph.name, refusal.what)
        programs = ProgramsBySizes(entry.spec, graph, self.state, self.machine)
        return Loaded(programs, programs.seconds)


class _NoProgram(Exception):
    """No program exists for all sizes of an entry's dimensions."""

    def __init__(self, error: GraphcError):
        super().__init__(error.what)
        self.error = error


class _Making:
    """The compilation of an entry, for all sizes of its dimensions where it has any."""

    def __init__(self, programs: Programs, entry: StoredEntry, target: Target, live: bool = False):
        """``live`` makes weights arguments instead of constants."""
        self._programs = programs
        self.entry, self.target, self.live = entry, target, live
        self.stages: Any = None
        """The stages of the compilation, once it ran."""

    def parts(self) -> tuple[Any, ...]:
        """Return the parts of the cache key that come from the graph. Raise _NoProgram."""
        return self._of_graph(lambda graph: key_parts(Stages(graph, target=self.target)))

    def build(self) -> cache.CacheEntry:
        """Compile the code. Raise _NoProgram."""
        return self._of_graph(self._compile)

    def _compile(self, graph: Graph) -> Any:
        self.stages = Stages(graph, target=self.target)
        return compile_stages(self.stages)

    def _of_graph(self, make: Callable[[Graph], Any]) -> Any:
        spec, constants = self.entry.spec, self._programs.state.constants
        graph = read_graph(self._programs.stored, spec.name)
        if self.live:
            return make(watch(graph, constants.keys()))
        result = for_all_sizes(graph, constants, make) if spec.dims else make(freeze(graph, constants))
        if isinstance(result, GraphcError):
            raise _NoProgram(result)
        return result


def why_not_native(code: Code) -> str:
    """Explain why object code cannot run here. Return an empty text where it can."""
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
    dims = {d.name: d for d in spec.dims}
    sizes = chosen_sizes(dims, limits([a.known() for a in spec.assumptions], dims))
    expected = [
        [(s.dtype, tuple([at(n, sizes) for n in s.shape])) for s in ends] for ends in (spec.inputs, spec.outputs)
    ]
    if types != expected:
        raise ArtifactError("the native code has other inputs or outputs than the manifest")
    return program
