"""Emitters of the native call of a program on lists of tensors of another library.

The library reads its tensors itself (DLPack's C exchange interface fills a DLTensor) and makes the results. Each Python
function here writes one native function, as in ``python_call``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graphc.codegen.door import python_call, python_watch
from graphc.codegen.door.writer import NativeWriter
from graphc.codegen.machine.target import Target

_CPU = "1"
"""DLPack's device type of the CPU."""


def _call_object(w: NativeWriter, function: str, arguments: str, count: int | str) -> str:
    """Emit the call of an object with some arguments; return its result, null for an exception."""
    call = w.get("ptr", "%api", "Api.call")
    return w.call("ptr", call, f"ptr {function}, ptr {arguments}, i64 {count}, ptr null")


def _refer(w: NativeWriter, change: str, value: str) -> None:
    """Emit a change of an object's reference count: ``incref`` or ``decref``."""
    w.do(f"call void {w.get('ptr', '%api', f'Api.{change}')}(ptr {value})")


def _is(w: NativeWriter) -> None:
    """Emit whether a function of PyTorch returns this one object for these arguments. An exception counts as no, and
    stays set."""
    result = _call_object(w, "%function", "%arguments", "%count")
    w.need(w.differ("ptr", result, "null"), "raised")
    _refer(w, "decref", result)  # safe: the expected object stays alive, and is only compared
    w.give("i1", w.equal("ptr", result, "%wanted"))
    w.label("raised")
    w.give("i1", "false")


def _clear(w: NativeWriter) -> None:
    """Emit the reset of the current exception."""
    w.do(f"call void {w.get('ptr', '%library', 'TensorLibrary.clear')}()")


def _read(w: NativeWriter) -> None:
    """Emit the filling of a DLTensor. The function returns the address of the elements, null if there are none. It
    writes success to %well; on failure an exception is set."""
    failed = w.call("i32", w.get("ptr", "%library", "TensorLibrary.read"), "ptr %tensor, ptr %view")
    w.store("i1", w.equal("i32", failed, "0"), "%well")
    w.need(w.load("i1", "%well"), "raised")
    w.give("ptr", w.offset(w.get("ptr", "%view", "View.data"), w.get("i64", "%view", "View.offset")))
    w.label("raised")
    w.give("ptr", "null")


def _take(w: NativeWriter) -> None:
    """Emit the check that an argument is as declared; it writes the address of the elements."""
    view = w.value(f"alloca i8, i64 {w.number('View.size')}, align 8")
    well, number, pair = (w.value(f"alloca {kind}, align 8") for kind in ("i1", "i64", "ptr"))
    rank = w.get("i32", "%given", "TensorArgument.rank")
    extents = w.get("ptr", "%given", "TensorArgument.extents")
    w.choose(w.equal("i32", rank, "-1"), "number", "tensor")
    w.label("number")
    w.need(w.call("i1", "@read_number", f"ptr %api, ptr %value, ptr {number}"), "bad")
    w.give("i1", w.equal("i64", w.load("i64", number), w.load("i64", extents)))
    w.label("tensor")
    data = w.call("ptr", "@read", f"ptr %library, ptr %value, ptr {view}, ptr {well}")
    w.need(w.load("i1", well), "raised")
    address = w.get("ptr", "%given", "TensorArgument.address")
    w.choose(w.equal("ptr", address, "null"), "anywhere", "there")
    w.label("there")
    w.give("i1", w.equal("ptr", data, address))
    w.label("anywhere")
    w.need(w.equal("i32", w.get("i32", view, "View.device"), _CPU), "bad")
    w.need(w.equal("i32", w.get("i32", view, "View.rank"), rank), "bad")
    w.need(w.equal("i32", w.get("i32", view, "View.dtype"), w.get("i32", "%given", "TensorArgument.dtype")), "bad")
    sizes, declared = w.get("ptr", view, "View.extents"), extents
    steps, expected = w.get("ptr", view, "View.strides"), w.get("ptr", "%given", "TensorArgument.strides")
    with w.each(w.value(f"zext i32 {rank} to i64")) as i:
        w.need(w.equal("i64", w.item("i64", sizes, i), w.item("i64", declared, i)), "bad")
        w.need(w.equal("i64", w.item("i64", steps, i), w.item("i64", expected, i)), "bad")
    empty = w.equal("i64", w.get("i64", "%given", "TensorArgument.some"), "0")
    w.need(w.value(f"or i1 {empty}, {w.differ('ptr', data, 'null')}"), "bad")
    w.store("ptr", "%value", pair)
    negative, no = w.get("ptr", "%library", "TensorLibrary.is_negative"), w.get("ptr", "%library", "TensorLibrary.no")
    arguments = f"ptr %library, ptr %api, ptr {negative}, ptr {pair}, i64 1, ptr {no}"
    w.need(w.call("i1", "@is", arguments), "bad")
    w.store("ptr", data, "%to")
    w.give("i1", "true")
    w.label("raised")
    _clear(w)
    w.go("bad")
    w.label("bad")
    w.give("i1", "false")


