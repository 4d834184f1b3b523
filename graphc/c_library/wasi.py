"""Command of a WebAssembly library: reads the inputs of a call as .npy files from stdin, writes its outputs to stdout.

Sources: WASI preview 1 (fd_read, fd_write, args_get, proc_exit), and the description of .npy files in numpy.lib.format.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.base.errors import CompileError
from graphc.base.sizes.size import is_size
from graphc.c_library.bindings import shape_equations
from graphc.c_library.functions import CODE, GuardedWriter
from graphc.c_library.plan import EntryPlan, LibraryArgument, LibraryPlan
from graphc.c_library.wasi_runtime import runtime, text_constant
from graphc.codegen.llvm.module import Function, Item, LlvmModule
from graphc.codegen.llvm.sizes import register_of

START = "_start"
"""Function that runs the command."""
_TENSOR_BYTES = 20
"""Bytes of a record of a library's table of inputs or outputs: addresses of name, shape and sizes, type and rank."""


def emit_command(plan: LibraryPlan) -> str:
    """Return the LLVM text of the function START, which calls the entry that the first argument names, or the only one.

    Raises CompileError for an entry with a dimension that no shape determines.
    """
    init, error_text = plan.symbol("init"), plan.symbol("error_text")
    declarations: dict[str, Item] = {
        init: f"declare {CODE} @{init}(ptr, i64)",
        error_text: f"declare ptr @{error_text}(i32 signext)",
    }
    runs = [_run(plan, entry, declarations) for entry in plan.entries]
    names = [f"@entry.{i} = internal constant {text_constant(e.name)}" for i, e in enumerate(plan.entries)]
    usage = "pass the name of an entry: " + ", ".join(entry.name for entry in plan.entries)
    names.append(f"@usage = internal constant {text_constant(usage)}")
    return LlvmModule((runtime(plan.triple), *names, *declarations.values(), "", *runs, _start(plan))).text


def _run(plan: LibraryPlan, entry: EntryPlan, declarations: dict[str, Item]) -> Function:
    """Emit the function that reads the inputs of an entry, calls it, and writes its outputs."""
    w, function = GuardedWriter(declarations), plan.symbol(entry.name)
    arena_size = f"{function}_arena_size"
    net = w.call("ptr", "@allocate", f"i64 {plan.context_bytes}")
    w.require_none(w.call(CODE, f"@{plan.symbol('init')}", f"ptr {net}, i64 {plan.context_bytes}"))
    sizes = [w.room(f"[{len(a.spec.shape)} x i64]", 8) for a in entry.inputs]
    tables = [_records(plan, entry, end, len(group)) for end, group in _groups(entry)]
    for table in tables:
        declarations[table[0]] = f"@{table[0]} = external constant [{_TENSOR_BYTES} x i8]"
    inputs = [w.call("ptr", "@read.input", f"ptr {r}, ptr {s}") for r, s in zip(tables[0][1], sizes, strict=True)]
    w.do("call void @finish()")
    _solve(w, entry, sizes)
    dims = [f"i64 {register_of(d)}" for d in entry.dims]
    arena_bytes = w.call("i64", f"@{arena_size}", ", ".join(dims))
    w.require(w.value(f"icmp sge i64 {arena_bytes}, 0"), "ERROR_SIZE")
    _check_shapes(w, entry.inputs, sizes)
    output_sizes = [_sizes(w, argument) for argument in entry.outputs]
    outputs = []
    for record, stored in zip(tables[1][1], output_sizes, strict=True):
        nbytes = w.call("i64", "@bytes.of", f"ptr {record}, ptr {stored}")
        outputs.append(w.call("ptr", "@allocate", f"i64 {nbytes}"))
    arena = w.call("ptr", "@allocate", f"i64 {arena_bytes}")
    pointers = [f"ptr {x}" for x in (*inputs, *outputs, arena)]
    arguments = ", ".join([f"ptr {net}", *dims, *pointers, f"i64 {arena_bytes}"])
    w.require_none(w.call(CODE, f"@{function}", arguments))
    for record, stored, data in zip(tables[1][1], output_sizes, outputs, strict=True):
        w.do(f"call void @write.output(ptr {record}, ptr {stored}, ptr {data})")
    kinds = ", ".join(["ptr", *["i64"] * len(dims), *["ptr"] * len(pointers), "i64"])
    declarations[function] = f"declare {CODE} @{function}({kinds})"
    declarations[arena_size] = f"declare i64 @{arena_size}({', '.join(['i64'] * len(dims))})"
    return w.function(f"run.{entry.name}", [], local=True)


