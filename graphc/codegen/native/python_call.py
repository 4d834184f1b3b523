"""LLVM text of the function through which Python calls a program: it checks arrays, makes outputs and calls the entry.

The text is written with shorthands that ``emit_call`` expands by a table of offsets: ``%x = get TYPE %p Record.field``
loads a field, ``put TYPE VALUE %p Record.field`` stores one, and ``{name}`` stands for a number of the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from graphc.codegen.machine.target import Target
from graphc.codegen.native.python_watch import WATCH

_GET = re.compile(r"^(?P<indent> *)(%[\w.]+) = get (\w+) (%[\w.]+) ([\w.]+)$", re.MULTILINE)
_PUT = re.compile(r"^(?P<indent> *)put (\w+) (\S+) (%[\w.]+) ([\w.]+)$", re.MULTILINE)
_NUMBER = re.compile(r"\{([\w.]+)\}")
_SIZE = {"ptr": 8, "i64": 8, "i32": 4}

_ACCEPT = """
; Address of the elements of %array, or null unless it is an ndarray of the declared type whose flags include %need.
define internal ptr @accept(ptr %api, ptr %spec, ptr %array, i32 %need) #0 {
  %type = get ptr %array Object.type
  %ndarray = get ptr %api Api.ndarray
  %is_array = icmp eq ptr %type, %ndarray
  br i1 %is_array, label %header, label %bad
header:
  %dtype = get ptr %array Array.dtype
  %wanted = get ptr %spec Tensor.dtype
  %dtype_fits = icmp eq ptr %dtype, %wanted
  %rank = get i32 %array Array.rank
  %ranks = get i32 %spec Tensor.rank
  %rank_fits = icmp eq i32 %rank, %ranks
  %flags = get i32 %array Array.flags
  %set = and i32 %flags, %need
  %flags_fit = icmp eq i32 %set, %need
  %two = and i1 %dtype_fits, %rank_fits
  %three = and i1 %two, %flags_fit
  br i1 %three, label %open, label %bad
open:
  %extents = get ptr %array Array.extents
  %declared = get ptr %spec Tensor.extents
  %count = zext i32 %rank to i64
  br label %loop
loop:
  %i = phi i64 [ 0, %open ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %good
body:
  %have_at = getelementptr i64, ptr %extents, i64 %i
  %have = load i64, ptr %have_at, align 8
  %want_at = getelementptr i64, ptr %declared, i64 %i
  %want = load i64, ptr %want_at, align 8
  %next = add i64 %i, 1
  %same = icmp eq i64 %have, %want
  br i1 %same, label %loop, label %bad
good:
  %data = get ptr %array Array.data
  ret ptr %data
bad:
  ret ptr null
}

; Whether the %size bytes from %start on share memory with one of %count arrays whose addresses are in the table.
define internal i1 @meets(ptr %table, ptr %start, i64 %size, ptr %specs, i64 %count) #0 {
entry:
  %stop = getelementptr i8, ptr %start, i64 %size
  %empty = icmp eq i64 %size, 0
  br i1 %empty, label %no, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %no
body:
  %offset = mul i64 %i, {Tensor.size}
  %spec = getelementptr i8, ptr %specs, i64 %offset
  %slot = get i64 %spec Tensor.slot
  %place = getelementptr ptr, ptr %table, i64 %slot
  %other = load ptr, ptr %place, align 8
  %nbytes = get i64 %spec Tensor.nbytes
  %end = getelementptr i8, ptr %other, i64 %nbytes
  %some = icmp ne i64 %nbytes, 0
  %before = icmp ult ptr %start, %end
  %after = icmp ult ptr %other, %stop
  %cross = and i1 %before, %after
  %shared = and i1 %cross, %some
  %next = add i64 %i, 1
  br i1 %shared, label %yes, label %loop
yes:
  ret i1 true