def _take_all(w: NativeWriter) -> None:
    """Emit the check that all inspected arguments are as declared; it writes the addresses of their elements."""
    records, item = w.get("ptr", "%call", "TensorCall.given"), w.get("ptr", "%api", "Api.get")
    with w.each(w.get("i64", "%call", "TensorCall.given_count")) as i:
        record = w.record("TensorArgument", records, i)
        value = w.call("ptr", item, f"ptr %list, i64 {w.get('i64', record, 'TensorArgument.number')}")
        to = w.element_address("ptr", "%addresses", i)
        arguments = f"ptr %library, ptr %api, ptr {record}, ptr {value}, ptr {to}"
        w.need(w.call("i1", "@take", arguments), "bad")
    w.give("i1", "true")
    w.label("bad")
    w.give("i1", "false")


def _make(w: NativeWriter) -> None:
    """Emit the creation of a result tensor, or null and an exception; it writes the address of the elements."""
    view = w.value(f"alloca i8, i64 {w.number('View.size')}, align 8")
    well = w.value("alloca i1, align 1")
    tensor = _call_object(
        w, w.get("ptr", "%library", "TensorLibrary.make"), w.get("ptr", "%result", "Result.arguments"), 3
    )
    w.need(w.differ("ptr", tensor, "null"), "failed")
    w.store("ptr", w.call("ptr", "@read", f"ptr %library, ptr {tensor}, ptr {view}, ptr {well}"), "%to")
    w.need(w.load("i1", well), "unread")
    w.give("ptr", tensor)
    w.label("unread")
    _refer(w, "decref", tensor)
    w.go("failed")
    w.label("failed")
    w.give("ptr", "null")


def _make_all(w: NativeWriter) -> None:
    """Emit the creation of the list of results, or null and an exception; it writes the addresses of new tensors'
    elements."""
    count, item = w.get("i64", "%call", "TensorCall.result_count"), w.get("ptr", "%api", "Api.get")
    results = w.call("ptr", w.get("ptr", "%library", "TensorLibrary.new_list"), f"i64 {count}")
    w.need(w.differ("ptr", results, "null"), "failed")
    with w.each(count) as i:
        result = w.record("Result", w.get("ptr", "%call", "TensorCall.results"), i)
        number = w.get("i64", result, "Result.number")
        cases = " ".join(f"i64 {w.number(kind)}, label %{kind}" for kind in ("object", "argument", "same"))
        w.do(f"switch i64 {w.get('i64', result, 'Result.kind')}, label %made [ {cases} ]")
        w.label("made")
        to = w.element_address("ptr", "%addresses", i)
        tensor = w.call("ptr", "@make", f"ptr %library, ptr %api, ptr {result}, ptr {to}")
        w.choose(w.equal("ptr", tensor, "null"), "drop", "place")
        w.label("object")
        known_object = w.get("ptr", result, "Result.object")
        w.go("refer")
        w.label("argument")
        passed = w.call("ptr", item, f"ptr %list, i64 {number}")
        w.go("refer")
        w.label("same")
        earlier = w.call("ptr", item, f"ptr {results}, i64 {number}")
        w.go("refer")
        w.label("refer")
        old = w.merge("ptr", (known_object, "object"), (passed, "argument"), (earlier, "same"))
        _refer(w, "incref", old)
        w.go("place")
        w.label("place")
        value = w.merge("ptr", (tensor, "made"), (old, "refer"))
        w.call("i32", w.get("ptr", "%api", "Api.replace"), f"ptr {results}, i64 {i}, ptr {value}")
    w.give("ptr", results)
    w.label("drop")
    _refer(w, "decref", results)
    w.go("failed")
    w.label("failed")
    w.give("ptr", "null")


