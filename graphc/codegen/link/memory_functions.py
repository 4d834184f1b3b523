"""Functions of C that copy and fill memory, as LLVM text: libraries with them need no libc."""

from __future__ import annotations

_COPY = """\
define hidden ptr @memcpy(ptr noalias returned %to, ptr noalias %from, i64 %n) #0 {
  %whole = and i64 %n, -32
  br label %chunks
chunks:
  %c = phi i64 [ 0, %0 ], [ %c_next, %copy_chunk ]
  %all_chunks = icmp eq i64 %c, %whole
  br i1 %all_chunks, label %bytes, label %copy_chunk
copy_chunk:
  %chunk_source = getelementptr i8, ptr %from, i64 %c
  %chunk = load <32 x i8>, ptr %chunk_source, align 1
  %chunk_target = getelementptr i8, ptr %to, i64 %c
  store <32 x i8> %chunk, ptr %chunk_target, align 1
  %c_next = add nuw i64 %c, 32
  br label %chunks
bytes:
  %i = phi i64 [ %whole, %chunks ], [ %i_next, %copy_byte ]
  %all = icmp eq i64 %i, %n
  br i1 %all, label %end, label %copy_byte
copy_byte:
  %source = getelementptr i8, ptr %from, i64 %i
  %byte = load i8, ptr %source
  %target = getelementptr i8, ptr %to, i64 %i
  store i8 %byte, ptr %target
  %i_next = add nuw i64 %i, 1
  br label %bytes
end:
  ret ptr %to
}
"""
_FILL = """\
define hidden ptr @memset(ptr returned %to, i32 %value, i64 %n) #0 {
  %byte = trunc i32 %value to i8
  %one = insertelement <32 x i8> poison, i8 %byte, i64 0
  %chunk = shufflevector <32 x i8> %one, <32 x i8> poison, <32 x i32> zeroinitializer
  %whole = and i64 %n, -32
  br label %chunks
chunks:
  %c = phi i64 [ 0, %0 ], [ %c_next, %fill_chunk ]
  %all_chunks = icmp eq i64 %c, %whole
  br i1 %all_chunks, label %bytes, label %fill_chunk
fill_chunk:
  %chunk_target = getelementptr i8, ptr %to, i64 %c
  store <32 x i8> %chunk, ptr %chunk_target, align 1
  %c_next = add nuw i64 %c, 32
  br label %chunks
bytes:
  %i = phi i64 [ %whole, %chunks ], [ %i_next, %fill_byte ]
  %all = icmp eq i64 %i, %n
  br i1 %all, label %end, label %fill_byte
fill_byte:
  %target = getelementptr i8, ptr %to, i64 %i
  store i8 %byte, ptr %target
  %i_next = add nuw i64 %i, 1
  br label %bytes
end:
  ret ptr %to
}
"""
_MOVE = """\
define hidden ptr @memmove(ptr returned %to, ptr %from, i64 %n) #0 {
  %a = ptrtoint ptr %to to i64
  %b = ptrtoint ptr %from to i64
  %distance = sub i64 %a, %b
  ; Below n if the target begins inside the source: then the last byte goes first.
  %backward = icmp ult i64 %distance, %n
  br i1 %backward, label %down, label %up
down:
  %left = phi i64 [ %n, %0 ], [ %last, %move_down ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %end, label %move_down
move_down:
  %last = sub nuw i64 %left, 1
  %from_last = getelementptr i8, ptr %from, i64 %last
  %last_byte = load i8, ptr %from_last
  %to_last = getelementptr i8, ptr %to, i64 %last
  store i8 %last_byte, ptr %to_last
  br label %down
up:
  %i = phi i64 [ 0, %0 ], [ %next, %move_up ]
  %all = icmp eq i64 %i, %n
  br i1 %all, label %end, label %move_up
move_up:
  %source = getelementptr i8, ptr %from, i64 %i
  %byte = load i8, ptr %source
  %target = getelementptr i8, ptr %to, i64 %i
  store i8 %byte, ptr %target
  %next = add nuw i64 %i, 1
  br label %up
end:
  ret ptr %to
}
"""
_CLEAR = """\
declare ptr @memset(ptr, i32, i64)
define hidden void @{name}(ptr %to, i64 %n) #0 {{
  %done = call ptr @memset(ptr %to, i32 0, i64 %n)
  ret void
}}
"""
_ATTRIBUTES = 'attributes #0 = { nounwind "no-builtins" }\n'
MEMORY_FUNCTIONS = {
    name: text + _ATTRIBUTES for name, text in {"memcpy": _COPY, "memset": _FILL, "memmove": _MOVE}.items()
}
"""LLVM text of each function, without a triple. Sizes are i64."""
MACOS_FUNCTIONS = {name: _CLEAR.format(name=name) + _ATTRIBUTES for name in ("bzero", "__bzero")}
"""LLVM text of the function that clears memory, by the names that code for macOS calls on arm64 and x86-64."""
