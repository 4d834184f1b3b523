"""Emitters of the native call of a program from Python: it checks arrays, makes outputs and calls the entry.

Each Python function here writes one native function. ``_FUNCTIONS`` gives their signatures and order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graphc.codegen.door import python_watch
from graphc.codegen.door.writer import NativeWriter
from graphc.codegen.machine.target import Target

_DENSE, _WRITEABLE = 0x101, 0x501
"""Flags of an ndarray: C-contiguous (1) and aligned (0x100), and writeable (0x400)."""
_LINE = 64
"""Bytes of a cache line, the alignment of larger outputs."""


def _accept(w: NativeWriter) -> None:
    """Emit the address of the elements of %array, or null unless it is an ndarray of the declared type whose flags
    include %need."""
    w.need(w.equal("ptr", w.get("ptr", "%array", "Object.type"), w.get("ptr", "%api", "Api.ndarray")), "bad")
    dtype = w.equal("ptr", w.get("ptr", "%array", "Array.dtype"), w.get("ptr", "%spec", "Tensor.dtype"))
    rank = w.get("i32", "%array", "Array.rank")
    ranks = w.equal("i32", rank, w.get("i32", "%spec", "Tensor.rank"))
    flags = w.value(f"and i32 {w.get('i32', '%array', 'Array.flags')}, %need")
    set_ = w.equal("i32", flags, "%need")
    w.need(w.both(w.both(dtype, ranks), set_), "bad")
    extents, declared = w.get("ptr", "%array", "Array.extents"), w.get("ptr", "%spec", "Tensor.extents")
    with w.each(w.value(f"zext i32 {rank} to i64")) as i:
        w.need(w.equal("i64", w.item("i64", extents, i), w.item("i64", declared, i)), "bad")
    w.give("ptr", w.get("ptr", "%array", "Array.data"))
    w.label("bad")
    w.give("ptr", "null")


def _overlaps(w: NativeWriter) -> None:
    """Emit whether the %size bytes from %start on share memory with one of %count arrays with addresses in the
    table."""
    stop = w.offset("%start", "%size")
    w.avoid(w.equal("i64", "%size", "0"), "no")
    with w.each("%count") as i:
        spec = w.record("Tensor", "%specs", i)
        other = w.load("ptr", _slot(w, "%table", spec))
        nbytes = w.get("i64", spec, "Tensor.nbytes")
        end = w.offset(other, nbytes)
        some = w.differ("i64", nbytes, "0")
        before, after = w.value(f"icmp ult ptr %start, {end}"), w.value(f"icmp ult ptr {other}, {stop}")
        w.avoid(w.both(w.both(before, after), some), "yes")
    w.go("no")
    w.label("yes")
    w.give("i1", "true")
    w.label("no")
    w.give("i1", "false")


def _slot(w: NativeWriter, table: str, spec: str) -> str:
    """Return the address of an array's word in the table."""
    return w.element_address("ptr", table, w.get("i64", spec, "Tensor.slot"))


def _accepted(w: NativeWriter, spec: str, array: str, flags: int) -> str:
    """Return the address of an array that is as declared; otherwise branch to ``bad``."""
    data = w.call("ptr", "@accept", f"ptr %api, ptr {spec}, ptr {array}, i32 {flags}")
    w.need(w.differ("ptr", data, "null"), "bad")
    return data


def _read_number(w: NativeWriter) -> None:
    """Emit whether %given is an int of 64 bits; it is written to %to."""
    overflow = w.value("alloca i32, align 4")
    w.need(w.equal("ptr", w.get("ptr", "%given", "Object.type"), w.get("ptr", "%api", "Api.int")), "bad")
    value = w.call("i64", w.get("ptr", "%api", "Api.number"), f"ptr %given, ptr {overflow}")
    w.need(w.equal("i32", w.load("i32", overflow), "0"), "bad")
    w.store("i64", value, "%to")
    w.give("i1", "true")
    w.label("bad")
    w.give("i1", "false")


