"""C header of a library."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping

from graphc.base.sizes.size import is_size
from graphc.c_library.plan import (
    HEADER_BYTES,
    STATUSES,
    TYPE_NUMBERS,
    EntryPlan,
    LibraryArgument,
    LibraryPlan,
    shape_text,
)
from graphc.compiler.realtime import RealtimeReport
from graphc.files.container import ALIGNMENT
from graphc.runtime.threads import MAX_THREADS

_SIZE_TYPE = re.compile(r"\bsize_t\b")
"""A size has 64 bits on all machines."""
_WIDTH = 100
"""Column limit of comments."""


def c_header(plan: LibraryPlan, reports: Mapping[str, RealtimeReport] | None = None) -> str:
    """Return the header's text, valid C99 and C++. ``reports``: what is proven of entries, by name."""
    guard = f"{plan.upper}_H"
    sections = [
        _title(plan),
        f"#ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n#include <stdint.h>\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        _constants(plan),
        _types(plan),
        _library(plan),
        *(_entry(plan, entry, (reports or {}).get(entry.name)) for entry in plan.entries),
        _states(plan),
        _threads(plan) if plan.threads else "",
        f"#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {guard} */",
    ]
    text = "\n".join(section for section in sections if section) + "\n"
    return _SIZE_TYPE.sub("uint64_t", text).replace("SIZE_MAX", "UINT64_MAX") if plan.is_bare else text


def _comment(*lines: str) -> str:
    """Format lines of text as one C comment."""
    safe = [line.replace("*/", "* /") for line in lines]
    if len(safe) == 1:
        return f"/* {safe[0]} */\n"
    return "\n".join([f"/* {safe[0]}", *(f" * {line}".rstrip() for line in safe[1:])]) + " */\n"


def signature(entry: EntryPlan) -> str:
    """Format an entry's types: ``run(x: f32[1,4]) -> (output: f32[1,2])``."""
    inputs, outputs = (", ".join(str(a.spec) for a in arguments) for arguments in (entry.inputs, entry.outputs))
    return f"{entry.name}({inputs}) -> ({outputs})"


def _title(plan: LibraryPlan) -> str:
    return _comment(
        f"{plan.name}: a neural network as a C library, made by graphc {plan.version} for {plan.target_name}.",
        "",
        *(signature(entry) for entry in plan.entries),
        "",
        *textwrap.wrap(
            f"A context holds {_context_contents(plan)}. The caller gives its memory, and that of an arena, which "
            "holds what a "
            f"call needs while it runs. No function allocates memory or writes to a global{_globals(plan)}. Arrays "
            "are dense and in C order, aligned as their types, and apart from each other, the context and the arena. "
            f"Threads may call at the same time, {_sharing(plan)}.",
            _WIDTH,
        ),
        "",
        f"Digest: {plan.digest.hex()}",
    )


def _context_contents(plan: LibraryPlan) -> str:
    return "the states of the model, which calls write" if plan.states else "no states, for the model has none"


def _globals(plan: LibraryPlan) -> str:
    return ", but for the threads that calls share" if plan.threads else ""


def _sharing(plan: LibraryPlan) -> str:
    if plan.states:
        return "each with a context and an arena of its own"
    return "with one context, each with an arena of its own"


def _constants(plan: LibraryPlan) -> str:
    p = plan.upper
    codes = [f"    {p}_{s.name} = {code}, /* {s.text} */\n" for code, s in enumerate(STATUSES)]
    codes[-1] = codes[-1].replace(",", "", 1)
    lines = [
        _comment(f"What functions return; {plan.symbol('error_text')} has it in words."),
        "enum {\n",
        *codes,
        "};\n\n",
    ]
    types = [f"    {p}_{name.upper()} = {number},\n" for name, number in TYPE_NUMBERS.items()]
    types[-1] = types[-1].replace(",", "", 1)
    comment = "Types of elements; a bool is a byte that is 0 or 1, f16 and bf16 are their bits."
    lines += [_comment(comment), "enum {\n", *types, "};\n\n"]
    lines += [
        _comment("Bytes of a context and of a saved state, and alignment of contexts and arenas."),
        f"#define {p}_CONTEXT_SIZE {plan.context_bytes}\n",
        f"#define {p}_STATE_SIZE {HEADER_BYTES + plan.state_bytes}\n",
        f"#define {p}_ALIGNMENT {ALIGNMENT}\n",
    ]
    return "".join(lines)