def _holds(w: NativeWriter) -> None:
    """Emit the check that no other call runs, scratch memory is free, and the weights are unchanged. From here on until
    the program, no Python code runs."""
    context = w.get("ptr", "%call", "TensorCall.context")
    w.need(w.call("i1", "@idle", f"ptr {context}"), "no")
    w.need(w.call("i1", "@has_room", f"ptr {context}, ptr %api"), "no")
    w.need(w.call("i1", "@same", f"ptr {w.get('ptr', context, 'CallContext.watch')}"), "no")
    contents = w.get("ptr", "%call", "TensorCall.contents")
    w.avoid(w.equal("ptr", contents, "null"), "yes")
    w.give("i1", w.call("i1", w.get("ptr", "%library", "TensorLibrary.unchanged"), f"ptr {contents}"))
    w.label("yes")
    w.give("i1", "true")
    w.label("no")
    w.give("i1", "false")


def _fill(w: NativeWriter) -> None:
    """Emit the copy of addresses into the words of the table."""
    with w.each("%count") as i:
        slot = w.load("i64", w.element_address("i64", "%slots", i))
        w.choose(w.value(f"icmp slt i64 {slot}, 0"), "filled", "some")
        w.label("some")
        w.store("ptr", w.item("ptr", "%addresses", i), w.element_address("ptr", "%table", slot))
        w.go("filled")
        w.label("filled")
    w.do("ret void")


def _run(w: NativeWriter) -> None:
    """Emit a call of the program. A null result with %again set asks for the fallback."""
    argument_count, result_count = (
        w.get("i64", "%call", "TensorCall.given_count"),
        w.get("i64", "%call", "TensorCall.result_count"),
    )
    count = w.value(f"add i64 {argument_count}, {result_count}")
    addresses = w.value(f"alloca ptr, i64 {count}, align 8")
    pair = w.value("alloca ptr, align 8")
    arguments = f"ptr %call, ptr %library, ptr %api, ptr %list, ptr {addresses}"
    w.need(w.call("i1", "@take_all", arguments), "python")
    check = w.get("ptr", "%call", "TensorCall.check")
    w.choose(w.equal("ptr", check, "null"), "make", "ask")
    w.label("ask")
    w.store("ptr", "%list", pair)
    answer = _call_object(w, check, pair, 1)
    w.avoid(w.equal("ptr", answer, "null"), "failed")
    _refer(w, "decref", answer)
    w.choose(w.equal("ptr", answer, w.get("ptr", "%library", "TensorLibrary.yes")), "make", "python")
    w.label("make")
    # NOTE: creating objects may start the garbage collector, and so any Python code, including this very call.
    # Therefore the shared state is only read and written afterwards.
    rest = w.element_address("ptr", addresses, argument_count)
    results = w.call("ptr", "@make_all", f"ptr %call, ptr %library, ptr %api, ptr %list, ptr {rest}")
    w.avoid(w.equal("ptr", results, "null"), "failed")
    w.need(w.call("i1", "@holds", "ptr %call, ptr %library, ptr %api"), "drop")
    context, slots = w.get("ptr", "%call", "TensorCall.context"), w.get("ptr", "%call", "TensorCall.slots")
    table = w.get("ptr", context, "CallContext.table")
    w.do(f"call void @fill(ptr {table}, ptr {slots}, ptr {addresses}, i64 {count})")
    w.do(f"call void @execute(ptr {context}, ptr %api)")
    w.avoid(w.call("i1", "@stopped", f"ptr {context}"), "drop")
    w.give("ptr", results)
    w.label("drop")
    _refer(w, "decref", results)
    w.go("python")
    w.label("python")
    w.store("i1", "true", "%again")
    w.go("failed")
    w.label("failed")
    w.give("ptr", "null")


