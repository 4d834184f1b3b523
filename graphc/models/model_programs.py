"""Programs of the entries of a loaded model: native code from the file, from the cache, or compiled here."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphc.base import own_ops
from graphc.base.errors import ArtifactError, GraphcError
from graphc.base.lazy import deferred
from graphc.base.sizes.assumptions import Assumption
from graphc.base.sizes.named_dims import chosen_sizes
from graphc.base.sizes.size import at
from graphc.base.sizes.size_limits import limits
from graphc.base.version import VERSION
from graphc.calls.machine import HOST, compile_on, is_device, load_on, strict_name
from graphc.compiler import cache
from graphc.compiler.ready import find_or_build, load_ready, prepare_threads, running_target, target_spec
from graphc.files.manifest import PREPACKED
from graphc.files.model_content import Artifact, Code, StoredEntry, check_weights
from graphc.models.chain import ChainedPrograms
from graphc.models.model_state import ModelState
from graphc.models.sized_model import SizedPrograms
from graphc.runtime.call import Executable
from graphc.runtime.loader import host, load_object, runs_here

if TYPE_CHECKING:
    from graphc.compiler.stages import Stages
    from graphc.ir.graph.graph import Graph
else:
    Stages = deferred("graphc.compiler.stages:Stages")

# Import graphs and the compiler only for programs that neither the file nor the cache has.
Refusals = deferred("graphc.compiler.refusals:Refusals")
assumed = deferred("graphc.ir.graph.interpret:assumed")
bind = deferred("graphc.ir.graph.interpret:bind")
checks_of = deferred("graphc.compiler.refusals:checks_of")
compile_stages = deferred("graphc.compiler.compile:compile_stages")
freeze = deferred("graphc.compiler.freeze:freeze")
watch = deferred("graphc.compiler.freeze:watch")
key_parts = deferred("graphc.compiler.compile:key_parts")
read_graph = deferred("graphc.models.model_graph:read_graph")
restricted = deferred("graphc.models.sized_graph:restricted")


class Loaded(NamedTuple):
    """A loaded program."""

    program: Any
    """An Executable, a DeviceExecutable, SizedPrograms or ChainedPrograms."""
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
        if entry.spec.segments:
            entries = [self.stored.entry(name) for name in entry.spec.programs]
            chain = ChainedPrograms(entry.spec, list(map(self.of, entries)), [e.spec for e in entries], self.state)
            return Loaded(chain, chain.seconds)
        is_live = self.state.is_changed and not entry.spec.of and not entry.spec.dims and not is_device(self.machine)
        loaded = self._with_weights(entry) if is_live else self._native(entry) or self._compiled(entry)
        loaded.program.explain = lambda inputs, bound: self._explain(entry, inputs, bound)
        return loaded

    def _explain(
        self, entry: StoredEntry, inputs: Sequence[Any], bound: Mapping[str, np.ndarray]
    ) -> GraphcError | None:
        """Return the error of the check that stopped a call."""
        return Refusals(lambda: self._checks(entry))(inputs, bound)

    def _graph(self, entry: StoredEntry, live: bool = False, added: Sequence[Assumption] = ()) -> Graph:
        """Return the graph of an entry for all sizes of its dimensions that meet ``added`` assumptions. Weights are
        constants, or watched arguments of ``live`` programs.
        """
        graph, constants = read_graph(self.stored, entry.spec.name), self.state.constants
        if live:
            return watch(graph, constants.keys())
        return freeze(restricted(graph, added), constants)

    def _stages(self, entry: StoredEntry, live: bool = False, added: Sequence[Assumption] = ()) -> Stages:
        """Return the stages of an entry's program for this machine, none computed yet."""
        return Stages(self._graph(entry, live, added), target=running_target(self.machine))

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
        program = _load_native(self.stored, entry, best)
        added = [assumption.known() for assumption in best.assumptions]
        program.stages = partial(self._stages, entry, added=added)
        if not added:
            return Loaded(program, None)
        programs, _ = self._sized(entry)
        programs.add(program, added)
        return Loaded(programs, None)

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
        code, seconds = self._found(entry, live=True)
        first = code.prepacking
        return Live(load_ready(code), None if first is None else load_ready(first), seconds)

    def _found(
        self, entry: StoredEntry, live: bool = False, added: Sequence[Assumption] = ()
    ) -> tuple[cache.CacheEntry, Mapping[str, float]]:
        """Return the code of an entry, from the cache or compiled here, and its seconds."""
        disk = cache.current()
        # NOTE: the file's digest is the key, so that a lookup need not read the graphs. It is not enough for a user's
        # ops, whose rules are not in the file, or for changed constants.
        arguments = ",".join(sorted(self.state.tensors))
        kind = "file, any weights" if live else "file"
        # NOTE: name, processor and the sources of graphc decide all facts of a machine, so that they need no import.
        spec = host() if self.machine == HOST else target_spec(running_target(self.machine))
        assumed = [str(a._replace(place="")) for a in added]
        key: tuple[Any, ...] = (kind, self.machine, repr(spec), self.stored.digest, entry.spec.name, arguments)
        key += tuple(assumed)
        own = not own_ops.NAMES.isdisjoint(entry.spec.ops)
        start = time.perf_counter()
        if disk is not None and (own or not self.stored.digest or (self.state.is_changed and not live)):
            key = key_parts(self._stages(entry, live, added))
        made: list[Any] = []

        def build() -> cache.CacheEntry:
            made.append(self._stages(entry, live, added))
            return compile_stages(made[0])

        code, was_there = find_or_build(disk, spec, key, build)
        return code, {"cache": time.perf_counter() - start} if was_there else made[0].seconds

    def _compiled(self, entry: StoredEntry) -> Loaded:
        """Return a program for all sizes of the dimensions; where there is none, programs for some or single ones."""
        if not entry.spec.dims:
            return self._general(entry)
        programs, seconds = self._sized(entry)
        made = programs.for_many(programs.sizes.named({}))
        return Loaded(programs if made is None or made.assumptions else made.program, seconds)

    def _sized(self, entry: StoredEntry) -> tuple[SizedPrograms, Mapping[str, float]]:
        """Return the programs of an entry with named dimensions, none made yet, and the seconds of the stages of the
        last one, once there is one."""
        seconds: dict[str, float] = {}

        def program_of(loaded: Loaded) -> Any:
            seconds.clear()
            seconds.update(loaded.seconds or {})
            return loaded.program

        programs = SizedPrograms(
            entry.spec,
            self.state,
            lambda added: program_of(self._general(entry, added)),
            lambda sizes: program_of(self._alone(entry, sizes)),
        )
        return programs, seconds

    def _general(self, entry: StoredEntry, added: Sequence[Assumption] = ()) -> Loaded:
        """Return the program for all sizes that meet ``added`` assumptions."""
        if is_device(self.machine):
            return self._on_machine(self._graph(entry, added=added))
        code, seconds = self._found(entry, added=added)
        program = load_ready(code)
        program.stages = partial(self._stages, entry, added=added)
        return Loaded(program, seconds)

    def _alone(self, entry: StoredEntry, sizes: Mapping[str, int]) -> Loaded:
        """Return the program of single sizes."""
        graph = read_graph(self.stored, entry.spec.name)
        graph = bind(graph, {name: size for name, size in sizes.items() if name in graph.dims})
        return self._on_machine(freeze(graph, self.state.constants))

    def _on_machine(self, graph: Graph) -> Loaded:
        start = time.perf_counter()
        compiled = compile_on(graph, self.machine)
        return Loaded(
            load_on(compiled, self.machine), compiled.stages.seconds or {"cache": time.perf_counter() - start}
        )


