"""Machines for compiled code, each by one name: a CPU (``host``, ``avx2``), or a device (``cuda:0``, ``cuda-emu``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.device import KINDS, device
from graphc.base.errors import ArgumentError
from graphc.base.lazy import deferred
from graphc.base.processor import FLUSH, STRICT
from graphc.compiler.cache import CacheEntry
from graphc.compiler.ready import HOST, load_ready, running_target
from graphc.runtime.devices import device_named

if TYPE_CHECKING:
    from graphc.codegen.machine.target import Target
    from graphc.compiler.compile import CompiledGraph
    from graphc.compiler.stages import Stages
    from graphc.ir.graph.graph import Graph
    from graphc.passes.base import Pass

KEPT_CONSTANTS = 1 << 20
"""Largest number of bytes of a graph's constants with which a program keeps its graph, to time its kernels later. More
would be in memory twice, as the program has them too."""

# Import the compiler only when something is compiled.
_compile_graph = deferred("graphc.compiler.compile:compile_graph")
_compile_stages = deferred("graphc.compiler.compile:compile_stages")
_compile_graph_for = deferred("graphc.compiler.device:compile_graph_for")
_stages = deferred("graphc.compiler.stages:Stages")
_collect_data = deferred("graphc.ir.graph.text:collect_data")
_load_compiled = deferred("graphc.compiler.compile:load_compiled")
_load_program = deferred("graphc.compiler.graph_programs:load_program")
_load_on_device = deferred("graphc.compiler.device:load_on_device")
_target_of = deferred("graphc.compiler.device:target_of")
_is_on_device = deferred("graphc.tensors.placement:is_on_device")


def machine_named(target: str, where: Any, strict_order: bool = False, flush_denormals: bool = False) -> str:
    """Return the name of the machine for the arguments ``target``, ``device``, ``strict_order`` and ``flush_denormals``
    of a compile.

    Raise ArgumentError where both target and device are set, for an invalid device, and for a device in strict order.
    Raise DeviceError for an unusable device, CompileError for a wrong target.
    """
    if where is None or device(where).type == "cpu":
        if target != HOST:
            running_target(target)
        name = machine_variant(target, strict_order, flush_denormals)
        if flush_denormals:
            running_target(name)
        return name
    if flush_denormals:
        raise ArgumentError(f"{str(where)!r} flushes no denormals", remedy="use flush_denormals=True on CPUs only")
    if strict_order:
        raise ArgumentError(f"threads of {str(where)!r} share sums", remedy="use strict_order=True on CPUs only")
    if target != HOST:
        raise ArgumentError(f"target={target!r} is a CPU, but device={str(where)!r} is not", remedy="pass one of them")
    name = str(device(where))
    device_named(name)
    return name


def strict_name(machine: str) -> str:
    """Return the name of the same CPU in strict order."""
    return machine if machine.endswith(STRICT) else machine + STRICT


def machine_variant(machine: str, strict_order: bool, flush_denormals: bool) -> str:
    """Return the name of the same CPU in strict order, or with denormal numbers as zeros."""
    name = strict_name(machine) if strict_order else machine
    return name + FLUSH if flush_denormals and not name.endswith(FLUSH) else name


def is_device(machine: str) -> bool:
    """Return whether a machine is not a CPU."""
    return isinstance(machine, str) and machine.partition(":")[0] in KINDS[1:]


def target_for(machine: str) -> Target:
    """Return the target of code generation. Raise what ``running_target`` and ``device_named`` raise."""
    return _target_of(device_named(machine)) if is_device(machine) else running_target(machine)


def compile_on(graph: Graph, machine: str, passes: Sequence[Pass] | None = None) -> CompiledGraph:
    """Compile a graph for a machine, with these graph passes or the standard ones."""
    options = {} if passes is None else {"passes": passes}
    if is_device(machine):
        return _compile_graph_for(graph, device_named(machine), **options)
    return _compile_graph(graph, target=running_target(machine), **options)


def build_on(graph: Graph, machine: str) -> CompiledGraph:
    """Compile a graph for a CPU with the standard passes, whatever the cache has."""
    return _compile_stages(_stages(graph, target=running_target(machine)))


def load_on(compiled: CacheEntry, machine: str, graph: Graph | None = None) -> Any:
    """Load compiled code: as an Executable, or as a DeviceExecutable with the same interface.

    ``graph`` explains calls that its checks stop, where the code came from the cache.
    """
    if is_device(machine):
        return _load_on_device(compiled, device_named(machine))
    if graph is not None:
        program = _load_program(compiled, graph)
        if sum(data.nbytes for data in _collect_data(graph).values()) <= KEPT_CONSTANTS:
            passes = None if type(compiled) is CacheEntry else compiled.stages.graph_passes  # type: ignore[attr-defined]
            program.stages = partial(_stages_again, graph, machine, passes)
        return program
    return load_ready(compiled) if type(compiled) is CacheEntry else _load_compiled(compiled)


def _stages_again(graph: Graph, machine: str, passes: Sequence[Pass] | None) -> Stages:
    options = {} if passes is None else {"passes": passes}
    return _stages(graph, target=running_target(machine), **options)


def machine_of(machine: str, tensors: Iterable[Any]) -> str:
    """Return the machine; for the default, the device of the tensors. Raise ArgumentError where they are on several."""
    if machine != HOST:
        return machine
    names = {t._data.device.name for t in tensors if t._data.__class__ is not np.ndarray and _is_on_device(t._data)}
    if len(names) > 1:
        raise ArgumentError(f"tensors are on {' and '.join(sorted(names))}", remedy="move them: tensor.to(device)")
    return names.pop() if names else machine