no:
  ret i1 false
}
"""

_INPUTS = """
; Whether all inputs are as declared and lie apart from what the program writes; fills the table.
define internal i1 @take_inputs(ptr %context, ptr %api, ptr %args, i64 %count) #0 {
entry:
  %specs = get ptr %context Context.inputs
  %table = get ptr %context Context.table
  %held = get ptr %context Context.bound
  %written = get i64 %context Context.written_count
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %keep ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %good
body:
  %offset = mul i64 %i, {Tensor.size}
  %spec = getelementptr i8, ptr %specs, i64 %offset
  %arg_at = getelementptr ptr, ptr %args, i64 %i
  %array = load ptr, ptr %arg_at, align 8
  %data = call ptr @accept(ptr %api, ptr %spec, ptr %array, i32 {dense})
  %fits = icmp ne ptr %data, null
  br i1 %fits, label %apart, label %bad
apart:
  %size = get i64 %spec Tensor.nbytes
  %meets = call i1 @meets(ptr %table, ptr %data, i64 %size, ptr %held, i64 %written)
  br i1 %meets, label %bad, label %keep
keep:
  %slot = get i64 %spec Tensor.slot
  %place = getelementptr ptr, ptr %table, i64 %slot
  store ptr %data, ptr %place, align 8
  %next = add i64 %i, 1
  br label %loop
good:
  ret i1 true
bad:
  ret i1 false
}

; Whether %array can take output number %i and lies apart from everything else; fills the table.
define internal i1 @take_output(ptr %context, ptr %api, ptr %array, i64 %i) #0 {
  %specs = get ptr %context Context.outputs
  %table = get ptr %context Context.table
  %offset = mul i64 %i, {Tensor.size}
  %spec = getelementptr i8, ptr %specs, i64 %offset
  %data = call ptr @accept(ptr %api, ptr %spec, ptr %array, i32 {writeable})
  %fits = icmp ne ptr %data, null
  br i1 %fits, label %apart, label %bad
apart:
  %size = get i64 %spec Tensor.nbytes
  %inputs = get ptr %context Context.inputs
  %input_count = get i64 %context Context.input_count
  %first = call i1 @meets(ptr %table, ptr %data, i64 %size, ptr %inputs, i64 %input_count)
  br i1 %first, label %bad, label %second
second:
  %bound = get ptr %context Context.bound
  %bound_count = get i64 %context Context.bound_count
  %meets_bound = call i1 @meets(ptr %table, ptr %data, i64 %size, ptr %bound, i64 %bound_count)
  br i1 %meets_bound, label %bad, label %third
third:
  %meets_output = call i1 @meets(ptr %table, ptr %data, i64 %size, ptr %specs, i64 %i)
  br i1 %meets_output, label %bad, label %good
good:
  %slot = get i64 %spec Tensor.slot
  %place = getelementptr ptr, ptr %table, i64 %slot
  store ptr %data, ptr %place, align 8
  ret i1 true
bad:
  ret i1 false
}
"""

_OUTPUTS = """
; A new array that owns %nbytes bytes, or null and an exception.
define internal ptr @block(ptr %api, i64 %nbytes) #0 {
  %size = alloca i64, align 8
  %roomy = add i64 %nbytes, 64
  store i64 %roomy, ptr %size, align 8
  %dtype = get ptr %api Api.bytes_dtype
  %incref = get ptr %api Api.incref
  call void %incref(ptr %dtype)
  %ndarray = get ptr %api Api.ndarray
  %make = get ptr %api Api.new_array
  %array = call ptr %make(ptr %ndarray, ptr %dtype, i32 1, ptr %size, ptr null, ptr null, i32 0, ptr null)
  ret ptr %array
}

; A reference to a block for an output, or null and an exception: one of its two blocks that nobody else refers to, so
; that nobody can reach its memory, else a new one in the place of the second.
define internal ptr @block_for(ptr %context, ptr %api, ptr %spec) #0 {
  %nbytes = get i64 %spec Tensor.nbytes
  %number = get i32 %spec Tensor.block
  %reused = icmp sge i32 %number, 0
  br i1 %reused, label %look, label %plain