def _is_number(w: NativeWriter) -> None:
    """Emit whether the input is an integer, and %given is that integer."""
    number = w.value("alloca i64, align 8")
    w.need(w.equal("i32", w.get("i32", "%spec", "Tensor.rank"), "-1"), "bad")
    w.need(w.call("i1", "@read_number", f"ptr %api, ptr %given, ptr {number}"), "bad")
    w.give("i1", w.equal("i64", w.load("i64", number), w.load("i64", w.get("ptr", "%spec", "Tensor.extents"))))
    w.label("bad")
    w.give("i1", "false")


def _take_inputs(w: NativeWriter) -> None:
    """Emit whether all inputs are as declared and do not overlap what the program writes; it fills the table."""
    specs, table = w.get("ptr", "%context", "CallContext.inputs"), w.get("ptr", "%context", "CallContext.table")
    bound_arrays, written = (
        w.get("ptr", "%context", "CallContext.bound"),
        w.get("i64", "%context", "CallContext.written_count"),
    )
    with w.each("%count") as i:
        spec = w.record("Tensor", specs, i)
        argument = w.item("ptr", "%args", i)
        data = w.call("ptr", "@accept", f"ptr %api, ptr {spec}, ptr {argument}, i32 {_DENSE}")
        w.choose(w.differ("ptr", data, "null"), "array", "number")
        w.label("number")
        same = w.call("i1", "@is_number", f"ptr %api, ptr {spec}, ptr {argument}")
        w.choose(same, "taken", "bad")
        w.label("array")
        size = w.get("i64", spec, "Tensor.nbytes")
        w.avoid(
            w.call("i1", "@meets", f"ptr {table}, ptr {data}, i64 {size}, ptr {bound_arrays}, i64 {written}"), "bad"
        )
        w.store("ptr", data, _slot(w, table, spec))
        w.go("taken")
        w.label("taken")
    w.give("i1", "true")
    w.label("bad")
    w.give("i1", "false")


def _resize(w: NativeWriter) -> None:
    """Emit the fitting of an idle context to the sizes of these arguments, and whether that succeeds."""
    solver, specs = w.get("ptr", "%context", "CallContext.solver"), w.get("ptr", "%context", "CallContext.inputs")
    w.need(w.differ("ptr", solver, "null"), "no")
    with w.each("%count") as i:
        array, spec = w.item("ptr", "%args", i), w.record("Tensor", specs, i)
        rank = w.get("i32", spec, "Tensor.rank")
        w.choose(w.equal("i32", rank, "-1"), "fits", "array")  # the reads below check numbers
        w.label("array")
        w.need(w.equal("ptr", w.get("ptr", array, "Object.type"), w.get("ptr", "%api", "Api.ndarray")), "no")
        w.choose(w.equal("i32", w.get("i32", array, "Array.rank"), rank), "fits", "no")
        w.label("fits")
    reads, steps, moves = (w.get("ptr", solver, f"Solver.{kind}") for kind in ("reads", "steps", "moves"))
    with w.each(w.get("i64", solver, "Solver.read_count")) as i:
        read = w.record("Read", reads, i)
        argument, to = w.item("ptr", "%args", w.get("i64", read, "Read.input")), w.get("ptr", read, "Read.to")
        dim = w.get("i64", read, "Read.dim")
        w.choose(w.value(f"icmp slt i64 {dim}, 0"), "number", "extent")
        w.label("number")
        w.choose(w.call("i1", "@read_number", f"ptr %api, ptr {argument}, ptr {to}"), "known", "no")
        w.label("extent")
        w.store("i64", w.item("i64", w.get("ptr", argument, "Array.extents"), dim), to)
        w.go("known")
        w.label("known")
    with w.each(w.get("i64", solver, "Solver.step_count")) as i:
        _step(w, w.record("SizeStep", steps, i))
    with w.each(w.get("i64", solver, "Solver.move_count")) as i:
        move = w.record("Move", moves, i)
        w.store("i64", w.load("i64", w.get("ptr", move, "Move.value")), w.get("ptr", move, "Move.to"))
    size = w.load("i64", w.get("ptr", solver, "Solver.arena"))
    own = w.value(f"icmp ule i64 {size}, {w.get('i64', solver, 'Solver.own_size')}")
    w.put("i64", w.value(f"select i1 {own}, i64 0, i64 {size}"), "%context", "CallContext.arena")
    w.store("ptr", w.get("ptr", solver, "Solver.own"), w.get("ptr", solver, "Solver.arena_word"))
    w.give("i1", "true")
    w.label("no")
    w.give("i1", "false")