def _call(w: NativeWriter) -> None:
    """Emit the entry for Python. It empties the list and returns the list of results, or None if the call needs the
    fallback."""
    again = w.value("alloca i1, align 1")
    w.store("i1", "false", again)
    call = w.get("ptr", "%self", "Owner.data")
    api, library = w.get("ptr", call, "TensorCall.api"), w.get("ptr", call, "TensorCall.library")
    count = w.get("i64", call, "TensorCall.count")
    w.need(w.equal("ptr", w.get("ptr", "%list", "Object.type"), w.get("ptr", library, "TensorLibrary.list")), "python")
    w.need(w.equal("i64", w.get("i64", "%list", "Sized.size"), count), "python")
    thread_count, allowed_count = (
        w.get("ptr", library, "TensorLibrary.thread_count"),
        w.get("ptr", call, "TensorCall.threads"),
    )
    w.need(
        w.call("i1", "@is", f"ptr {library}, ptr {api}, ptr {thread_count}, ptr null, i64 0, ptr {allowed_count}"),
        "python",
    )
    results = w.call("ptr", "@run", f"ptr {call}, ptr {library}, ptr {api}, ptr %list, ptr {again}")
    w.avoid(w.load("i1", again), "python")
    w.avoid(w.equal("ptr", results, "null"), "failed")
    slicer = w.get("ptr", library, "TensorLibrary.set_slice")
    w.call("i32", slicer, f"ptr %list, i64 0, i64 {count}, ptr null")
    w.give("ptr", results)
    w.label("python")
    # NOTE: these calls may run Python code (of modes and subclasses), which Ctrl-C may interrupt.
    raised = w.call("ptr", w.get("ptr", library, "TensorLibrary.raised"), "")
    w.need(w.equal("ptr", raised, "null"), "failed")
    none = w.get("ptr", api, "Api.none")
    w.do(f"call void {w.get('ptr', api, 'Api.incref')}(ptr {none})")
    w.give("ptr", none)
    w.label("failed")
    w.give("ptr", "null")


_BOTH = "ptr %library, ptr %api"
_FUNCTIONS: dict[str, Callable[[NativeWriter], None]] = {
    **python_call.RUNNING,
    "internal i1 @same(ptr %watch)": python_watch.same,
    f"internal i1 @is({_BOTH}, ptr %function, ptr %arguments, i64 %count, ptr %wanted)": _is,
    "internal ptr @read(ptr %library, ptr %tensor, ptr %view, ptr %well)": _read,
    f"internal i1 @take({_BOTH}, ptr %given, ptr %value, ptr %to)": _take,
    f"internal i1 @take_all(ptr %call, {_BOTH}, ptr %list, ptr %addresses)": _take_all,
    f"internal ptr @make({_BOTH}, ptr %result, ptr %to)": _make,
    f"internal ptr @make_all(ptr %call, {_BOTH}, ptr %list, ptr %addresses)": _make_all,
    f"internal i1 @holds(ptr %call, {_BOTH})": _holds,
    "internal void @fill(ptr %table, ptr %slots, ptr %addresses, i64 %count)": _fill,
    f"internal ptr @run(ptr %call, {_BOTH}, ptr %list, ptr %again)": _run,
    "ptr @graphc_tensor_call(ptr %self, ptr %list)": _call,
}


def emit_tensor_call(layout: Mapping[str, int], target: Target) -> str:
    """Return the LLVM text of ``PyObject *graphc_tensor_call(PyObject *self, PyObject *list)``.

    ``layout`` gives the offset of each ``Record.field``, and the sizes in the text.
    """
    return python_call.module(_FUNCTIONS, layout, target)
