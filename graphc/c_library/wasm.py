"""WebAssembly module of a library: its objects and weights, linked."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.c_library.system import Linking, System
from graphc.c_library.wasi import START, emit_command
from graphc.codegen.link.wasm_module import STACK_BYTES, link_wasm
from graphc.codegen.link.wasm_reader import read_wasm_object
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.linkage import WORD

WASM_KINDS = ("wasm", "js", "d.ts", "html")
"""Kinds of files that are written by default, which are also their suffixes: module, its loader in JavaScript, types of
the loader, and a page that calls it."""
_VARIANTS = {"relaxed": "wasm-relaxed", "scalar": "wasm-scalar"}
"""Kinds of further modules, for engines with more or fewer instructions: the target of each."""
COMMAND = "wasi"
"""Kind of a module with a function that reads stdin and writes stdout."""


def _link(linking: Linking) -> dict[str, bytes]:
    """Link a module that exports its functions, its memory, and the first free address; and the module of a command.

    Tables of inputs and outputs are left out of the first one: the loader in JavaScript has them.
    """
    plan, kinds = linking.plan, linking.kinds
    contents = {"wasm": _module(linking, [name for name in plan.exports if name not in plan.tables])}
    if COMMAND in kinds:
        contents[COMMAND] = _module(linking, [START], [build_object(emit_command(plan), linking.target)])
    return contents


def _module(linking: Linking, functions: Sequence[str], others: Sequence[bytes] = ()) -> bytes:
    plan = linking.plan
    data = {} if plan.is_beside else {plan.inner("weights"): linking.weights.tobytes()}
    stack = STACK_BYTES + WORD * max(program.words for entry in plan.entries for program in entry.programs)
    objects = [*linking.objects, *others]
    return link_wasm(objects, functions, data=data, supply=linking.supply, stack_bytes=stack)


SYSTEM = System(
    title="WebAssembly",
    fits=lambda target: target.is_wasm,
    example="wasm",
    kinds=(*WASM_KINDS, *_VARIANTS, COMMAND),
    library=".wasm",
    variants=_VARIANTS,
    named_kinds=(*_VARIANTS, COMMAND),
    kinds_inside=(COMMAND,),
    link=_link,
    code_bytes=lambda code: sum(len(function.body) for function in read_wasm_object(code).functions),
    no_proof="realtime=True proves properties of machine code, which an engine makes of WebAssembly when it loads it",
)