def _step(w: NativeWriter, step: str) -> None:
    """Emit one step of a Solver. It branches to ``no`` if Python must check the call."""
    a, b = (w.load("i64", w.get("ptr", step, f"SizeStep.{operand}")) for operand in "ab")
    kinds = ("add", "multiply", "divide", "larger", "at_most", "differ")
    cases = " ".join(f"i64 {kind}, label %{name}" for kind, name in enumerate(kinds))
    w.do(f"switch i64 {w.get('i64', step, 'SizeStep.kind')}, label %no [ {cases} ]")
    results: list[tuple[str, str]] = []
    for name, verb in (("add", "sadd"), ("multiply", "smul")):
        w.label(name)
        both = w.call("{ i64, i1 }", f"@llvm.{verb}.with.overflow.i64", f"i64 {a}, i64 {b}")
        w.avoid(w.value(f"extractvalue {{ i64, i1 }} {both}, 1"), "no")
        results.append((w.value(f"extractvalue {{ i64, i1 }} {both}, 0"), w.block))
        w.go("write")
    w.label("divide")
    w.need(w.value(f"icmp sgt i64 {b}, 0"), "no")
    quotient, rest = w.value(f"sdiv i64 {a}, {b}"), w.value(f"srem i64 {a}, {b}")
    results.append((w.value(f"add i64 {quotient}, {w.value(f'ashr i64 {rest}, 63')}"), w.block))
    w.go("write")
    w.label("larger")
    results.append((w.value(f"select i1 {w.value(f'icmp sgt i64 {a}, {b}')}, i64 {a}, i64 {b}"), w.block))
    w.go("write")
    w.label("at_most")
    w.choose(w.value(f"icmp sle i64 {a}, {b}"), "stepped", "no")
    w.label("differ")
    w.choose(w.differ("i64", a, b), "stepped", "no")
    w.label("write")
    w.store("i64", w.merge("i64", *results), w.get("ptr", step, "SizeStep.to"))
    w.go("stepped")
    w.label("stepped")


def _take_resized(w: NativeWriter) -> None:
    """Emit whether all inputs are as declared, now or after fitting the context to their sizes."""
    arguments = "ptr %context, ptr %api, ptr %args, i64 %count"
    w.choose(w.call("i1", "@take_inputs", arguments), "yes", "other")
    w.label("other")
    w.need(w.call("i1", "@resize", arguments), "no")
    w.choose(w.call("i1", "@take_inputs", arguments), "yes", "no")
    w.label("yes")
    w.give("i1", "true")
    w.label("no")
    w.give("i1", "false")


def _take_output(w: NativeWriter) -> None:
    """Emit whether %array can hold output number %i and overlaps nothing else; it fills the table."""
    specs, table = w.get("ptr", "%context", "CallContext.outputs"), w.get("ptr", "%context", "CallContext.table")
    spec = w.record("Tensor", specs, "%i")
    data = _accepted(w, spec, "%array", _WRITEABLE)
    size = w.get("i64", spec, "Tensor.nbytes")
    for others, count in (("inputs", "input_count"), ("bound", "bound_count")):
        arrays = w.get("ptr", "%context", f"CallContext.{others}")
        number = w.get("i64", "%context", f"CallContext.{count}")
        w.avoid(w.call("i1", "@meets", f"ptr {table}, ptr {data}, i64 {size}, ptr {arrays}, i64 {number}"), "bad")
    w.avoid(w.call("i1", "@meets", f"ptr {table}, ptr {data}, i64 {size}, ptr {specs}, i64 %i"), "bad")
    w.store("ptr", data, _slot(w, table, spec))
    w.give("i1", "true")
    w.label("bad")
    w.give("i1", "false")


