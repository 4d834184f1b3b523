"""LLVM text of the functions of a WASI command: files, messages, and .npy files.

Their names have no underscore, so that no function of a library has one of them.
"""

from __future__ import annotations

from string import Template

from graphc.base.dtypes import BY_NAME
from graphc.c_library.plan import TYPE_NUMBERS
from graphc.codegen.link.wasm_format import PAGE

_RUNTIME = Template("""\
target triple = "$triple"
$texts
@vector = internal global [2 x i32] zeroinitializer
@count = internal global i32 0
@cursor = internal global ptr null, align 4
@head = internal global [16 x i8] zeroinitializer
declare i32 @fd.read(i32, ptr, i32, ptr) #0
declare i32 @fd.write(i32, ptr, i32, ptr) #1
declare void @proc.exit(i32) #2
declare i32 @args.sizes.get(ptr, ptr) #3
declare i32 @args.get(ptr, ptr) #4
declare i32 @llvm.wasm.memory.grow.i32(i32, i32)
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
attributes #0 = { "wasm-import-module"="wasi_snapshot_preview1" "wasm-import-name"="fd_read" }
attributes #1 = { "wasm-import-module"="wasi_snapshot_preview1" "wasm-import-name"="fd_write" }
attributes #2 = { noreturn "wasm-import-module"="wasi_snapshot_preview1" "wasm-import-name"="proc_exit" }
attributes #3 = { "wasm-import-module"="wasi_snapshot_preview1" "wasm-import-name"="args_sizes_get" }
attributes #4 = { "wasm-import-module"="wasi_snapshot_preview1" "wasm-import-name"="args_get" }

; Read from the file 0, or write to another one, up to the end of the file; return the number of bytes.
define internal i64 @transfer(i32 %file, ptr %data, i64 %bytes) {
entry:
  %length = getelementptr i8, ptr @vector, i32 4
  %is_input = icmp eq i32 %file, 0
  br label %loop
loop:
  %done = phi i64 [ 0, %entry ], [ %next, %more ]
  %left = sub i64 %bytes, %done
  %ready = icmp eq i64 %left, 0
  br i1 %ready, label %end, label %move
move:
  %chunk = call i64 @llvm.umin.i64(i64 %left, i64 1073741824)
  %size = trunc i64 %chunk to i32
  %address = getelementptr i8, ptr %data, i64 %done
  store ptr %address, ptr @vector, align 4
  store i32 %size, ptr %length, align 4
  br i1 %is_input, label %read, label %write
read:
  %read_code = call i32 @fd.read(i32 %file, ptr @vector, i32 1, ptr @count)
  br label %moved
write:
  %write_code = call i32 @fd.write(i32 %file, ptr @vector, i32 1, ptr @count)
  br label %moved
moved:
  %code = phi i32 [ %read_code, %read ], [ %write_code, %write ]
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %bad, label %good
bad:
  %is_message = icmp eq i32 %file, 2
  br i1 %is_message, label %leave, label %tell
tell:
  call void @stop(ptr @t.failed)
  unreachable
leave:
  call void @proc.exit(i32 1)
  unreachable
good:
  %n = load i32, ptr @count, align 4
  %wide = zext i32 %n to i64
  %is_end = icmp eq i32 %n, 0
  br i1 %is_end, label %end, label %more
more:
  %next = add i64 %done, %wide
  br label %loop
end:
  ret i64 %done
}

; Return the number of bytes of a text before its zero.
define internal i64 @length(ptr %text) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %address = getelementptr i8, ptr %text, i64 %i
  %letter = load i8, ptr %address
  %is_end = icmp eq i8 %letter, 0
  %next = add i64 %i, 1
  br i1 %is_end, label %end, label %loop
end:
  ret i64 %i
}

; Write a text to stderr.
define internal void @say(ptr %text) {
  %bytes = call i64 @length(ptr %text)
  call i64 @transfer(i32 2, ptr %text, i64 %bytes)
  ret void
}

; Write the last text of a message, and end the process.
define internal void @stop(ptr %text) noreturn {
  call void @say(ptr %text)
  call void @say(ptr @t.newline)
  call void @proc.exit(i32 1)
  unreachable
}

; Return new zeroed memory in whole pages.
define internal ptr @allocate(i64 %bytes) {
  %rounded = add i64 %bytes, 65535
  %pages = lshr i64 %rounded, 16
  %fits = icmp ule i64 %pages, 65535
  br i1 %fits, label %grow, label %fail
grow:
  %more = trunc i64 %pages to i32
  %old = call i32 @llvm.wasm.memory.grow.i32(i32 0, i32 %more)
  %full = icmp eq i32 %old, -1
  br i1 %full, label %fail, label %good
good:
  %address = shl i32 %old, 16
  %memory = inttoptr i32 %address to ptr
  ret ptr %memory
fail:
  call void @stop(ptr @t.memory)
  unreachable
}

; Return the address after a prefix of a text; null if the text begins otherwise.
define internal ptr @after(ptr %text, ptr %prefix) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %more ]
  %own = getelementptr i8, ptr %text, i64 %i
  %other = getelementptr i8, ptr %prefix, i64 %i
  %letter = load i8, ptr %other
  %is_end = icmp eq i8 %letter, 0
  br i1 %is_end, label %yes, label %compare
compare:
  %own_letter = load i8, ptr %own
  %equal = icmp eq i8 %own_letter, %letter
  br i1 %equal, label %more, label %no
more:
  %next = add i64 %i, 1
  br label %loop
yes:
  ret ptr %own
no:
  ret ptr null
}

; Return the address after the first place of a text in another one; null if there is none.
define internal ptr @find(ptr %text, ptr %part) {
entry:
  br label %loop
loop:
  %at = phi ptr [ %text, %entry ], [ %next, %more ]
  %behind = call ptr @after(ptr %at, ptr %part)
  %here = icmp ne ptr %behind, null
  %letter = load i8, ptr %at
  %is_end = icmp eq i8 %letter, 0
  %done = or i1 %here, %is_end
  br i1 %done, label %end, label %more
more:
  %next = getelementptr i8, ptr %at, i64 1
  br label %loop
end:
  ret ptr %behind
}

; Remove spaces and newlines from a text.
define internal void @compact(ptr %text) {
entry:
  br label %loop
loop:
  %from = phi ptr [ %text, %entry ], [ %from_next, %more ]
  %to = phi ptr [ %text, %entry ], [ %to_next, %more ]
  %letter = load i8, ptr %from
  store i8 %letter, ptr %to
  %is_end = icmp eq i8 %letter, 0
  br i1 %is_end, label %end, label %more
more:
  %from_next = getelementptr i8, ptr %from, i64 1
  %is_space = icmp ule i8 %letter, 32
  %step = select i1 %is_space, i64 0, i64 1
  %to_next = getelementptr i8, ptr %to, i64 %step
  br label %loop
end:
  ret void
}

; Return the number at the cursor, which moves behind it; -1 if there is none below 2^32.
define internal i64 @number() {
entry:
  %start = load ptr, ptr @cursor, align 4
  br label %loop
loop:
  %at = phi ptr [ %start, %entry ], [ %at_next, %more ]
  %value = phi i64 [ -1, %entry ], [ %sum, %more ]
  %letter = load i8, ptr %at
  %digit = sub i8 %letter, 48
  %is_digit = icmp ult i8 %digit, 10
  %small = icmp slt i64 %value, 4294967296
  %goes_on = and i1 %is_digit, %small
  br i1 %goes_on, label %more, label %end
more:
  %is_first = icmp slt i64 %value, 0
  %before = select i1 %is_first, i64 0, i64 %value
  %tens = mul i64 %before, 10
  %wide = zext i8 %digit to i64
  %sum = add i64 %tens, %wide
  %at_next = getelementptr i8, ptr %at, i64 1
  br label %loop
end:
  store ptr %at, ptr @cursor, align 4
  %result = select i1 %small, i64 %value, i64 -1
  ret i64 %result
}

; Move the cursor behind a text; return whether it is there.
define internal i1 @skip(ptr %text) {
  %at = load ptr, ptr @cursor, align 4
  %behind = call ptr @after(ptr %at, ptr %text)
  %is_there = icmp ne ptr %behind, null
  %next = select i1 %is_there, ptr %behind, ptr %at
  store ptr %next, ptr @cursor, align 4
  ret i1 %is_there
}

; Read bytes from stdin; fail if it ends before.
define internal void @read(ptr %tensor, ptr %data, i64 %bytes) {
  %n = call i64 @transfer(i32 0, ptr %data, i64 %bytes)
  %all = icmp eq i64 %n, %bytes
  br i1 %all, label %good, label %bad
bad:
  call void @say(ptr @t.ends)
  %name = load ptr, ptr %tensor, align 4
  call void @stop(ptr %name)
  unreachable
good:
  ret void
}

define internal ptr @of.type(ptr %tensor, ptr %table) {
  %field = getelementptr i8, ptr %tensor, i64 12
  %type = load i32, ptr %field, align 4
  %address = getelementptr [$types x ptr], ptr %table, i32 0, i32 %type
  %text = load ptr, ptr %address, align 4
  ret ptr %text
}

define internal i64 @rank(ptr %tensor) {
  %field = getelementptr i8, ptr %tensor, i64 16
  %short = load i32, ptr %field, align 4
  %rank = zext i32 %short to i64
  ret i64 %rank
}

; Return the bytes of an array, at most 2^32, which is more than memory can grow by.
define internal i64 @bytes.of(ptr %tensor, ptr %sizes) {
entry:
  %field = getelementptr i8, ptr %tensor, i64 12
  %type = load i32, ptr %field, align 4
  %address = getelementptr [$types x i64], ptr @item.bytes, i32 0, i32 %type
  %first = load i64, ptr %address
  %rank = call i64 @rank(ptr %tensor)
  br label %loop
loop:
  %axis = phi i64 [ 0, %entry ], [ %next, %more ]
  %total = phi i64 [ %first, %entry ], [ %product, %more ]
  %done = icmp eq i64 %axis, %rank
  br i1 %done, label %end, label %more
more:
  %size_address = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size_address
  %low = call i64 @llvm.umin.i64(i64 %size, i64 4294967295)
  %full = mul i64 %total, %low
  %product = call i64 @llvm.umin.i64(i64 %full, i64 4294967296)
  %next = add i64 %axis, 1
  br label %loop
end:
  ret i64 %total
}

; Read the .npy file of an input; return its data, and store its sizes.
define internal ptr @read.input(ptr %tensor, ptr %sizes) {
entry:
  call void @read(ptr %tensor, ptr @head, i64 10)
  %magic = call ptr @after(ptr @head, ptr @t.magic)
  %is_npy = icmp ne ptr %magic, null
  %major_address = getelementptr i8, ptr @head, i64 6
  %major = load i8, ptr %major_address
  %version = sub i8 %major, 1
  %is_known = icmp ult i8 %version, 3
  %is_good = and i1 %is_npy, %is_known
  br i1 %is_good, label %lengths, label %other
other:
  %other_name = load ptr, ptr %tensor, align 4
  call void @say(ptr %other_name)
  call void @stop(ptr @t.other)
  unreachable
lengths:
  %length_address = getelementptr i8, ptr @head, i64 8
  %short = load i16, ptr %length_address
  %short_wide = zext i16 %short to i64
  %is_first = icmp eq i8 %major, 1
  br i1 %is_first, label %header, label %longer
longer:
  %rest = getelementptr i8, ptr @head, i64 10
  call void @read(ptr %tensor, ptr %rest, i64 2)
  %long = load i32, ptr %length_address
  %long_wide = zext i32 %long to i64
  br label %header
header:
  %length = phi i64 [ %short_wide, %lengths ], [ %long_wide, %longer ]
  %with_end = add i64 %length, 1
  %text = call ptr @allocate(i64 %with_end)
  call void @read(ptr %tensor, ptr %text, i64 %length)
  call void @compact(ptr %text)
  %type = call ptr @find(ptr %text, ptr @t.descr)
  %has_type = icmp ne ptr %type, null
  br i1 %has_type, label %types, label %mismatch
types:
  %description = call ptr @of.type(ptr %tensor, ptr @descriptions)
  %type_end = call ptr @after(ptr %type, ptr %description)
  %right_type = icmp ne ptr %type_end, null
  %order = call ptr @find(ptr %text, ptr @t.order)
  %right_order = icmp ne ptr %order, null
  %shape = call ptr @find(ptr %text, ptr @t.shape)
  %has_shape = icmp ne ptr %shape, null
  %both = and i1 %right_type, %right_order
  %all = and i1 %both, %has_shape
  store ptr %shape, ptr @cursor, align 4
  %rank = call i64 @rank(ptr %tensor)
  %expected_field = getelementptr i8, ptr %tensor, i64 8
  %expected_sizes = load ptr, ptr %expected_field, align 4
  br i1 %all, label %axes, label %mismatch
axes:
  %axis = phi i64 [ 0, %types ], [ %axis_next, %next ]
  %shape_ends = icmp eq i64 %axis, %rank
  br i1 %shape_ends, label %closes, label %sized
sized:
  %size = call i64 @number()
  %size_address = getelementptr i64, ptr %sizes, i64 %axis
  store i64 %size, ptr %size_address
  %expected_address = getelementptr i64, ptr %expected_sizes, i64 %axis
  %expected = load i64, ptr %expected_address
  %is_open = icmp slt i64 %expected, 0
  %is_equal = icmp eq i64 %expected, %size
  %fits = or i1 %is_open, %is_equal
  %is_size = icmp sge i64 %size, 0
  %right_size = and i1 %fits, %is_size
  br i1 %right_size, label %next, label %mismatch
next:
  %comma = call i1 @skip(ptr @t.comma)
  %axis_next = add i64 %axis, 1
  br label %axes
closes:
  %closed = call i1 @skip(ptr @t.close)
  br i1 %closed, label %contents, label %mismatch
mismatch:
  %name = load ptr, ptr %tensor, align 4
  call void @say(ptr %name)
  call void @say(ptr @t.is)
  %kind = call ptr @of.type(ptr %tensor, ptr @kinds)
  call void @say(ptr %kind)
  call void @say(ptr @t.open)
  %dims_field = getelementptr i8, ptr %tensor, i64 4
  %dims = load ptr, ptr %dims_field, align 4
  call void @say(ptr %dims)
  call void @say(ptr @t.not)
  call void @stop(ptr %text)
  unreachable
contents:
  %bytes = call i64 @bytes.of(ptr %tensor, ptr %sizes)
  %data = call ptr @allocate(i64 %bytes)
  call void @read(ptr %tensor, ptr %data, i64 %bytes)
  ret ptr %data
}

; Fail unless stdin ends here.
define internal void @finish() {
  %n = call i64 @transfer(i32 0, ptr @head, i64 1)
  %is_end = icmp eq i64 %n, 0
  br i1 %is_end, label %good, label %bad
bad:
  call void @stop(ptr @t.more)
  unreachable
good:
  ret void
}

; Copy a text to the cursor, which moves behind it.
define internal void @append(ptr %text) {
  %start = load ptr, ptr @cursor, align 4
  %bytes = call i64 @length(ptr %text)
  call void @llvm.memcpy.p0.p0.i64(ptr %start, ptr %text, i64 %bytes, i1 false)
  %end = getelementptr i8, ptr %start, i64 %bytes
  store ptr %end, ptr @cursor, align 4
  ret void
}

define internal void @append.number(i64 %number) {
  %rest = udiv i64 %number, 10
  %digit = urem i64 %number, 10
  %is_last = icmp eq i64 %rest, 0
  br i1 %is_last, label %last, label %before
before:
  call void @append.number(i64 %rest)
  br label %last
last:
  %code = add i64 %digit, 48
  %letter = trunc i64 %code to i8
  %at = load ptr, ptr @cursor, align 4
  store i8 %letter, ptr %at
  %next = getelementptr i8, ptr %at, i64 1
  store ptr %next, ptr @cursor, align 4
  ret void
}

; Write the .npy file of an output. Spaces fill its header to a multiple of 64 bytes, as numpy's.
define internal void @write.output(ptr %tensor, ptr %sizes, ptr %data) {
entry:
  %buffer = call ptr @allocate(i64 $page)
  call void @llvm.memset.p0.i64(ptr %buffer, i8 32, i64 $page, i1 false)
  store ptr %buffer, ptr @cursor, align 4
  call void @append(ptr @t.magic)
  %version = getelementptr i8, ptr %buffer, i64 6
  store i16 1, ptr %version
  %start = getelementptr i8, ptr %buffer, i64 10
  store ptr %start, ptr @cursor, align 4
  call void @append(ptr @t.descr_out)
  %description = call ptr @of.type(ptr %tensor, ptr @descriptions)
  call void @append(ptr %description)
  call void @append(ptr @t.shape_out)
  %rank = call i64 @rank(ptr %tensor)
  br label %axes
axes:
  %axis = phi i64 [ 0, %entry ], [ %axis_next, %size ]
  %done = icmp eq i64 %axis, %rank
  br i1 %done, label %close, label %size
size:
  %size_address = getelementptr i64, ptr %sizes, i64 %axis
  %number = load i64, ptr %size_address
  call void @append.number(i64 %number)
  call void @append(ptr @t.comma_out)
  %axis_next = add i64 %axis, 1
  br label %axes
close:
  call void @append(ptr @t.close_out)
  %at = load ptr, ptr @cursor, align 4
  %top = ptrtoint ptr %buffer to i64
  %address = ptrtoint ptr %at to i64
  %used = sub i64 %address, %top
  %last = or i64 %used, 63
  %last_address = getelementptr i8, ptr %buffer, i64 %last
  store i8 10, ptr %last_address
  %length = sub i64 %last, 9
  %short = trunc i64 %length to i16
  %length_address = getelementptr i8, ptr %buffer, i64 8
  store i16 %short, ptr %length_address
  %header = add i64 %last, 1
  %bytes = call i64 @bytes.of(ptr %tensor, ptr %sizes)
  call i64 @transfer(i32 1, ptr %buffer, i64 %header)
  call i64 @transfer(i32 1, ptr %data, i64 %bytes)
  ret void
}
""")
_TEXTS = {
    **{"newline": "\n", "magic": "\x93NUMPY", "comma": ",", "close": ")"},
    **{"descr": "'descr':'", "order": "'fortran_order':False", "shape": "'shape':("},
    **{"descr_out": "{'descr': '", "shape_out": ", 'fortran_order': False, 'shape': (", "comma_out": ", "},
    **{"close_out": "), }", "memory": "there is not enough memory", "ends": "stdin ends within "},
    **{"other": " is not a .npy file", "is": " is ", "open": "[", "not": "], not "},
    "more": "stdin holds more than the inputs",
    "failed": "stdin or stdout fails",
}