def _groups(entry: EntryPlan) -> tuple[tuple[str, Sequence[LibraryArgument]], ...]:
    return ("inputs", entry.inputs), ("outputs", entry.outputs)


def _records(plan: LibraryPlan, entry: EntryPlan, end: str, count: int) -> tuple[str, list[str]]:
    """Return the table of inputs or outputs, and the address of each record."""
    table = plan.symbol(f"{entry.name}_{end}")
    return table, [f"getelementptr (i8, ptr @{table}, i32 {_TENSOR_BYTES * number})" for number in range(count)]


def _solve(w: GuardedWriter, entry: EntryPlan, sizes: Sequence[str]) -> None:
    """Emit the named dimensions, computed from the sizes of inputs."""
    solved = set()
    for number, axis, dimension, factor, rest in shape_equations(entry):
        size = w.load("i64", w.offset(sizes[number], 8 * axis))
        difference = w.value(f"sub i64 {size}, {w.size(rest)}")
        remainder = w.value(f"srem i64 {difference}, {factor}")
        w.require(w.equal("i64", remainder, "0"), "ERROR_SIZE")
        w.do(f"{register_of(dimension)} = sdiv i64 {difference}, {factor}")
        solved.add(dimension)
    missing = next((d for d in entry.dims if d not in solved), None)
    if missing is not None:
        raise CompileError(
            f"the shapes of the inputs of {entry.name!r} do not determine {missing}, which a WASI command computes",
            remedy="leave 'wasi' out of emit, or give an input a dimension that is this one alone",
        )


def _check_shapes(w: GuardedWriter, arguments: Sequence[LibraryArgument], sizes: Sequence[str]) -> None:
    """Emit a check that sizes with named dimensions are equal in all inputs."""
    for argument, stored in zip(arguments, sizes, strict=True):
        for axis, size in enumerate(argument.spec.shape):
            if is_size(size):
                actual = w.load("i64", w.offset(stored, 8 * axis))
                w.require(w.equal("i64", actual, w.size(size)), "ERROR_SIZE")


def _sizes(w: GuardedWriter, argument: LibraryArgument) -> str:
    """Store the sizes of an output, and return their address."""
    stored = w.room(f"[{len(argument.spec.shape)} x i64]", 8)
    for axis, size in enumerate(argument.spec.shape):
        w.store("i64", w.size(size), w.offset(stored, 8 * axis))
    return stored


def _start(plan: LibraryPlan) -> Function:
    w = GuardedWriter({})
    if len(plan.entries) == 1:
        _call(w, plan, plan.entries[0])
    else:
        arguments = _arguments(w)
        for number, entry in enumerate(plan.entries):
            behind = w.call("ptr", "@after", f"ptr {arguments}, ptr @entry.{number}")
            w.avoid(w.equal("ptr", behind, "null"), f"other{number}")
            w.need(w.equal("i8", w.load("i8", behind), "0"), f"other{number}")
            _call(w, plan, entry)
            w.label(f"other{number}")
        w.go("usage")
        w.label("usage")
        w.do("call void @stop(ptr @usage)")
        w.do("unreachable")
    return Function(START, (), w.body, "void", local=False, calls=True)


def _arguments(w: GuardedWriter) -> str:
    """Emit the address of the first argument of the command."""
    w.value("call i32 @args.sizes.get(ptr @count, ptr @vector)")
    count = w.value(f"zext i32 {w.load('i32', '@count')} to i64")
    nbytes = w.value(f"zext i32 {w.load('i32', '@vector')} to i64")
    addresses = w.call("ptr", "@allocate", f"i64 {w.value(f'mul i64 {count}, 4')}")
    texts = w.call("ptr", "@allocate", f"i64 {nbytes}")
    w.value(f"call i32 @args.get(ptr {addresses}, ptr {texts})")
    w.need(w.value(f"icmp uge i64 {count}, 2"), "usage")
    return w.value(f"load ptr, ptr {w.offset(addresses, 4)}, align 4")


def _call(w: GuardedWriter, plan: LibraryPlan, entry: EntryPlan) -> None:
    """Emit the call of an entry; an error of the library is written to stderr."""
    code = w.call(CODE, f"@run.{entry.name}", "")
    good, bad = f"good.{entry.name}", f"bad.{entry.name}"
    w.choose(w.equal("i32", code, "0"), good, bad)
    w.label(bad)
    text = w.call("ptr", f"@{plan.symbol('error_text')}", f"i32 signext {code}")
    w.do(f"call void @stop(ptr {text})")
    w.do("unreachable")
    w.label(good)
    w.do("ret void")
