"""WebAssembly module of a library: its objects and weights, linked."""

from __future__ import annotations

from graphc.c_library.system import Linking, System
from graphc.codegen.link.wasm_module import STACK_BYTES, link_wasm
from graphc.codegen.link.wasm_reader import read_wasm_object
from graphc.codegen.machine.linkage import WORD

WASM_KINDS = ("wasm", "js", "d.ts", "html")
"""Kinds of files for WebAssembly, which are also their suffixes: module, its loader in JavaScript, types of the
loader, and a page that calls it."""


def _link(linking: Linking) -> dict[str, bytes]:
    """Link a module that exports its functions, its memory, and the first free address.

    Tables of inputs and outputs are left out: the loader in JavaScript has them.
    """
    plan = linking.plan
    functions = [name for name in plan.exports if name not in plan.tables]
    data = {plan.inner("weights"): linking.weights.tobytes()}
    stack = STACK_BYTES + WORD * max(program.words for entry in plan.entries for program in entry.programs)
    return {"wasm": link_wasm(linking.objects, functions, data=data, supply=linking.supply, stack_bytes=stack)}


SYSTEM = System(
    title="WebAssembly",
    fits=lambda target: target.is_wasm,
    example="wasm",
    kinds=WASM_KINDS,
    library=".wasm",
    link=_link,
    code_bytes=lambda code: sum(len(function.body) for function in read_wasm_object(code).functions),
    no_beside="a WebAssembly module contains its weights",
    no_proof="realtime=True proves properties of machine code, which an engine makes of WebAssembly when it loads it",
)