plain:
  %temporary = call ptr @block(ptr %api, i64 %nbytes)
  ret ptr %temporary
look:
  %blocks = get ptr %context Context.blocks
  %get = get ptr %api Api.get
  %incref = get ptr %api Api.incref
  %none = get ptr %api Api.none
  %first = zext i32 %number to i64
  %second = add i64 %first, 1
  br label %loop
loop:
  %i = phi i64 [ %first, %look ], [ %next, %advance ]
  %more = icmp ule i64 %i, %second
  br i1 %more, label %body, label %fresh
body:
  %kept = call ptr %get(ptr %blocks, i64 %i)
  %vacant = icmp eq ptr %kept, %none
  br i1 %vacant, label %advance, label %count
count:
  %references = get i32 %kept Object.references
  %alone = icmp eq i32 %references, 1
  br i1 %alone, label %again, label %advance
advance:
  %next = add i64 %i, 1
  br label %loop
again:
  call void %incref(ptr %kept)
  ret ptr %kept
fresh:
  %made = call ptr @block(ptr %api, i64 %nbytes)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %done, label %keep
keep:
  %older = call ptr %get(ptr %blocks, i64 %second)
  %replace = get ptr %api Api.replace
  call void %incref(ptr %older)
  %moved = call i32 %replace(ptr %blocks, i64 %first, ptr %older)
  call void %incref(ptr %made)
  %stored = call i32 %replace(ptr %blocks, i64 %second, ptr %made)
  br label %done
done:
  ret ptr %made
}

; A new array for output number %i, or null and an exception; fills the table.
define internal ptr @make_output(ptr %context, ptr %api, i64 %i) #0 {
  %specs = get ptr %context Context.outputs
  %table = get ptr %context Context.table
  %offset = mul i64 %i, {Tensor.size}
  %spec = getelementptr i8, ptr %specs, i64 %offset
  %nbytes = get i64 %spec Tensor.nbytes
  %large = icmp uge i64 %nbytes, {align_from}
  br i1 %large, label %reserve, label %ready
reserve:
  %block = call ptr @block_for(ptr %context, ptr %api, ptr %spec)
  %no_block = icmp eq ptr %block, null
  br i1 %no_block, label %failed, label %place
place:
  %memory = get ptr %block Array.data
  %last = getelementptr i8, ptr %memory, i64 63
  %aligned = call ptr @llvm.ptrmask.p0.i64(ptr %last, i64 -64)
  br label %ready
ready:
  %base = phi ptr [ null, %0 ], [ %block, %place ]
  %start = phi ptr [ null, %0 ], [ %aligned, %place ]
  %flags = phi i32 [ 0, %0 ], [ {writeable}, %place ]
  %dtype = get ptr %spec Tensor.dtype
  %extents = get ptr %spec Tensor.extents
  %rank = get i32 %spec Tensor.rank
  %incref = get ptr %api Api.incref
  call void %incref(ptr %dtype)
  %ndarray = get ptr %api Api.ndarray
  %make = get ptr %api Api.new_array
  %array = call ptr %make(ptr %ndarray, ptr %dtype, i32 %rank, ptr %extents, ptr null, ptr %start, i32 %flags, ptr null)
  %no_array = icmp eq ptr %array, null
  br i1 %no_array, label %release, label %own
own:
  %owned = icmp eq ptr %base, null
  br i1 %owned, label %done, label %attach
attach:
  %set_base = get ptr %api Api.set_base
  %status = call i32 %set_base(ptr %array, ptr %base)
  br label %done
done:
  %data = get ptr %array Array.data
  %slot = get i64 %spec Tensor.slot
  %slot_at = getelementptr ptr, ptr %table, i64 %slot
  store ptr %data, ptr %slot_at, align 8
  ret ptr %array
release:
  %decref = get ptr %api Api.decref
  call void %decref(ptr %base)
  br label %failed
