"""Pool of worker threads as LLVM text: workers of a process, woken once per call of a parallel program.

A caller that finds the pool busy (in another thread, or in a call around its own) runs its program alone, so nothing
ever waits for the pool. Waiting means spinning for a time, then sleeping in the kernel (a futex on Linux). A waiting
thread also offers its core to other threads. Where they take it for so long that one thread would have ended the call
earlier, calls run alone for some milliseconds: the machine has fewer free cores than the pool has threads.
"""

from __future__ import annotations

from graphc.base.errors import CompileError
from graphc.codegen.llvm.function import FunctionWriter
from graphc.codegen.llvm.module import Item, text_of
from graphc.codegen.machine.target import Target

RUN = "graphc_pool_run"
"""``i64 graphc_pool_run(ptr work, ptr table, i64 chunks, i64 spin)`` runs ``work(table, chunk, chunks, barrier)`` once
per chunk, each in a separate thread (chunk 0 in the caller's), and returns the number of chunks. Waiting threads spin
for ``spin`` nanoseconds. ``barrier`` is ``void barrier()``, or null for a single chunk."""
RESET = "graphc_pool_reset"
"""``void graphc_pool_reset()`` forgets the workers; for the child after fork(), in which they do not exist."""
SIZE = "graphc_pool_size"
"""``i64 graphc_pool_size()``: the number of started workers."""
_UNBLOCKED = (4, 7, 8, 11)
"""Signals that a worker may raise itself (SIGILL, SIGBUS, SIGFPE, SIGSEGV); the caller's threads handle others."""