def _refer(w: NativeWriter, change: str, value: str) -> None:
    """Emit a change of an object's reference count: ``incref`` or ``decref``."""
    w.do(f"call void {w.get('ptr', '%api', f'Api.{change}')}(ptr {value})")


def _new_array(w: NativeWriter, dtype: str, shape: str, memory: str, flags: str) -> str:
    """Return a new array, or null and an exception; ``shape`` is rank and extents. The array owns a reference to its
    type."""
    _refer(w, "incref", dtype)
    kind, make = w.get("ptr", "%api", "Api.ndarray"), w.get("ptr", "%api", "Api.new_array")
    return w.call("ptr", make, f"ptr {kind}, ptr {dtype}, {shape}, ptr null, {memory}, {flags}, ptr null")


def _block(w: NativeWriter) -> None:
    """Emit a new array that owns %nbytes bytes, or null and an exception."""
    size = w.value("alloca i64, align 8")
    w.store("i64", w.value(f"add i64 %nbytes, {_LINE}"), size)
    dtype = w.get("ptr", "%api", "Api.bytes_dtype")
    w.give("ptr", _new_array(w, dtype, f"i32 1, ptr {size}", "ptr null", "i32 0"))


def _block_for(w: NativeWriter) -> None:
    """Emit a reference to a block for an output, or null and an exception. It takes one of the output's two blocks that
    is large enough and has no other reference, so that nobody can reach its memory. Otherwise it creates a block in
    place of the second."""
    nbytes, number = w.get("i64", "%spec", "Tensor.nbytes"), w.get("i32", "%spec", "Tensor.block")
    large = w.value(f"icmp uge i64 {nbytes}, {w.number('reuse_from')}")
    w.choose(w.both(w.value(f"icmp sge i32 {number}, 0"), large), "look", "plain")
    w.label("plain")
    w.give("ptr", w.call("ptr", "@block", f"ptr %api, i64 {nbytes}"))
    w.label("look")
    blocks, item = w.get("ptr", "%context", "CallContext.blocks"), w.get("ptr", "%api", "Api.get")
    incref, none = w.get("ptr", "%api", "Api.incref"), w.get("ptr", "%api", "Api.none")
    first = w.value(f"zext i32 {number} to i64")
    second = w.value(f"add i64 {first}, 1")
    with w.each(second, first, "ule") as i:
        block_ = w.call("ptr", item, f"ptr {blocks}, i64 {i}")
        w.choose(w.equal("ptr", block_, none), "taken", "count")
        w.label("count")
        alone = w.equal("i32", w.get("i32", block_, "Object.references"), "1")
        room = w.load("i64", w.get("ptr", block_, "Array.extents"))
        w.choose(
            w.both(alone, w.value(f"icmp uge i64 {room}, {w.value(f'add i64 {nbytes}, {_LINE}')}")), "again", "taken"
        )
        w.label("again")
        w.do(f"call void {incref}(ptr {block_})")
        w.give("ptr", block_)
        w.label("taken")
    new_block = w.call("ptr", "@block", f"ptr %api, i64 {nbytes}")
    w.avoid(w.equal("ptr", new_block, "null"), "done")
    older, replace = w.call("ptr", item, f"ptr {blocks}, i64 {second}"), w.get("ptr", "%api", "Api.replace")
    for index, block in ((first, older), (second, new_block)):
        w.do(f"call void {incref}(ptr {block})")
        w.call("i32", replace, f"ptr {blocks}, i64 {index}, ptr {block}")
    w.go("done")
    w.label("done")
    w.give("ptr", new_block)