failed:
  ret ptr null
}
"""

_EXECUTE = """
; Whether the context and the shared arena, where the call needs it, are free.
define internal i1 @free(ptr %context, ptr %api) #0 {
  %gate = get ptr %context Context.gate
  %busy = get i64 %gate Gate.busy
  %waiting = get i64 %gate Gate.waiting
  %either = or i64 %busy, %waiting
  %open = icmp eq i64 %either, 0
  br i1 %open, label %memory, label %no
memory:
  %need = get i64 %context Context.arena
  %own = icmp eq i64 %need, 0
  br i1 %own, label %yes, label %shared
shared:
  %arena = get ptr %api Api.shared
  %taken = get i64 %arena Shared.busy
  %size = get i64 %arena Shared.size
  %idle = icmp eq i64 %taken, 0
  %enough = icmp uge i64 %size, %need
  %usable = and i1 %idle, %enough
  br i1 %usable, label %yes, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; Runs the program on the table; long ones without the interpreter lock. No Python code runs in this thread meanwhile.
define internal void @execute(ptr %context, ptr %api) #0 {
  %entry = get ptr %context Context.entry
  %table = get ptr %context Context.table
  %need = get i64 %context Context.arena
  %arena = get ptr %api Api.shared
  %shares = icmp ne i64 %need, 0
  br i1 %shares, label %lend, label %choose
lend:
  %address = get ptr %arena Shared.address
  %slot = get i64 %context Context.arena_slot
  %place = getelementptr ptr, ptr %table, i64 %slot
  store ptr %address, ptr %place, align 8
  br label %choose
choose:
  %releases = get i64 %context Context.releases
  %short = icmp eq i64 %releases, 0
  br i1 %short, label %at_once, label %unlocked
at_once:
  call void %entry(ptr %table)
  ret void
unlocked:
  %gate = get ptr %context Context.gate
  %release = get ptr %api Api.release
  %acquire = get ptr %api Api.acquire
  %lends = zext i1 %shares to i64
  %before = get i64 %arena Shared.busy
  %during = or i64 %before, %lends
  put i64 1 %gate Gate.busy
  put i64 %during %arena Shared.busy
  %thread = call ptr %release()
  call void %entry(ptr %table)
  call void %acquire(ptr %thread)
  put i64 0 %gate Gate.busy
  br i1 %shares, label %give_back, label %over
give_back:
  put i64 0 %arena Shared.busy
  br label %over
over:
  ret void
}

; Whether a check has stopped the call just made. The fallback makes it once more and says which one.
define internal i1 @stopped(ptr %context) #0 {
  %status = get ptr %context Context.status
  %value = load i8, ptr %status, align 1
  %set = icmp ne i8 %value, 0
  br i1 %set, label %reset, label %out
reset:
  store i8 0, ptr %status, align 1
  br label %out
out:
  ret i1 %set
}
"""

_ONE = """
; The call of a program with one output that stands by itself. Null with %again set asks for the fallback.
define internal ptr @call_one(ptr %context, ptr %api, ptr %args, i64 %count, ptr %out, ptr %again) #0 {
  %free = call i1 @free(ptr %context, ptr %api)
  br i1 %free, label %inputs, label %python
inputs:
  %fit = call i1 @take_inputs(ptr %context, ptr %api, ptr %args, i64 %count)
  br i1 %fit, label %output, label %python
output:
  %none = get ptr %api Api.none
  %fresh = icmp eq ptr %out, %none
  br i1 %fresh, label %make, label %take
make:
  %made = call ptr @make_output(ptr %context, ptr %api, i64 0)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %stop, label %run
take:
  %takes = call i1 @take_output(ptr %context, ptr %api, ptr %out, i64 0)
  br i1 %takes, label %own, label %python
own:
  %incref = get ptr %api Api.incref
  call void %incref(ptr %out)
  br label %run
run:
  %result = phi ptr [ %made, %make ], [ %out, %own ]
  call void @execute(ptr %context, ptr %api)
  %stopped = call i1 @stopped(ptr %context)
  br i1 %stopped, label %drop, label %done
