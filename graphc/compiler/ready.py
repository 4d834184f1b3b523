"""Loading of built programs from disk into this process, without importing a compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from graphc.base.errors import ArgumentError, CompileError, GraphcError
from graphc.base.lazy import deferred
from graphc.base.sizes.named_dims import dimensions
from graphc.base.sizes.size_limits import question_behind
from graphc.compiler import cache
from graphc.files.manifest import Manifest, TargetSpec
from graphc.runtime import pool, threads
from graphc.runtime.call import Executable
from graphc.runtime.loader import host, load_object, runs_here

if TYPE_CHECKING:
    from graphc.codegen.machine.target import Target

# Import facts of machines only where code is made for one.
architecture = deferred("graphc.codegen.machine.target:architecture")
host_target = deferred("graphc.codegen.machine.target:host_target")
is_gpu = deferred("graphc.codegen.machine.cuda.facts:is_gpu")
target_named = deferred("graphc.codegen.machine.target:target_named")

_build_object = deferred("graphc.codegen.llvm.build:build_object")
_emit_pool = deferred("graphc.codegen.llvm.thread_pool:emit_pool")


def target_spec(target: Target) -> TargetSpec:
    """Return a target as recorded in manifests."""
    features = tuple(sorted(f[1:] for f in target.features.split(",") if f.startswith("+")))
    return TargetSpec(target.triple, target.cpu, features, target.costs.strict_order)


HOST = "host"
"""Name of this machine as a target."""


def key_text(target: Target) -> str:
    """Return the text of a target in keys of programs: all facts and costs, which may have been replaced.

    The facts of this machine follow from its ``TargetSpec`` and the sources of graphc, which all keys contain.
    """
    return HOST if target is host_target() else repr(target)


def spec_and_text(name: str) -> tuple[TargetSpec, str]:
    """Return the record and the key text of a target by name, without facts of machines for this one."""
    if name == HOST:
        return host(), HOST
    target = running_target(name)
    return target_spec(target), key_text(target)


def running_target(name: str) -> Target:
    """Return the target of a name (``host``, or one with fixed facts such as ``avx2``) for code that this process will
    run.

    It has this machine's system. Raise CompileError for an unknown name, for another architecture, and where this
    machine lacks an instruction set; ArgumentError for anything but a name.
    """
    if not isinstance(name, str):
        raise ArgumentError(
            f"target is the name of a machine, got {type(name).__name__}",
            remedy="pass the model as the first argument: graphc.compile(model, target='avx2')",
        )
    target, here = target_named(name), host_target()
    if target is here:
        return here
    if architecture(target) == architecture(here):
        target = replace(target, triple=here.triple)
    reason = runs_here(target_spec(target))
    if reason:
        remedy = "pass device='cuda'" if is_gpu(target) else "use the default, target='host'"
        raise CompileError(f"code for {name} does not run here: {reason}", remedy=remedy)
    return target


def find_or_build(
    disk: cache.Cache | None,
    target: Target | TargetSpec | None,
    key_inputs: Iterable[str | bytes | np.ndarray],
    build: Callable[[], cache.CacheEntry],
) -> tuple[cache.CacheEntry, bool]:
    """Return the cached program for these parts and True, or build one and return it and False.

    ``target`` defaults to this machine; ``disk`` is None without a cache. Where a question about sizes stops a build,
    the cache keeps the question, and later calls raise it without building.
    """
    if disk is None:
        return build(), False
    spec = host() if target is None else target if isinstance(target, TargetSpec) else target_spec(target)
    key = key_on(disk, spec, key_inputs)
    known = disk.question(key)
    if known is not None:
        raise known.error()
    try:
        return disk.get(key, spec, build)
    except GraphcError as error:
        if (question := question_behind(error)) is not None:
            dims = sorted(dimensions(question[1:]).values(), key=lambda d: d.name)
            disk.ask(key, cache.Question(error.what, *question, tuple(dims)))
        raise


def key_on(disk: cache.Cache, spec: TargetSpec, key_inputs: Iterable[str | bytes | np.ndarray]) -> str:
    """Return the key of a program for these parts. It depends on the choices of tuning in the cache."""
    chosen = [(name, label) for name, label in sorted(disk.choices(spec).items()) if label]
    return cache.key_of(spec, (*key_inputs, repr(chosen)) if chosen else key_inputs)


def load_ready(compiled: cache.CacheEntry) -> Executable:
    """Load code into this process. Raise CompileError when it was built for another kind of machine."""
    manifest = compiled.manifest
    reason = runs_here(manifest.target)
    if reason:
        raise CompileError(f"the code of {manifest.name} does not run here: {reason}")
    prepare_threads(compiled.object)
    return Executable(manifest, load_object(compiled.object, manifest.entry, manifest.target), compiled.constants)


def prepare_threads(code: bytes) -> None:
    """Load the pool of worker threads if object code needs it. Without the pool, such code runs on one thread."""
    if threads.SYMBOL.encode() in code:
        pool.install(lambda: small_object("pool", _emit_pool))


def small_object(name: str, emit: Callable[[Target], str], *key_inputs: str, quick: bool = True) -> bytes:
    """Return object code for this machine of the LLVM text that ``emit`` writes, from the disk cache where possible.

    A cache hit does not need the text, which must depend only on the target, the sources of graphc and ``parts``.
    ``quick`` builds faster, for code whose speed matters little.
    """

    def build() -> cache.CacheEntry:
        target = host_target()
        manifest = Manifest(name, name, (), 0, 0, target_spec(target), cache.versions())
        return cache.CacheEntry(manifest, _build_object(emit(target), target, quick), np.zeros(0, np.uint8))

    key = ("small object", name, str(quick), *key_inputs)
    return find_or_build(cache.current(), None, key, build)[0].object