def _make_output(w: NativeWriter) -> None:
    """Emit a new array for output number %i, or null and an exception; it fills the table."""
    specs, table = w.get("ptr", "%context", "CallContext.outputs"), w.get("ptr", "%context", "CallContext.table")
    spec = w.record("Tensor", specs, "%i")
    nbytes = w.get("i64", spec, "Tensor.nbytes")
    w.choose(w.value(f"icmp uge i64 {nbytes}, {w.number('align_from')}"), "reserve", "ready")
    w.label("reserve")
    block = w.call("ptr", "@block_for", f"ptr %context, ptr %api, ptr {spec}")
    w.avoid(w.equal("ptr", block, "null"), "failed")
    last = w.offset(w.get("ptr", block, "Array.data"), _LINE - 1)
    aligned = w.call("ptr", "@llvm.ptrmask.p0.i64", f"ptr {last}, i64 {-_LINE}")
    reserved = w.block
    w.go("ready")
    w.label("ready")
    base = w.merge("ptr", ("null", "entry"), (block, reserved))
    start = w.merge("ptr", ("null", "entry"), (aligned, reserved))
    flags = w.merge("i32", ("0", "entry"), (str(_WRITEABLE), reserved))
    dtype = w.get("ptr", spec, "Tensor.dtype")
    extents, rank = w.get("ptr", spec, "Tensor.extents"), w.get("i32", spec, "Tensor.rank")
    array = _new_array(w, dtype, f"i32 {rank}, ptr {extents}", f"ptr {start}", f"i32 {flags}")
    w.avoid(w.equal("ptr", array, "null"), "release")
    w.avoid(w.equal("ptr", base, "null"), "done")
    w.call("i32", w.get("ptr", "%api", "Api.set_base"), f"ptr {array}, ptr {base}")
    w.go("done")
    w.label("done")
    data = w.get("ptr", array, "Array.data")
    w.store("ptr", data, _slot(w, table, spec))
    w.give("ptr", array)
    w.label("release")
    _refer(w, "decref", base)
    w.go("failed")
    w.label("failed")
    w.give("ptr", "null")


def _idle(w: NativeWriter) -> None:
    """Emit whether no call uses the context or waits for it."""
    gate = w.get("ptr", "%context", "CallContext.gate")
    either = w.value(f"or i64 {w.get('i64', gate, 'Gate.busy')}, {w.get('i64', gate, 'Gate.waiting')}")
    w.give("i1", w.equal("i64", either, "0"))


def _has_room(w: NativeWriter) -> None:
    """Emit whether the shared arena, if the call needs it, is free and large enough."""
    need = w.get("i64", "%context", "CallContext.arena")
    w.avoid(w.equal("i64", need, "0"), "yes")
    arena = w.get("ptr", "%api", "Api.shared")
    busy, size = w.get("i64", arena, "Shared.busy"), w.get("i64", arena, "Shared.size")
    w.give("i1", w.both(w.equal("i64", busy, "0"), w.value(f"icmp uge i64 {size}, {need}")))
    w.label("yes")
    w.give("i1", "true")


