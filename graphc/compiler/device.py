"""From a graph to a program on a device: its kernels as CUDA C, and the plan of what is launched in which order."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphc.base import config
from graphc.base.errors import CompileError
from graphc.base.sizes.named_dims import size_of
from graphc.base.sizes.size import is_size
from graphc.codegen.cuda import nvrtc
from graphc.codegen.cuda.emit import CudaSource
from graphc.codegen.machine.cuda.facts import is_gpu
from graphc.codegen.machine.target import Target, target_named
from graphc.codegen.schedule.contraction.product import Product
from graphc.codegen.schedule.gpu_products import TF32
from graphc.compiler import cache
from graphc.compiler.compile import CompiledGraph, key_parts, manifest_of, watched
from graphc.compiler.ready import find_or_build
from graphc.compiler.refusals import Refusals, checks_of
from graphc.compiler.stages import Stages
from graphc.compiler.strided_copy import copy_strided
from graphc.files.device_plan import DevicePlan, LaunchSpec, LoopSpec, Place, StepSpec
from graphc.files.manifest import Manifest
from graphc.ir.graph.graph import Graph
from graphc.ir.kernel.dims import dims_of_kernel
from graphc.ir.kernel.index import Axis, Index
from graphc.ir.kernel.statements import Call, Program, Storage
from graphc.passes.base import Pass
from graphc.passes.pipeline import PIPELINE
from graphc.runtime.devices import device_named
from graphc.runtime.devices.array import use_copier
from graphc.runtime.devices.interface import Device
from graphc.runtime.devices.program import DeviceExecutable

NO_PRODUCTS: Mapping[str, Product] = {}
ENTRY = "cuda"
"""What manifests of such programs have in place of the symbol of an entry."""


def compile_for_device(
    graph: Graph, device: str | Device, passes: Sequence[Pass] = PIPELINE, records: bool = True
) -> DeviceExecutable:
    """A graph, which is not changed, as a program on a device, or on that of a name; ``records`` as DeviceExecutable
    takes it. Raises CompileError for a device of whose kind there is no target, and what ``device_named`` does."""
    found = device_named(device) if isinstance(device, str) else device
    return load_on_device(compile_graph_for(graph, found, passes), found, records)


def compile_graph_for(graph: Graph, device: Device, passes: Sequence[Pass] = PIPELINE) -> CompiledGraph:
    """As ``compile.compile_graph``, for a device: code and plan, from the disk cache where they are there."""
    stages = Stages(graph, target=target_of(device), passes=passes)
    disk = cache.current()
    start = time.perf_counter()
    parts = (*key_parts(stages), device.takes, *_tool_versions(device)) if disk else ()
    entry, found = find_or_build(disk, stages.target, parts, lambda: compile_stages_for(stages, device))
    if found:
        stages.seconds["cache"] = time.perf_counter() - start
        config.logger("compile").info("%s: found in the cache", graph.name)
    return CompiledGraph(entry.manifest, entry.object, entry.constants, stages, on_device=entry.on_device)


def compile_stages_for(stages: Stages, device: Device) -> CompiledGraph:
    """The rest of a compile that may have been looked at on its way."""
    with watched(stages):
        _check(stages.lowered, device)
        manifest, constants = manifest_of(stages.scheduled, ENTRY, stages.target)
        plan = plan_launches(stages.scheduled, stages.source, manifest, stages.execution.products)
        code = _binary(stages, device)
        return CompiledGraph(manifest, code, constants, stages, on_device=cache.OnDevice(plan, stages.source.text))


def _check(program: Program, device: Device) -> None:
    """Raises CompileError for what only programs of the CPU can do."""
    if any(axis.flag for call in program.calls for axis in call.loops):
        raise CompileError(
            f"{program.name} has branches or loops that values decide, which {device.name} cannot run yet",
            remedy="where for both ways, scan for a known number of steps, or the CPU",
        )
    if any(kernel.host >= 0 for kernel in program.kernels):
        raise CompileError(
            f"{program.name} calls Python (a hook or an opaque function), which {device.name} cannot do yet",
            remedy="graphc.hooks.traced for hooks that only compute, no hooks, or the CPU",
        )


def target_of(device: Device) -> Target:
    """What code for a device is made for; raises CompileError where that is no GPU."""
    target = target_named(device.target)
    if not is_gpu(target):
        raise CompileError(f"{device.name} is a {device.target}, for which there is no CUDA C")
    return replace(target, features=f"+{TF32}") if config.read().tf32 else target


def load_on_device(compiled: cache.Entry, device: Device, records: bool = True) -> DeviceExecutable:
    """Loads the code onto its device."""
    if compiled.on_device is None:
        raise CompileError(f"{compiled.manifest.name} was compiled for the CPU, not for {device.name}")
    code = compiled.on_device.text if device.takes == "text" else compiled.object
    program = DeviceExecutable(compiled.on_device.plan, device, device.load(code), compiled.constants, records)
    program.code_bytes = len(code)
    if program.status_slot >= 0 and isinstance(compiled, CompiledGraph) and compiled.stages.has_graph:
        checks = checks_of(compiled.stages.traced)
        program.explain = Refusals(lambda: checks)
    return program


def _binary(stages: Stages, device: Device) -> bytes:
    """What a device loads, where that is not the text."""
    if device.takes == "text":
        return b""
    return nvrtc.compile_cubin(stages.cuda, stages.target.cpu).image


def _tool_versions(device: Device) -> tuple[str, ...]:
    """Versions of what makes code for a device of the text."""
    return () if device.takes == "text" else (repr(nvrtc.version()),)


# ---- the plan


def plan_launches(
    program: Program, source: CudaSource, manifest: Manifest, products: Mapping[str, Product] = NO_PRODUCTS
) -> DevicePlan:
    """The launches of a scheduled program, for every size of its dimensions; ``products`` are what the device's library
    computes, by kernel."""
    launches = []
    arena = next(b.name for b in manifest.buffers if b.cls == "arena")
    for number, call in enumerate(program.calls):
        made = _launch(program, source, call, arena)
        product = products.get(call.kernel)
        launches.append(made if product is None else _with_product(program, call, made, product, f"{number}."))
    return DevicePlan(manifest, tuple(launches), program.checked, manifest.dims)


def _launch(program: Program, source: CudaSource, call: Call, arena: str) -> LaunchSpec:
    kernel, launch = program.kernel(call.kernel), source.launches[call.kernel]
    dims: list[Any] = [size_of(d) for d in dims_of_kernel(kernel).values()]
    return LaunchSpec(
        call.kernel,
        launch.symbol,
        call.size(launch.grid),
        launch.threads,
        launch.dynamic,
        tuple(_place(program, call, i, b.dtype.itemsize, arena) for i, b in enumerate(kernel.arguments)),
        tuple(map(call.size, dims)),
        tuple(LoopSpec(axis.name, axis.extent) for axis in call.loops),
    )


def _with_product(program: Program, call: Call, made: LaunchSpec, product: Product, prefix: str) -> LaunchSpec:
    """What the library does in place of a launch; the launch where the matrices do not lie as the library wants it.
    Loops of the product are called ``prefix`` and their number."""
    descriptor = product.descriptor()
    if descriptor is None:
        return made
    arguments = program.kernel(call.kernel).arguments
    places = {b.name: (b.dtype.itemsize, place) for b, place in zip(arguments, made.arguments, strict=True)}
    loops = [LoopSpec(f"{prefix}{i}", call.size(extent)) for i, extent in enumerate(product.loops)]
    operands = []
    for operand in product.operands.values():
        itemsize, place = places[operand.buffer]
        moves = zip(loops, operand.moves, strict=True)
        steps = [StepSpec(loop.name, call.size(move) * itemsize) for loop, move in moves]
        offset = place.offset + call.size(operand.start) * itemsize
        operands.append(Place(place.buffer, offset, (*place.steps, *steps)))
    fields = {name: call.size(value) for name, value in descriptor.fields().items()}
    return replace(
        made,
        arguments=tuple(operands),
        sizes=(),
        loops=(*made.loops, *loops),
        product={name: value for name, value in fields.items() if not is_size(value)},
        product_sizes={name: value for name, value in fields.items() if is_size(value)},
    )


def _place(program: Program, call: Call, position: int, itemsize: int, arena: str) -> Place:
    """Where an argument of a call starts."""
    storage, index = _root(program, call.args[position]), call.offset(position)
    steps = tuple(StepSpec(axis.name, index.coefficient(axis) * itemsize) for axis in _axes(index))
    offset = index.constant * itemsize
    if storage.cls == "temp":
        return Place(arena, storage.offset + offset, steps)
    return Place(storage.name, offset, steps)


def _axes(index: Index) -> list[Axis]:
    """The loops on which a base offset depends, which it does in no other way."""
    return [atom for atom, _ in index.terms if isinstance(atom, Axis)]


def _root(program: Program, name: str) -> Storage:
    """The storage whose memory a storage uses."""
    storage = program.storage(name)
    while storage.alias:
        storage = program.storage(storage.alias)
    return storage


use_copier(copy_strided)