def why_not_native(code: Code) -> str:
    """Explain why object code cannot run here. Return an empty text where it can."""
    built_by = code.manifest.versions.get("graphc")
    if built_by != VERSION:
        return f"it was built by graphc {built_by}, this is {VERSION}"
    return runs_here(code.manifest.target)


def _load_native(stored: Artifact, entry: StoredEntry, code: Code) -> Executable:
    spec = entry.spec
    prepare_threads(code.object)
    manifest = code.manifest
    library = load_object(code.object, manifest.entry, manifest.target)
    weights = {b.path: stored.weights[b.path] for b in manifest.of_class("constant") if b.path in stored.weights}
    program = Executable(manifest, library, code.constants, weights)
    check_weights(stored, [(b.path, b.dtype, b.shape) for b in program.bound])
    types = [[(b.dtype, b.shape) for b in specs] for specs in (program.inputs, program.outputs)]
    dims = {d.name: d for d in spec.dims}
    sizes = chosen_sizes(dims, limits([a.known() for a in (*spec.assumptions, *code.assumptions)], dims))
    expected = [
        [(s.dtype, tuple([at(n, sizes) for n in s.shape])) for s in ends] for ends in (spec.inputs, spec.outputs)
    ]
    if types != expected:
        raise ArtifactError("the native code has other inputs or outputs than the manifest")
    return program