def _execute(w: NativeWriter) -> None:
    """Emit the run of the program on the table, for long programs without the interpreter lock. This thread runs no
    Python code meanwhile."""
    entry, table = w.get("ptr", "%context", "CallContext.entry"), w.get("ptr", "%context", "CallContext.table")
    need, arena = w.get("i64", "%context", "CallContext.arena"), w.get("ptr", "%api", "Api.shared")
    shares = w.differ("i64", need, "0")
    w.need(shares, "choose")
    address = w.get("ptr", arena, "Shared.address")
    w.store("ptr", address, w.element_address("ptr", table, w.get("i64", "%context", "CallContext.arena_slot")))
    w.go("choose")
    w.label("choose")
    w.need(w.equal("i64", w.get("i64", "%context", "CallContext.releases"), "0"), "unlocked")
    w.do(f"call void {entry}(ptr {table})")
    w.do("ret void")
    w.label("unlocked")
    gate = w.get("ptr", "%context", "CallContext.gate")
    release, acquire = w.get("ptr", "%api", "Api.release"), w.get("ptr", "%api", "Api.acquire")
    lends = w.value(f"zext i1 {shares} to i64")
    during = w.value(f"or i64 {w.get('i64', arena, 'Shared.busy')}, {lends}")
    w.put("i64", "1", gate, "Gate.busy")
    w.put("i64", during, arena, "Shared.busy")
    thread = w.call("ptr", release, "")
    w.do(f"call void {entry}(ptr {table})")
    w.do(f"call void {acquire}(ptr {thread})")
    w.put("i64", "0", gate, "Gate.busy")
    w.need(shares, "over")
    w.put("i64", "0", arena, "Shared.busy")
    w.go("over")
    w.label("over")
    w.do("ret void")


def _stopped(w: NativeWriter) -> None:
    """Emit whether a check has stopped the last call. The fallback repeats that call and reports which check."""
    status = w.get("ptr", "%context", "CallContext.status")
    is_stopped = w.differ("i8", w.load("i8", status), "0")
    w.need(is_stopped, "out")
    w.store("i8", "0", status)
    w.go("out")
    w.label("out")
    w.give("i1", is_stopped)


def _take_arguments(w: NativeWriter) -> None:
    """Branch to ``python`` unless no other call runs and the inputs are as declared. The needed scratch memory depends
    on their sizes."""
    w.need(w.call("i1", "@idle", "ptr %context"), "python")
    w.need(w.call("i1", "@take_resized", "ptr %context, ptr %api, ptr %args, i64 %count"), "python")
    w.need(w.call("i1", "@has_room", "ptr %context, ptr %api"), "python")


def _call_one(w: NativeWriter) -> None:
    """Emit the call of a program with a single output outside of a container. A null result with %again set asks for
    the fallback."""
    _take_arguments(w)
    fresh = w.equal("ptr", "%out", w.get("ptr", "%api", "Api.none"))
    w.choose(fresh, "make", "take")
    w.label("make")
    output = w.call("ptr", "@make_output", "ptr %context, ptr %api, i64 0")
    w.choose(w.equal("ptr", output, "null"), "stop", "run")
    w.label("take")
    w.need(w.call("i1", "@take_output", "ptr %context, ptr %api, ptr %out, i64 0"), "python")
    _refer(w, "incref", "%out")
    own = w.block
    w.go("run")
    w.label("run")
    result = w.merge("ptr", (output, "make"), ("%out", own))
    w.do("call void @execute(ptr %context, ptr %api)")
    w.avoid(w.call("i1", "@stopped", "ptr %context"), "drop")
    w.give("ptr", result)
    w.label("drop")
    _refer(w, "decref", result)
    w.go("python")
    _ask_again(w)
    w.label("stop")
    w.give("ptr", "null")


def _ask_again(w: NativeWriter) -> None:
    """Write the block ``python``, which asks for the fallback."""
    w.label("python")
    w.store("i1", "true", "%again")
    w.give("ptr", "null")


def _container(w: NativeWriter) -> None:
    """Emit the list or tuple for the outputs, or null: a new one, or a copy of %out (of a tuple, the same object)."""
    # NOTE: created before all checks, because creation may start the garbage collector, and so any Python code.
    count = w.get("i64", "%context", "CallContext.output_count")
    w.need(w.equal("ptr", "%out", w.get("ptr", "%api", "Api.none")), "check")
    w.give("ptr", w.call("ptr", w.get("ptr", "%context", "CallContext.new"), f"i64 {count}"))
    w.label("check")
    kind, expected = w.get("ptr", "%out", "Object.type"), w.get("ptr", "%context", "CallContext.kind")
    w.need(w.equal("ptr", kind, expected), "python")
    w.need(w.equal("i64", w.get("i64", "%out", "Sized.size"), count), "python")
    slicer = w.get("ptr", "%context", "CallContext.slice")
    w.give("ptr", w.call("ptr", slicer, f"ptr %out, i64 0, i64 {count}"))
    _ask_again(w)