# NOTE: programs call a function of a DLL without this attribute, but do not find its data.
_IMPORTED = """
/* Define {p}_STATIC to link the archive or the object file instead of the DLL. */
#ifdef {p}_STATIC
#define {p}_IMPORTED extern
#else
#define {p}_IMPORTED extern __declspec(dllimport)
#endif
"""


def _types(plan: LibraryPlan) -> str:
    n = plan.name
    return (
        _comment(f"A context, in memory of the caller: at least {n}_context_size() bytes, aligned to {ALIGNMENT}.")
        + f"typedef struct {n}_t {n}_t;\n\n"
        + _comment("An input or output. Tables of them end with one whose name is NULL.")
        + "typedef struct {\n"
        + "    const char *name;\n"
        + "    const char *shape;    /* its sizes as text, such as batch,28 */\n"
        + "    const int64_t *sizes; /* -1 for one that depends on named dimensions */\n"
        + "    int32_t type;\n"
        + "    int32_t rank;\n"
        + f"}} {n}_tensor_t;\n"
        + (_IMPORTED.format(p=plan.upper) if plan.is_windows else "")
    )


def _library(plan: LibraryPlan) -> str:
    n = plan.name
    pieces = [
        _comment("Version of graphc, digest of code and weights, and the machine that the code is for."),
        f"const char *{n}_version(void);\nconst char *{n}_digest(void);\nconst char *{n}_target(void);\n\n",
        _comment("A code in words; never NULL."),
        f"const char *{n}_error_text(int code);\n\n",
        f"size_t {n}_context_size(void);\n\n",
    ]
    if not plan.is_beside:
        pieces += [
            _comment(
                "Makes a context in so many bytes of memory, with the states that the model has at first.",
                "It holds no resource: its memory may be freed, and copied while no call uses it.",
            ),
            f"int {n}_init({n}_t *net, size_t size);\n",
        ]
        return "".join(pieces)
    size = HEADER_BYTES + plan.weight_bytes
    pieces += [
        f"#define {plan.upper}_WEIGHTS_SIZE {size}\n\n",
        _comment(
            "Makes a context in so many bytes of memory, with the states that the model has at first.",
            f"The file of weights lies in memory at weights, aligned to {ALIGNMENT}, as long as the context is used.",
            "It holds no resource: its memory may be freed, and copied while no call uses it.",
        ),
        f"int {n}_init({n}_t *net, size_t size, const void *weights, size_t weights_size);\n",
    ]
    if plan.opens_weights:
        pieces += [
            "\n",
            _comment("Maps a file into memory (open, mmap), and undoes that."),
            f"int {n}_open_weights(const char *path, const void **weights, size_t *size);\n",
            f"int {n}_close_weights(const void *weights, size_t size);\n",
        ]
    return "".join(pieces)


def macro(plan: LibraryPlan, entry: EntryPlan, *words: str) -> str:
    """Return the name of a macro of an entry."""
    return "_".join([plan.name, entry.name, *words]).upper()


def _entry(plan: LibraryPlan, entry: EntryPlan, report: RealtimeReport | None) -> str:
    n = plan.symbol(entry.name)
    lines = [f"{entry.name}: inputs and outputs.", ""]
    lines += [f"  {_describe(a)}" for a in entry.inputs]
    lines += [f"  {_describe(a)}, written" for a in entry.outputs]
    if entry.dims:
        lines += ["", "Sizes that each call says:"]
        lines += [
            f"  {identifier}: {d.low} to {d.high}"
            for identifier, d in zip(entry.dim_identifiers, entry.dims, strict=True)
        ]
        lines += [f"  where {assumed}" for assumed in entry.assumptions]
    dims = ", ".join(f"int64_t {d}" for d in entry.dim_identifiers)
    writes = entry.writes
    lines += ["", "Writes states of the context." if writes else "Writes nothing of the context."]
    pieces = [_comment(*lines)]
    for argument in entry.arguments:
        if argument.is_fixed:
            pieces.append(_macros(plan, entry, argument))
    for identifier, d in zip(entry.dim_identifiers, entry.dims, strict=True):
        pieces.append(f"#define {macro(plan, entry, identifier, 'MAX')} {d.high}\n")
    if not is_size(entry.arena):
        pieces.append(f"#define {macro(plan, entry, 'ARENA_SIZE')} {entry.arena}\n")
    table = f"{f'{plan.upper}_IMPORTED' if plan.is_windows else 'extern'} const {plan.name}_tensor_t"
    pieces += ["\n", f"{table} {n}_inputs[{len(entry.inputs) + 1}];\n"]
    pieces += [f"{table} {n}_outputs[{len(entry.outputs) + 1}];\n\n"]
    unfit = "; SIZE_MAX where sizes are out of range" if entry.dims else ""
    pieces += [_comment(f"Bytes of the arena of a call, aligned to {ALIGNMENT}{unfit}.")]
    pieces += [f"size_t {n}_arena_size({dims or 'void'});\n\n"]
    pieces.append(f"int {n}({', '.join(parameters(plan, entry))});\n")
    return "".join([*pieces, *(_proven(plan, entry, report) if report else ())])