def runtime(triple: str) -> str:
    """Return the LLVM text of all functions and constants of the command that are the same for all libraries."""
    types = list(TYPE_NUMBERS)
    texts = {f"t.{name}": text for name, text in _TEXTS.items()}
    texts |= {f"kind.{name}": name for name in types} | {f"description.{name}": _description(name) for name in types}
    lines = [f"@{name} = internal constant {text_constant(text)}" for name, text in texts.items()]
    count = len(types) + 1
    for table, prefix in (("kinds", "kind"), ("descriptions", "description")):
        pointers = ", ".join(["ptr null", *(f"ptr @{prefix}.{name}" for name in types)])
        lines.append(f"@{table} = internal constant [{count} x ptr] [{pointers}]")
    sizes = ", ".join(["i64 0", *(f"i64 {BY_NAME[name].itemsize}" for name in types)])
    lines.append(f"@item.bytes = internal constant [{count} x i64] [{sizes}]")
    return _RUNTIME.substitute(triple=triple, texts="\n".join(lines), types=count, page=PAGE)


def _description(name: str) -> str:
    """Return numpy's name of an element type, and the quote after it. Files hold the bits of bf16 as u16."""
    return f"{BY_NAME['u16' if name == 'bf16' else name].numpy.str}'"


def text_constant(text: str) -> str:
    """Return type and value of a constant text, which ends with a zero."""
    data = (text.encode("latin-1") if text.startswith("\x93") else text.encode()) + b"\0"
    escaped = "".join(f"\\{byte:02X}" for byte in data)
    return f'[{len(data)} x i8] c"{escaped}"'
