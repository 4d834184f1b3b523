"""Callables of compiled programs that run no Python where this interpreter allows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache as once
from typing import Any

import numpy as np

from graphc import config
from graphc.artifact import Manifest
from graphc.codegen.llvm_build import build_object
from graphc.codegen.python_call import emit_call
from graphc.codegen.target import host_target
from graphc.compiler import cache
from graphc.compiler.compile import find_or_build, target_spec
from graphc.errors import CompileError
from graphc.runtime import fast_call
from graphc.runtime.call import Executable


@once
def caller() -> fast_call.Caller | None:
    """What makes native callables in this process, or None where calls go through Python."""
    layout = fast_call.layout()
    if layout is None:
        return None
    target = host_target()
    text = emit_call(layout, target)

    def build() -> cache.Entry:
        manifest = Manifest("call", fast_call.SYMBOL, (), 0, 0, target_spec(target), cache.versions())
        return cache.Entry(manifest, build_object(text, target, quick=True), np.zeros(0, np.uint8))

    try:
        entry, _ = find_or_build(cache.current(), target, ("call", text), build)
        return fast_call.Caller(entry.object)
    except CompileError as error:
        config.logger("compile").warning("calls go through Python: %s", error.what)
        return None


def native(
    program: Executable,
    bound: Sequence[np.ndarray],
    fallback: Callable[..., Any],
    kind: type | None = list,
    gate: fast_call.Gate | None = None,
) -> Callable[..., Any]:
    """A callable as of ``Caller.bind``; ``fallback`` itself where there are no native calls."""
    found = caller()
    return fallback if found is None else found.bind(program, bound, fallback, kind, gate)