def _call_many(w: NativeWriter) -> None:
    """Emit the call of a program whose outputs are in a list or tuple."""
    result = w.call("ptr", "@container", "ptr %context, ptr %api, ptr %out, ptr %again")
    w.avoid(w.equal("ptr", result, "null"), "stop")
    _take_arguments(w)
    fresh = w.equal("ptr", "%out", w.get("ptr", "%api", "Api.none"))
    count = w.get("i64", "%context", "CallContext.output_count")
    item, put = w.get("ptr", "%context", "CallContext.get"), w.get("ptr", "%context", "CallContext.set")
    with w.each(count) as i:
        w.choose(fresh, "make", "take")
        w.label("make")
        output = w.call("ptr", "@make_output", f"ptr %context, ptr %api, i64 {i}")
        w.avoid(w.equal("ptr", output, "null"), "drop")
        w.call("i32", put, f"ptr {result}, i64 {i}, ptr {output}")
        w.go("filled")
        w.label("take")
        array = w.call("ptr", item, f"ptr {result}, i64 {i}")
        w.choose(w.call("i1", "@take_output", f"ptr %context, ptr %api, ptr {array}, i64 {i}"), "filled", "python")
        w.label("filled")
    w.do("call void @execute(ptr %context, ptr %api)")
    w.avoid(w.call("i1", "@stopped", "ptr %context"), "python")
    w.give("ptr", result)
    w.label("python")
    w.store("i1", "true", "%again")
    w.go("drop")
    w.label("drop")
    _refer(w, "decref", result)
    w.give("ptr", "null")
    w.label("stop")
    w.give("ptr", "null")


def _given_out(w: NativeWriter) -> None:
    """Emit the value of the keyword out; None without keywords, null for other keywords."""
    none = w.get("ptr", "%api", "Api.none")
    w.choose(w.equal("ptr", "%names", "null"), "absent", "named")
    w.label("absent")
    w.give("ptr", none)
    w.label("named")
    size = w.get("i64", "%names", "Sized.size")
    w.do(f"switch i64 {size}, label %other [ i64 0, label %absent i64 1, label %one ]")
    w.label("one")
    w.need(w.equal("ptr", w.get("ptr", "%names", "Tuple.items"), w.get("ptr", "%api", "Api.out")), "other")
    w.give("ptr", w.item("ptr", "%args", "%count"))
    w.label("other")
    w.give("ptr", "null")


def _call(w: NativeWriter) -> None:
    """Emit the entry for Python. It distinguishes one output from many, and calls the fallback if anything is not as
    declared."""
    again = w.value("alloca i1, align 1")
    w.store("i1", "false", again)
    context = w.get("ptr", "%self", "Owner.data")
    api = w.get("ptr", context, "CallContext.api")
    w.need(w.equal("i64", "%count", w.get("i64", context, "CallContext.input_count")), "python")
    w.need(w.call("i1", "@same", f"ptr {w.get('ptr', context, 'CallContext.watch')}"), "python")
    out = w.call("ptr", "@given_out", f"ptr {api}, ptr %args, i64 %count, ptr %names")
    w.need(w.differ("ptr", out, "null"), "python")
    arguments = f"ptr {context}, ptr {api}, ptr %args, i64 %count, ptr {out}, ptr {again}"
    w.choose(w.equal("ptr", w.get("ptr", context, "CallContext.new"), "null"), "one", "many")
    w.label("one")
    first = w.call("ptr", "@call_one", arguments)
    w.go("ask")
    w.label("many")
    every = w.call("ptr", "@call_many", arguments)
    w.go("ask")
    w.label("ask")
    result = w.merge("ptr", (first, "one"), (every, "many"))
    w.avoid(w.load("i1", again), "python")
    w.give("ptr", result)
    w.label("python")
    fallback, call = w.get("ptr", context, "CallContext.fallback"), w.get("ptr", api, "Api.call")
    w.give("ptr", w.call("ptr", call, f"ptr {fallback}, ptr %args, i64 %count, ptr %names"))


