"""Where compiled code runs, by one name: a CPU (``host``, ``avx2``), or a device (``cuda:0``, ``cuda-emu``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.device import KINDS, device
from graphc.base.errors import ArgumentError
from graphc.base.lazy import deferred
from graphc.codegen.machine.target import STRICT, Target
from graphc.compiler.cache import Entry
from graphc.compiler.ready import running_target
from graphc.runtime.devices import device_named

if TYPE_CHECKING:
    from graphc.compiler.compile import CompiledGraph
    from graphc.ir.graph.graph import Graph
    from graphc.passes.base import Pass

# The compiler is imported when something is compiled.
_compile_graph = deferred("graphc.compiler.compile:compile_graph")
_compile_graph_for = deferred("graphc.compiler.device:compile_graph_for")
_load_compiled = deferred("graphc.compiler.compile:load_compiled")
_load_on_device = deferred("graphc.compiler.device:load_on_device")
_target_of = deferred("graphc.compiler.device:target_of")
_is_on_device = deferred("graphc.tensors.placement:is_on_device")

HOST = "host"


def machine_named(target: str, place: Any, strict_order: bool = False) -> str:
    """The name of the machine for the arguments ``target``, ``device`` and ``strict_order`` of a compile; raises
    ArgumentError where both of the first are given or the device is none, and for a device in strict order, DeviceError
    where it cannot be used, CompileError for a wrong target."""
    if place is None or device(place).type == "cpu":
        running_target(target)
        return strict_name(target) if strict_order else target
    if strict_order:
        raise ArgumentError(f"threads of {str(place)!r} share sums", remedy="strict_order=True is for CPUs")
    if target != HOST:
        raise ArgumentError(f"target={target!r} is a CPU, and device={str(place)!r} none", remedy="one of the two")
    found = str(device(place))
    device_named(found)
    return found


def strict_name(machine: str) -> str:
    """The name of the same CPU in strict order."""
    return machine if machine.endswith(STRICT) else machine + STRICT


def is_device(machine: str) -> bool:
    """Whether it is no CPU."""
    return isinstance(machine, str) and machine.partition(":")[0] in KINDS[1:]


def target_for(machine: str) -> Target:
    """What code is made for; raises what ``running_target`` and ``device_named`` do."""
    return _target_of(device_named(machine)) if is_device(machine) else running_target(machine)


def compile_on(graph: Graph, machine: str, passes: Sequence[Pass] | None = None) -> CompiledGraph:
    """Code for a graph, after the passes of the compiler unless others are given."""
    options = {} if passes is None else {"passes": passes}
    if is_device(machine):
        return _compile_graph_for(graph, device_named(machine), **options)
    return _compile_graph(graph, target=running_target(machine), **options)


def load_on(compiled: Entry, machine: str) -> Any:
    """The program of that code: an Executable, or a DeviceExecutable, which is called in the same way."""
    return _load_on_device(compiled, device_named(machine)) if is_device(machine) else _load_compiled(compiled)


def machine_of(machine: str, tensors: Iterable[Any]) -> str:
    """The machine, or where none was asked for the device on which some of the tensors lie. Raises ArgumentError where
    they lie on several."""
    if machine != HOST:
        return machine
    found = {t._data.device.name for t in tensors if t._data.__class__ is not np.ndarray and _is_on_device(t._data)}
    if len(found) > 1:
        raise ArgumentError(f"tensors lie on {' and '.join(sorted(found))}", remedy="tensor.to(device)")
    return found.pop() if found else machine