def _proven(plan: LibraryPlan, entry: EntryPlan, report: RealtimeReport) -> Iterator[str]:
    """Yield the limits that are proven for a call."""
    without = f", without those of {', '.join(report.outside)}" if report.outside else ""
    figures = "bytes of stack" if report.instructions is None else "bytes of stack and so many instructions"
    text = (
        "Proven from the machine code: a call allocates no memory, takes no lock and makes no system call. "
        f"It takes at most so many {figures}{without}."
    )
    yield "\n" + _comment(*textwrap.wrap(text, _WIDTH))
    yield f"#define {macro(plan, entry, 'STACK_SIZE')} {report.stack_bytes}\n"
    if report.instructions is not None:
        yield f"#define {macro(plan, entry, 'INSTRUCTIONS')} {report.instructions}\n"


def _describe(argument: LibraryArgument) -> str:
    """Describe an argument: ``x: f32[1,28]``, followed by the model's name for it if C needs another identifier."""
    spec = argument.spec
    same = argument.identifier == spec.name
    return f"{argument.identifier}: {spec.dtype}[{shape_text(spec)}]{'' if same else f' ({spec.name})'}"


def parameters(plan: LibraryPlan, entry: EntryPlan) -> list[str]:
    """List the parameters of an entry's C function."""
    writes = entry.writes
    return [
        f"{'' if writes else 'const '}{plan.name}_t *net",
        *(f"int64_t {d}" for d in entry.dim_identifiers),
        *(f"const {a.ctype} *{a.identifier}" for a in entry.inputs),
        *(f"{a.ctype} *{a.identifier}" for a in entry.outputs),
        "void *arena",
        "size_t arena_size",
    ]


def _macros(plan: LibraryPlan, entry: EntryPlan, argument: LibraryArgument) -> str:
    name = macro(plan, entry, argument.identifier)
    sizes = shape_text(argument.spec).replace(",", ", ")
    shape = f"#define {name}_SHAPE {{{sizes}}}\n" if sizes else ""
    return f"#define {name}_COUNT {argument.count}\n#define {name}_RANK {len(argument.spec.shape)}\n{shape}"


def _states(plan: LibraryPlan) -> str:
    n = plan.name
    lines = [f"  {s.spec}" for s in plan.states] or ["  (none)"]
    return (
        _comment(
            "States of a context, which can be kept outside of it and put back, also by another build",
            "of the same model:",
            *lines,
        )
        + f"size_t {n}_state_size(void);\n"
        + f"int {n}_save_state(const {n}_t *net, void *buffer, size_t size);\n"
        + f"int {n}_load_state({n}_t *net, const void *buffer, size_t size);\n"
        + f"int {n}_reset_state({n}_t *net); /* as after init */\n"
    )


def _threads(plan: LibraryPlan) -> str:
    n = plan.name
    return (
        _comment(
            f"How many threads calls with this context share, 1 to {MAX_THREADS}; 1 after init. Workers are",
            "started by the first calls that need them, which allocates memory; they belong to the library, and",
            "stay. While one call has them others run on their own threads. In the child of a fork there are none:",
            "forget_threads before the first call there.",
        )
        + f"int {n}_set_threads({n}_t *net, int64_t count);\n"
        + f"int {n}_forget_threads(void);\n"
    )
