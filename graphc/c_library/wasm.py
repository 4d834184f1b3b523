"""WebAssembly module of a library: its objects and weights, linked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphc.base.errors import ArgumentError, CompileError
from graphc.c_library.plan import BESIDE, LibraryPlan
from graphc.codegen.link.wasm_module import STACK_BYTES, link_wasm
from graphc.codegen.link.wasm_reader import read_wasm_object
from graphc.codegen.machine.linkage import WORD
from graphc.codegen.machine.target import Target

WASM_KINDS = ("wasm", "js", "d.ts", "html")
"""Kinds of files for WebAssembly, which are also their suffixes: module, its loader in JavaScript, types of the
loader, and a page that calls it."""


def check_wasm_choices(kinds: Sequence[str], machine: Target, weights: str, realtime: bool) -> None:
    """Raise an error where kinds of files do not fit the target, or WebAssembly has no such option."""
    unfit = next((kind for kind in kinds if (kind in WASM_KINDS) is not machine.is_wasm), None)
    if unfit is not None:
        remedy = (
            f"choose emit from {', '.join(WASM_KINDS)}" if machine.is_wasm else "pass target='wasm' (--target wasm)"
        )
        raise ArgumentError(f"there is no file of kind {unfit!r} for {machine.triple}", remedy=remedy)
    if machine.is_wasm and weights == BESIDE:
        raise ArgumentError("a WebAssembly module contains its weights", remedy="pass weights='inside'")
    if machine.is_wasm and realtime:
        raise CompileError(
            "realtime=True proves properties of machine code, which an engine makes of WebAssembly when it loads it",
            remedy="pass realtime=False",
        )


def wasm_module(
    objects: Sequence[bytes], plan: LibraryPlan, weights: np.ndarray, supply: Callable[[str], bytes | None]
) -> bytes:
    """Link the object code of a library to a module that exports its functions, its memory, and the first free address.

    Tables of inputs and outputs are left out: the loader in JavaScript has them.
    """
    tables = {plan.symbol(f"{entry.name}_{table}") for entry in plan.entries for table in ("inputs", "outputs")}
    functions = [name for name in plan.exports if name not in tables]
    frame = WORD * max(entry.words for entry in plan.entries)
    data = {plan.inner("weights"): weights.tobytes()}
    return link_wasm(objects, functions, data=data, supply=supply, stack_bytes=STACK_BYTES + frame)


def wasm_code_bytes(code: bytes) -> int:
    """Return the bytes of the functions of an object."""
    return sum(len(function.body) for function in read_wasm_object(code).functions)
