"""Compilation of a graph for a device: its kernels as CUDA C, and the plan of their launches."""

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
"""Entry in manifests of such programs, which have no symbol."""


def compile_for_device(
    graph: Graph, device: str | Device, passes: Sequence[Pass] = PIPELINE, records: bool = True
) -> DeviceExecutable:
    """Compile a graph for a device, given by name or object, and load it. The graph is not changed.

    For ``records`` see DeviceExecutable. Raise CompileError for a kind of device without a target, and the errors of
    ``device_named``.
    """
    target_device = device_named(device) if isinstance(device, str) else device
    return load_on_device(compile_graph_for(graph, target_device, passes), target_device, records)


def compile_graph_for(graph: Graph, device: Device, passes: Sequence[Pass] = PIPELINE) -> CompiledGraph:
    """Compile a graph for a device to code and plan, or find them in the disk cache; see ``compile.compile_graph``."""
    stages = Stages(graph, target=target_of(device), passes=passes)
    disk = cache.current()
    start = time.perf_counter()
    key = (*key_parts(stages), device.takes, *_tool_versions(device)) if disk else ()
    entry, is_cached = find_or_build(disk, stages.target, key, lambda: compile_stages_for(stages, device))
    if is_cached:
        stages.seconds["cache"] = time.perf_counter() - start
        config.logger("compile").info("%s: found in the cache", graph.name)
    return CompiledGraph(entry.manifest, entry.object, entry.constants, stages, on_device=entry.on_device)


def compile_stages_for(stages: Stages, device: Device) -> CompiledGraph:
    """Run the remaining stages of a compilation. Some may have been computed already."""
    with watched(stages):
        _check(stages.lowered, device)
        manifest, constants = manifest_of(stages.scheduled, ENTRY, stages.target)
        plan = plan_launches(stages.scheduled, stages.source, manifest, stages.execution.products)
        code = _binary(stages, device)
        return CompiledGraph(manifest, code, constants, stages, on_device=cache.DeviceCode(plan, stages.source.text))


def _check(program: Program, device: Device) -> None:
    """Raise CompileError for a program with features of CPUs only."""
    if any(axis.flag for call in program.calls for axis in call.loops):
        raise CompileError(
            f"{program.name} has branches or loops that depend on values, which {device.name} cannot run yet",
            remedy="use where for both branches, scan for a known number of steps, or the CPU",
        )
    if any(kernel.host >= 0 for kernel in program.kernels):
        raise CompileError(
            f"{program.name} calls Python (a hook or an opaque function), which {device.name} cannot do yet",
            remedy="use graphc.hooks.traced for hooks that only compute, remove hooks, or use the CPU",
        )


def target_of(device: Device) -> Target:
    """Return the target of code for a device. Raise CompileError for anything but a GPU."""
    target = target_named(device.target)
    if not is_gpu(target):
        raise CompileError(f"{device.name} is a {device.target}, for which there is no CUDA C")
    return replace(target, features=f"+{TF32}") if config.read().tf32 else target


def load_on_device(compiled: cache.CacheEntry, device: Device, records: bool = True) -> DeviceExecutable:
    """Load code onto its device."""
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
    """Return the binary for a device; empty for a device that compiles the text."""
    if device.takes == "text":
        return b""
    return nvrtc.compile_cubin(stages.cuda, stages.target.cpu).image


def _tool_versions(device: Device) -> tuple[str, ...]:
    """Return the versions of the tools that compile the text for a device."""
    return () if device.takes == "text" else (repr(nvrtc.version()),)


# ---- the plan


def plan_launches(
    program: Program, source: CudaSource, manifest: Manifest, products: Mapping[str, Product] = NO_PRODUCTS
) -> DevicePlan:
    """Return the launches of a scheduled program, for every size of its dimensions.

    ``products`` holds, by kernel, the products computed by the device's library.
    """
    launches = []
    arena = next(b.name for b in manifest.buffers if b.cls == "arena")
    for number, call in enumerate(program.calls):
        launch = _launch(program, source, call, arena)
        product = products.get(call.kernel)
        launches.append(launch if product is None else _with_product(program, call, launch, product, f"{number}."))
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


def _with_product(program: Program, call: Call, launch: LaunchSpec, product: Product, prefix: str) -> LaunchSpec:
    """Return a launch of the library's product instead of a kernel; the kernel's launch where the library does not
    support the layout of the matrices.

    Names of the product's loops are ``prefix`` and their number.
    """
    descriptor = product.descriptor()
    if descriptor is None:
        return launch
    arguments = program.kernel(call.kernel).arguments
    locations = {b.name: (b.dtype.itemsize, location) for b, location in zip(arguments, launch.arguments, strict=True)}
    loops = [LoopSpec(f"{prefix}{i}", call.size(extent)) for i, extent in enumerate(product.loops)]
    operands = []
    for operand in product.operands.values():
        itemsize, location = locations[operand.buffer]
        moves = zip(loops, operand.moves, strict=True)
        steps = [StepSpec(loop.name, call.size(move) * itemsize) for loop, move in moves]
        offset = location.offset + call.size(operand.start) * itemsize
        operands.append(Place(location.buffer, offset, (*location.steps, *steps)))
    fields = {name: call.size(value) for name, value in descriptor.fields().items()}
    return replace(
        launch,
        arguments=tuple(operands),
        sizes=(),
        loops=(*launch.loops, *loops),
        product={name: value for name, value in fields.items() if not is_size(value)},
        product_sizes={name: value for name, value in fields.items() if is_size(value)},
    )


def _place(program: Program, call: Call, position: int, itemsize: int, arena: str) -> Place:
    """Return the location of a call's argument: its buffer, offset, and steps of the loops."""
    storage, index = _root(program, call.args[position]), call.offset(position)
    steps = tuple(StepSpec(axis.name, index.coefficient(axis) * itemsize) for axis in _axes(index))
    offset = index.constant * itemsize
    if storage.cls == "temp":
        return Place(arena, storage.offset + offset, steps)
    return Place(storage.name, offset, steps)


def _axes(index: Index) -> list[Axis]:
    """Return the loops on which a base offset depends, always linearly."""
    return [atom for atom, _ in index.terms if isinstance(atom, Axis)]


def _root(program: Program, name: str) -> Storage:
    """Return the storage whose memory a storage uses."""
    storage = program.storage(name)
    while storage.alias:
        storage = program.storage(storage.alias)
    return storage


use_copier(copy_strided)