done:
  ret ptr %result
drop:
  %decref = get ptr %api Api.decref
  call void %decref(ptr %result)
  br label %python
python:
  store i1 true, ptr %again, align 1
  ret ptr null
stop:
  ret ptr null
}
"""

_MANY = """
; The list or tuple for the outputs, or null: a new one, or a copy of %out, which is the same object when it is a tuple.
; NOTE: it is made before anything is looked at: making it may start the garbage collector, and so any Python code.
define internal ptr @container(ptr %context, ptr %api, ptr %out, ptr %again) #0 {
  %count = get i64 %context Context.output_count
  %none = get ptr %api Api.none
  %fresh = icmp eq ptr %out, %none
  br i1 %fresh, label %make, label %check
make:
  %new = get ptr %context Context.new
  %made = call ptr %new(i64 %count)
  ret ptr %made
check:
  %type = get ptr %out Object.type
  %kind = get ptr %context Context.kind
  %right = icmp eq ptr %type, %kind
  br i1 %right, label %copy, label %python
copy:
  %size = get i64 %out Sized.size
  %enough = icmp eq i64 %size, %count
  br i1 %enough, label %slice, label %python
slice:
  %slicer = get ptr %context Context.slice
  %copied = call ptr %slicer(ptr %out, i64 0, i64 %count)
  ret ptr %copied
python:
  store i1 true, ptr %again, align 1
  ret ptr null
}

; The call of a program whose outputs stand in a list or tuple.
define internal ptr @call_many(ptr %context, ptr %api, ptr %args, i64 %count, ptr %out, ptr %again) #0 {
  %result = call ptr @container(ptr %context, ptr %api, ptr %out, ptr %again)
  %nothing = icmp eq ptr %result, null
  br i1 %nothing, label %stop, label %look
look:
  %free = call i1 @free(ptr %context, ptr %api)
  br i1 %free, label %inputs, label %python
inputs:
  %fit = call i1 @take_inputs(ptr %context, ptr %api, ptr %args, i64 %count)
  br i1 %fit, label %outputs, label %python
outputs:
  %none = get ptr %api Api.none
  %fresh = icmp eq ptr %out, %none
  %output_count = get i64 %context Context.output_count
  %get = get ptr %context Context.get
  %set = get ptr %context Context.set
  br label %loop
loop:
  %i = phi i64 [ 0, %outputs ], [ %next, %advance ]
  %more = icmp ult i64 %i, %output_count
  br i1 %more, label %body, label %run
body:
  br i1 %fresh, label %make, label %take
make:
  %made = call ptr @make_output(ptr %context, ptr %api, i64 %i)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %drop, label %store
store:
  %status = call i32 %set(ptr %result, i64 %i, ptr %made)
  br label %advance
take:
  %array = call ptr %get(ptr %result, i64 %i)
  %takes = call i1 @take_output(ptr %context, ptr %api, ptr %array, i64 %i)
  br i1 %takes, label %advance, label %python
advance:
  %next = add i64 %i, 1
  br label %loop
run:
  call void @execute(ptr %context, ptr %api)
  %stopped = call i1 @stopped(ptr %context)
  br i1 %stopped, label %python, label %done
done:
  ret ptr %result
python:
  store i1 true, ptr %again, align 1
  br label %drop
drop:
  %decref = get ptr %api Api.decref
  call void %decref(ptr %result)
  ret ptr null
stop:
  ret ptr null
}
"""

_CALL = """
; The value of the keyword out, None when there are no keywords, or null when there are others.
define internal ptr @given_out(ptr %api, ptr %args, i64 %count, ptr %names) #0 {
  %none = get ptr %api Api.none
  %plain = icmp eq ptr %names, null
  br i1 %plain, label %absent, label %named
absent:
  ret ptr %none
named:
  %size = get i64 %names Sized.size
  switch i64 %size, label %other [ i64 0, label %absent
                                   i64 1, label %one ]
