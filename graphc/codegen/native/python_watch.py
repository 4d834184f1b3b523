"""LLVM text that compares watched words of memory, in the shorthands of ``python_call``."""

WATCH = """
; Whether every watched word is what it was. They are read in order: one may tell that those behind it are gone.
define internal i1 @same(ptr %watch) #0 {
entry:
  %words = get ptr %watch Watch.words
  %count = get i64 %watch Watch.count
  %stop = getelementptr { i64, i64 }, ptr %words, i64 %count
  br label %loop
loop:
  %pair = phi ptr [ %words, %entry ], [ %next, %body ]
  %more = icmp ult ptr %pair, %stop
  br i1 %more, label %body, label %yes
body:
  %address = load ptr, ptr %pair, align 8
  %now = load i64, ptr %address, align 8
  %then_at = getelementptr i8, ptr %pair, i64 8
  %then = load i64, ptr %then_at, align 8
  %next = getelementptr i8, ptr %pair, i64 16
  %equal = icmp eq i64 %now, %then
  br i1 %equal, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

define ptr @graphc_same(ptr %self, ptr %args, i64 %count, ptr %names) #0 {
  %watch = get ptr %self Owner.data
  %same = call i1 @same(ptr %watch)
  %yes = get ptr %watch Watch.yes
  %no = get ptr %watch Watch.no
  %answer = select i1 %same, ptr %yes, ptr %no
  %incref = get ptr %watch Watch.incref
  call void %incref(ptr %answer)
  ret ptr %answer
}
"""
