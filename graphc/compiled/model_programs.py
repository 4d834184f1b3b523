"""Programs of the entries of a loaded model: native code out of the file, out of the cache, or compiled here."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from graphc.base import config
from graphc.base.errors import ArtifactError, GraphcError
from graphc.base.named_dims import chosen_sizes
from graphc.base.size_limits import limits
from graphc.compiled.machine import HOST, compile_on, is_device, load_on, strict_name
from graphc.compiled.model_graph import check_weights, read_graph
from graphc.compiled.model_state import ModelState
from graphc.compiled.sized_model import ProgramsBySizes, for_all_sizes
from graphc.compiler import cache
from graphc.compiler.compile import CompiledGraph, compile_stages, key_parts, load_compiled
from graphc.compiler.freeze import freeze
from graphc.compiler.ready import find_or_build, prepare_threads, running_target, target_spec
from graphc.compiler.refusals import Refusals, checks_of
from graphc.compiler.stages import Stages
from graphc.files.model_content import Artifact, Code, StoredEntry
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import assumed, bound_sizes
from graphc.ir.op import REGISTRY
from graphc.runtime.call import Executable
from graphc.runtime.loader import load_object, runs_here


class Loaded(NamedTuple):
    """A program that runs."""

    program: Any
    """An Executable, a DeviceExecutable or ProgramsBySizes."""
    seconds: Mapping[str, float] | None
    """How long each stage of the compile took; None when object code from the file runs."""


class Programs:
    """Makes the programs of a model's entries."""

    def __init__(self, stored: Artifact, state: ModelState, machine: str, trust: bool):
        """``machine`` is where programs run (see compiled.machine), ``trust`` whether code of the file may."""
        self.stored, self.state = stored, state
        self.machine = machine
        self._trust = trust and not is_device(machine)

    def of(self, entry: StoredEntry) -> Loaded:
        """The program of an entry. Raises ArtifactError and CompileError."""
        found = self._native(entry) or self._compiled(entry)
        found.program.explain = Refusals(lambda: self._checks(entry))
        return found

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
        if not self._trust or self.state.is_changed:
            return None
        wanted = {path for path in entry.spec.uses if path in self.state.tensors}
        for code in entry.natives:
            bound = {b.path for b in code.manifest.of_class("param", "state")}
            if bound <= wanted and not why_not_native(code) and self._is_made_for(code):
                return Loaded(_load_native(self.stored, entry, code), None)
        return None

    def _is_made_for(self, code: Code) -> bool:
        """Whether object code is for a target that is named; any is for this machine that can run here."""
        native = code.manifest.target
        if self.machine in (HOST, strict_name(HOST)):
            return self.machine == HOST or native.strict_order
        return native == target_spec(running_target(self.machine))

    def _compiled(self, entry: StoredEntry) -> Loaded:
        if entry.spec.dims:
            return self._sized(entry)
        if is_device(self.machine):
            compiled = compile_on(self.graph(entry), self.machine)
            return Loaded(load_on(compiled, self.machine), compiled.stages.seconds)
        target = running_target(self.machine)
        stages: list[Stages] = []

        def build() -> CompiledGraph:
            stages.append(Stages(self.graph(entry), target=target))
            return compile_stages(stages[0])

        start = time.perf_counter()
        disk = cache.current()
        # NOTE: the whole file stands for its graphs, so that a program in the cache is found without reading them; but
        # for ops of a user, whose rules are not in it, and for weights that are others now.
        given = ",".join(sorted(self.state.tensors))
        parts: tuple[Any, ...] = ("file", repr(target), self.stored.digest, entry.spec.name, given)
        own = any(name in REGISTRY and REGISTRY[name].module for name in entry.spec.ops)
        if disk is not None and (own or not self.stored.digest or self.state.is_changed):
            parts = key_parts(Stages(self.graph(entry), target=target))
        found, was_there = find_or_build(disk, target, parts, build)
        seconds = {"cache": time.perf_counter() - start} if was_there else stages[0].seconds
        return Loaded(load_compiled(found), seconds)

    def _sized(self, entry: StoredEntry) -> Loaded:
        """An entry whose inputs have named dimensions: one program for all their sizes where there can be one."""
        graph = read_graph(self.stored, entry.spec.name)
        found = for_all_sizes(graph, self.state.constants, lambda graph: compile_on(graph, self.machine))
        if isinstance(found, GraphcError):
            config.logger("compile").warning(
                "%s is compiled for each size of its dimensions: %s", graph.name, found.what
            )
            by_sizes = ProgramsBySizes(entry.spec, graph, self.state, self.machine)
            return Loaded(by_sizes, by_sizes.seconds)
        return Loaded(load_on(found, self.machine), found.stages.seconds)


def why_not_native(code: Code) -> str:
    """Why object code cannot run here, or an empty text."""
    built_by = code.manifest.versions.get("graphc")
    if built_by != cache.versions()["graphc"]:
        return f"it was built by graphc {built_by}, this is {cache.versions()['graphc']}"
    return runs_here(code.manifest.target)


def _load_native(stored: Artifact, entry: StoredEntry, code: Code) -> Executable:
    spec = entry.spec
    prepare_threads(code.object)
    program = Executable(code.manifest, load_object(code.object, code.manifest.entry), code.constants)
    check_weights(stored, [(b.path, b.dtype, b.shape) for b in program.bound])
    types = [[(b.dtype, b.shape) for b in specs] for specs in (program.inputs, program.outputs)]
    known = {d.name: d for d in spec.dims}
    sizes = chosen_sizes(known, limits([a.known() for a in spec.assumptions], known))
    if types != [[(s.dtype, bound_sizes(s.shape, sizes)) for s in specs] for specs in (spec.inputs, spec.outputs)]:
        raise ArtifactError("the native code has other inputs or outputs than the manifest")
    return program