RUNNING: dict[str, Callable[[NativeWriter], None]] = {
    "internal i1 @read_number(ptr %api, ptr %given, ptr %to)": _read_number,
    "internal i1 @idle(ptr %context)": _idle,
    "internal i1 @has_room(ptr %context, ptr %api)": _has_room,
    "internal void @execute(ptr %context, ptr %api)": _execute,
    "internal i1 @stopped(ptr %context)": _stopped,
}
"""Functions that do not depend on the kinds of arguments."""
_PYTHON = "ptr %self, ptr %args, i64 %count, ptr %names"
_GIVEN = "ptr %context, ptr %api, ptr %args, i64 %count"
_FUNCTIONS: dict[str, Callable[[NativeWriter], None]] = {
    **RUNNING,
    "internal ptr @accept(ptr %api, ptr %spec, ptr %array, i32 %need)": _accept,
    "internal i1 @meets(ptr %table, ptr %start, i64 %size, ptr %specs, i64 %count)": _overlaps,
    "internal i1 @is_number(ptr %api, ptr %spec, ptr %given)": _is_number,
    f"internal i1 @take_inputs({_GIVEN})": _take_inputs,
    f"internal i1 @resize({_GIVEN})": _resize,
    f"internal i1 @take_resized({_GIVEN})": _take_resized,
    "internal i1 @take_output(ptr %context, ptr %api, ptr %array, i64 %i)": _take_output,
    "internal ptr @block(ptr %api, i64 %nbytes)": _block,
    "internal ptr @block_for(ptr %context, ptr %api, ptr %spec)": _block_for,
    "internal ptr @make_output(ptr %context, ptr %api, i64 %i)": _make_output,
    f"internal ptr @call_one({_GIVEN}, ptr %out, ptr %again)": _call_one,
    "internal ptr @container(ptr %context, ptr %api, ptr %out, ptr %again)": _container,
    f"internal ptr @call_many({_GIVEN}, ptr %out, ptr %again)": _call_many,
    "internal i1 @same(ptr %watch)": python_watch.same,
    f"ptr @graphc_same({_PYTHON})": python_watch.answer,
    "internal ptr @given_out(ptr %api, ptr %args, i64 %count, ptr %names)": _given_out,
    f"ptr @graphc_call({_PYTHON})": _call,
}
"""Writer of each function, by signature."""


def emit_call(layout: Mapping[str, int], target: Target) -> str:
    """Return the LLVM text of ``PyObject *graphc_call(PyObject *self, PyObject **args, Py_ssize_t count, PyObject
    *names)``, and of ``graphc_same`` with the same signature, which checks that the words of a Watch are unchanged.

    ``layout`` gives the offset of each ``Record.field``, and the sizes in the text. The function never fails by itself:
    arguments that are not exactly as declared go to the context's fallback.
    """
    return module(_FUNCTIONS, layout, target)


def module(functions: Mapping[str, Callable[[NativeWriter], None]], layout: Mapping[str, int], target: Target) -> str:
    """Return LLVM text of functions, by signature, each with its writer."""
    texts = [f'target triple = "{target.triple}"', "declare ptr @llvm.ptrmask.p0.i64(ptr, i64)"]
    texts += [f"declare {{ i64, i1 }} @llvm.{verb}.with.overflow.i64(i64, i64)" for verb in ("sadd", "smul")]
    for signature, write in functions.items():
        writer = NativeWriter(layout)
        write(writer)
        texts.append(f"define {signature} #0 {{\n{writer.body}\n}}")
    return "\n\n".join([*texts, 'attributes #0 = { nounwind "frame-pointer"="none" }', ""])