_TEXT = """\
target triple = "{triple}"
declare i64 @syscall(i64, ...)
declare i32 @clock_gettime(i32, ptr)
declare i32 @sched_yield()
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
{declare_pause}

; Whose turn it is: 1 while a caller has the pool.
@owner = internal global i32 0, align 128
; Low half: number of the present job; high half: its chunks. The low half is what idle workers wait for.
@job = internal global i64 0, align 128
@job_sleepers = internal global i32 0, align 128
; Workers that have not finished the present job, and the number of the last job that all have finished.
@remaining = internal global i32 0, align 128
@done = internal global i32 0, align 128
@done_sleepers = internal global i32 0, align 128
; Barrier: threads that have arrived, and how often all have.
@arrived = internal global i32 0, align 128
@phase = internal global i32 0, align 128
@phase_sleepers = internal global i32 0, align 128
; The present job, written by the owner only.
@work = internal global ptr null, align 128
@table = internal global ptr null
@chunks = internal global i64 0
@spin = internal global i64 0
@bytes = internal global i64 0
@started = internal global i64 0
; Nanoseconds that others had the cores of threads that waited in the present job.
@lost = internal global i64 0, align 128
; Until when calls run alone, or 0, and for how long after the next job that loses its cores. Of the owner only.
@alone_until = internal global i64 0
@penalty = internal global i64 {least_alone}
; Scratch memory of all chunks but chunk 0, and its size.
@scratch = internal global ptr null
@capacity = internal global i64 0
@signals = internal constant [16 x i64] [i64 {signals}{more_signals}]

define internal i64 @now() nounwind {{
  %t = alloca {{ i64, i64 }}, align 8
  %r = call i32 @clock_gettime(i32 1, ptr %t)
  %s = load i64, ptr %t
  %np = getelementptr i8, ptr %t, i64 8
  %n = load i64, ptr %np
  %m = mul i64 %s, 1000000000
  %all = add i64 %m, %n
  ret i64 %all
}}

; Returns once the word is no longer %old.
define internal void @await(ptr %word, i32 %old, ptr %sleepers) nounwind {{
entry:
  %limit = load atomic i64, ptr @spin monotonic, align 8
  br label %look
look:
  %i = phi i32 [ 0, %entry ], [ %j, %pause ], [ 0, %clock ], [ 0, %note ]
  %since = phi i64 [ 0, %entry ], [ %since, %pause ], [ %begin, %clock ], [ %begin, %note ]
  %v = load atomic i32, ptr %word acquire, align 4
  %new = icmp ne i32 %v, %old
  br i1 %new, label %out, label %pause
pause:
  {pause}
  %j = add i32 %i, 1
  %due = icmp ugt i32 %j, 63
  br i1 %due, label %time, label %look
time:
  %at = call i64 @now()
  %unset = icmp eq i64 %since, 0
  %begin = select i1 %unset, i64 %at, i64 %since
  %spent = sub i64 %at, %begin
  %tired = icmp sge i64 %spent, %limit
  br i1 %tired, label %sleep, label %clock
clock:
  ; Where there are more threads than cores, the one that is waited for needs this core.
  %y = call i32 @sched_yield()
  %back = call i64 @now()
  %away = sub i64 %back, %at
  %long = icmp sgt i64 %away, {lost}
  %idle = icmp eq ptr %word, @job
  %short = xor i1 %long, true
  %free = or i1 %idle, %short
  br i1 %free, label %look, label %note
note:
  %before = atomicrmw add ptr @lost, i64 %away monotonic
  br label %look
sleep:
  %s = atomicrmw add ptr %sleepers, i32 1 seq_cst
  br label %check
check:
  %w = load atomic i32, ptr %word seq_cst, align 4
  %changed = icmp ne i32 %w, %old
  br i1 %changed, label %woken, label %wait
wait:
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i64 128, i32 %old, ptr null, ptr null, i32 0)
  br label %check
woken:
  %u = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  br label %out
out:
  ret void
}}

; Wakes those that sleep until the word changes; call it after the change.
define internal void @wake(ptr %word, ptr %sleepers) nounwind {{
  %n = load atomic i32, ptr %sleepers seq_cst, align 4
  %some = icmp ne i32 %n, 0
  br i1 %some, label %call, label %out
call:
  %r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %word, i64 129, i32 2147483647, ptr null, ptr null, i32 0)
  br label %out
out:
  ret void
}}

define internal void @barrier() nounwind {{
  %phase = load atomic i32, ptr @phase monotonic, align 4
  %all = load i64, ptr @chunks
  %count = trunc i64 %all to i32
  %before = atomicrmw add ptr @arrived, i32 1 acq_rel
  %here = add i32 %before, 1
  %last = icmp eq i32 %here, %count
  br i1 %last, label %open, label %wait
open:
  store atomic i32 0, ptr @arrived monotonic, align 4
  %next = add i32 %phase, 1
  store atomic i32 %next, ptr @phase seq_cst, align 4
  call void @wake(ptr @phase, ptr @phase_sleepers)
  ret void
wait:
  call void @await(ptr @phase, i32 %phase, ptr @phase_sleepers)
  ret void
}}

; %arg: chunk of this worker in the low half, the last job before it was started in the high half.
define internal ptr @worker(ptr %arg) nounwind {{
entry:
  %a = ptrtoint ptr %arg to i64
  %chunk = and i64 %a, 4294967295
  %h = lshr i64 %a, 32
  %first = trunc i64 %h to i32
  br label %idle
idle:
  %seen = phi i32 [ %first, %entry ], [ %number, %look ], [ %number, %mine ], [ %number, %last ]
  call void @await(ptr @job, i32 %seen, ptr @job_sleepers)
  br label %look
look:
  %job = load atomic i64, ptr @job acquire, align 8
  %number = trunc i64 %job to i32
  %chunks = lshr i64 %job, 32
  %in = icmp ult i64 %chunk, %chunks
  br i1 %in, label %mine, label %idle
mine:
  %work = load ptr, ptr @work
  %table = load ptr, ptr @table
  %block = load ptr, ptr @scratch
  %bytes = load i64, ptr @bytes
  %index = sub i64 %chunk, 1
  %offset = mul i64 %index, %bytes
  %own = getelementptr i8, ptr %block, i64 %offset
  call void %work(ptr %table, i64 %chunk, i64 %chunks, ptr @barrier, ptr %own)
  %left = atomicrmw sub ptr @remaining, i32 1 acq_rel
  %end = icmp eq i32 %left, 1
  br i1 %end, label %last, label %idle
last:
  store atomic i32 %number, ptr @done seq_cst, align 4
  call void @wake(ptr @done, ptr @done_sleepers)
  br label %idle
}}

; Starts workers until there are %chunks threads with the caller's; returns how many there are.
define internal i64 @recruit(i64 %chunks) nounwind {{
entry:
  %thread = alloca i64, align 8
  %mask = alloca [16 x i64], align 8
  %have = load i64, ptr @started
  %need = sub i64 %chunks, 1
  %enough = icmp uge i64 %have, %need
  br i1 %enough, label %out, label %block
block:
  %b = call i32 @pthread_sigmask(i32 2, ptr @signals, ptr %mask)
  %job = load atomic i64, ptr @job monotonic, align 8
  %high = shl i64 %job, 32
  br label %more
more:
  %n = phi i64 [ %have, %block ], [ %chunk, %good ]
  %full = icmp uge i64 %n, %need
  br i1 %full, label %unblock, label %make
make:
  %chunk = add i64 %n, 1
  %a = or i64 %high, %chunk
  %arg = inttoptr i64 %a to ptr
  %r = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %arg)
  %ok = icmp eq i32 %r, 0
  br i1 %ok, label %good, label %unblock
good:
  store i64 %chunk, ptr @started
  %id = load i64, ptr %thread
  %d = call i32 @pthread_detach(i64 %id)
  br label %more
unblock:
  %u = call i32 @pthread_sigmask(i32 2, ptr %mask, ptr null)
  br label %out
out:
  %now = load i64, ptr @started
  %threads = add i64 %now, 1
  ret i64 %threads
}}

; Makes the scratch memory at least so large; returns false when there is not enough memory.
define internal i1 @reserve(i64 %need) nounwind {{
  %have = load i64, ptr @capacity
  %enough = icmp uge i64 %have, %need
  br i1 %enough, label %out, label %grow
grow:
  %old = load ptr, ptr @scratch
  call void @free(ptr %old)
  %new = call ptr @aligned_alloc(i64 64, i64 %need)
  store ptr %new, ptr @scratch
  %bad = icmp eq ptr %new, null
  %size = select i1 %bad, i64 0, i64 %need
  store i64 %size, ptr @capacity
  %good = xor i1 %bad, true
  ret i1 %good
out:
  ret i1 true
}}

; Decides after a job of %n threads since %start whether the next calls run alone.
define internal void @judge(i64 %n, i64 %start) nounwind {{
entry:
  %lost = load atomic i64, ptr @lost monotonic, align 8
  %some = icmp ne i64 %lost, 0
  br i1 %some, label %weigh, label %good
weigh:
  store atomic i64 0, ptr @lost monotonic, align 8
  %end = call i64 @now()
  %all = sub i64 %end, %start
  %own = sub i64 %all, %lost
  %alone = mul i64 %own, %n
  %slow = icmp slt i64 %alone, %all
  br i1 %slow, label %bad, label %good
bad:
  %penalty = load i64, ptr @penalty
  %until = add i64 %end, %penalty
  store i64 %until, ptr @alone_until
  %double = mul i64 %penalty, 2
  %next = call i64 @llvm.umin.i64(i64 %double, i64 {most_alone})
  store i64 %next, ptr @penalty
  ret void
good:
  store i64 {least_alone}, ptr @penalty
  ret void
}}

define {visibility}i64 @{run}(ptr %work, ptr %table, i64 %chunks, i64 %spin, i64 %bytes) nounwind {{
  %pair = cmpxchg ptr @owner, i32 0, i32 1 acquire monotonic
  %got = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %got, label %ask, label %alone
ask:
  %start = call i64 @now()
  %until = load i64, ptr @alone_until
  %crowded = icmp slt i64 %start, %until
  br i1 %crowded, label %free, label %gather
gather:
  %most = call i64 @recruit(i64 %chunks)
  %n = call i64 @llvm.umin.i64(i64 %chunks, i64 %most)
  %several = icmp ugt i64 %n, 1
  br i1 %several, label %memory, label %free
memory:
  %helpers = sub i64 %n, 1
  %need = mul i64 %helpers, %bytes
  %ready = call i1 @reserve(i64 %need)
  br i1 %ready, label %fork, label %free
free:
  store atomic i32 0, ptr @owner release, align 4
  br label %alone
alone:
  call void %work(ptr %table, i64 0, i64 1, ptr null, ptr null)
  ret i64 1
fork:
  store ptr %work, ptr @work
  store ptr %table, ptr @table
  store i64 %n, ptr @chunks
  store i64 %bytes, ptr @bytes
  store atomic i64 %spin, ptr @spin monotonic, align 8
  %others = trunc i64 %helpers to i32
  store atomic i32 %others, ptr @remaining monotonic, align 4
  %done = load atomic i32, ptr @done monotonic, align 4
  %old = load atomic i64, ptr @job monotonic, align 8
  %next = add i64 %old, 1
  %number = and i64 %next, 4294967295
  %high = shl i64 %n, 32
  %job = or i64 %high, %number
  store atomic i64 %job, ptr @job seq_cst, align 8
  call void @wake(ptr @job, ptr @job_sleepers)
  call void %work(ptr %table, i64 0, i64 %n, ptr @barrier, ptr null)
  call void @await(ptr @done, i32 %done, ptr @done_sleepers)
  call void @judge(i64 %n, i64 %start)
  store atomic i32 0, ptr @owner release, align 4
  ret i64 %n
}}
declare i64 @llvm.umin.i64(i64, i64)

define {visibility}void @{reset}() nounwind {{
  store i64 0, ptr @started
  store i32 0, ptr @job_sleepers
  store i32 0, ptr @done_sleepers
  store i32 0, ptr @phase_sleepers
  store i32 0, ptr @arrived
  store i64 0, ptr @lost
  store i64 0, ptr @alone_until
  store atomic i32 0, ptr @owner release, align 4
  ret void
}}

define {visibility}i64 @{size}() nounwind {{
  %n = load i64, ptr @started
  ret i64 %n
}}
"""


def emit_pool(target: Target, prefix: str = "") -> str:
    """Return the LLVM text of the pool; raises CompileError for a target without one. With a ``prefix`` its symbols are
    prefixed and hidden: the pool belongs to the library that it is linked into."""
    waits, pause = target.waits, target.instruction("pause")
    if not target.has_pool or waits is None or pause is None:
        raise CompileError(f"there is no thread pool for {target.triple}")
    costs = target.costs.threads
    declarations: dict[str, Item] = {}
    pausing = pause.text(FunctionWriter(declarations), (), "")
    blocked = (1 << 64) - 1
    for signal in _UNBLOCKED:
        blocked &= ~(1 << (signal - 1))
    return _TEXT.format(
        triple=target.triple,
        declare_pause="\n".join(map(text_of, declarations.values())),
        pause=pausing,
        futex=waits.futex,
        signals=blocked - (1 << 64),
        more_signals=", i64 -1" * 15,
        visibility="hidden " if prefix else "",
        run=prefix + RUN,
        reset=prefix + RESET,
        size=prefix + SIZE,
        lost=costs.lost_ns,
        least_alone=costs.alone_ns,
        most_alone=costs.longest_alone_ns,
    )