one:
  %name = get ptr %names Tuple.items
  %wanted = get ptr %api Api.out
  %right = icmp eq ptr %name, %wanted
  br i1 %right, label %take, label %other
take:
  %place = getelementptr ptr, ptr %args, i64 %count
  %out = load ptr, ptr %place, align 8
  ret ptr %out
other:
  ret ptr null
}

define ptr @graphc_call(ptr %self, ptr %args, i64 %count, ptr %names) #0 {
  %again = alloca i1, align 1
  store i1 false, ptr %again, align 1
  %context = get ptr %self Owner.data
  %api = get ptr %context Context.api
  %expected = get i64 %context Context.input_count
  %counted = icmp eq i64 %count, %expected
  br i1 %counted, label %outside, label %python
outside:
  %watch = get ptr %context Context.watch
  %same = call i1 @same(ptr %watch)
  br i1 %same, label %keywords, label %python
keywords:
  %out = call ptr @given_out(ptr %api, ptr %args, i64 %count, ptr %names)
  %known = icmp ne ptr %out, null
  br i1 %known, label %choose, label %python
choose:
  %new = get ptr %context Context.new
  %single = icmp eq ptr %new, null
  br i1 %single, label %one, label %many
one:
  %first = call ptr @call_one(ptr %context, ptr %api, ptr %args, i64 %count, ptr %out, ptr %again)
  br label %ask
many:
  %all = call ptr @call_many(ptr %context, ptr %api, ptr %args, i64 %count, ptr %out, ptr %again)
  br label %ask
ask:
  %result = phi ptr [ %first, %one ], [ %all, %many ]
  %retry = load i1, ptr %again, align 1
  br i1 %retry, label %python, label %done
done:
  ret ptr %result
python:
  %fallback = get ptr %context Context.fallback
  %call = get ptr %api Api.call
  %answer = call ptr %call(ptr %fallback, ptr %args, i64 %count, ptr %names)
  ret ptr %answer
}
"""

_NUMBERS = {"dense": 0x101, "writeable": 0x501}
"""Flags of an ndarray: C-contiguous (1) and aligned (0x100), and writeable (0x400)."""


def emit_call(layout: Mapping[str, int], target: Target) -> str:
    """LLVM text of ``PyObject *graphc_call(PyObject *self, PyObject **args, Py_ssize_t count, PyObject *names)``, and
    of ``graphc_same`` like it, which tells whether the words of a Watch are what they were.

    ``layout`` gives the offset of each ``Record.field`` and the sizes that the text names. The function never fails by
    itself: arguments that are not exactly as declared go to the context's fallback.
    """
    numbers = {**layout, **_NUMBERS}
    places = iter(range(10_000))

    def expand(match: re.Match[str], base: str, field: str, access: str, kind: str) -> str:
        at = f"%at{next(places)}"
        address = f"{match['indent']}{at} = getelementptr i8, ptr {base}, i64 {numbers[field]}"
        return f"{address}\n{match['indent']}{access}, ptr {at}, align {_SIZE[kind]}"

    def get(match: re.Match[str]) -> str:
        name, kind, base, field = match.groups()[1:]
        return expand(match, base, field, f"{name} = load {kind}", kind)

    def put(match: re.Match[str]) -> str:
        kind, value, base, field = match.groups()[1:]
        return expand(match, base, field, f"store {kind} {value}", kind)

    text = "".join((_ACCEPT, _INPUTS, _OUTPUTS, _EXECUTE, _ONE, _MANY, WATCH, _CALL))
    text = _PUT.sub(put, _GET.sub(get, text))
    text = _NUMBER.sub(lambda match: str(numbers[match[1]]), text)
    head = f'target triple = "{target.triple}"\ndeclare ptr @llvm.ptrmask.p0.i64(ptr, i64)\n'
    return f'{head}{text}\nattributes #0 = {{ nounwind "frame-pointer"="none" }}\n'
