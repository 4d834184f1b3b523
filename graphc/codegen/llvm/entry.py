"""Native entry of a program: a function that calls its kernels in order over one table of addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.errors import CompileError
from graphc.base.progress import counted
from graphc.base.sizes.size import bounds, is_size
from graphc.codegen.llvm.emit import HOST, emit_kernel, non_temporal_name
from graphc.codegen.llvm.flush import FLUSHED, flushing
from graphc.codegen.llvm.module import Function, Item, LlvmModule, Parameter, text_of
from graphc.codegen.llvm.sizes import SizeWriter, register_of
from graphc.codegen.llvm.stamps import LEAD, Stamps
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.threads.execution import Execution
from graphc.ir.kernel.dims import dims_of_kernel, dims_of_program
from graphc.ir.kernel.index import Axis, Index
from graphc.ir.kernel.repeat import owners
from graphc.ir.kernel.statements import Call, Program, Storage, aligned

THREADS = "graphc_threads"
"""Symbol that programs with work for several threads import: {address of graphc_pool_run, number of threads of a call,
nanoseconds to spin}, see codegen.llvm.thread_pool. Programs read the first only if the second is more than 1."""
INTERRUPT = "graphc_interrupt"
"""Symbol that programs with polls (see threads.polls) import: eight bytes with the numbers of the signals that came
during the call, else 0. Their table has one more word at its end. It is ARMED if the caller accepts interruption. It
becomes the number of the poll plus CUT if the program ended early, having written to its outputs and its arena only."""
ARMED, CUT = 1, 2
LOOK = "graphc_look"
"""Name of the function that checks the signals and sets the last word of the table."""
_SIGINT, _ONES, _HIGHS = 2, int("01" * 8, 16), int("80" * 8, 16)
WORK = "graphc_work"
"""Name of the function that runs one chunk of a program: see graphc_pool_run."""


def bound_storages(program: Program) -> list[Storage]:
    """Return the storages that a call binds, in the order of the table: arguments, outputs, constants."""
    return [s for s in program.storages if s.cls != "temp" and not s.alias]


def emit_stamped(program: Program, target: Target, execution: Execution, each: bool = True) -> LlvmModule:
    """Return a module as ``emit_module`` does, for one thread, with readings of the cycle counter around the call of
    each kernel, or without ``each`` around all of them together. A stamp waits for all earlier instructions. Raises
    CompileError for machines whose programs cannot read the counter."""
    if not target.cycle_fence:
        raise CompileError(
            f"calls cannot be timed one by one on {target.triple}",
            remedy="time calls on a machine whose programs may read the cycle counter",
        )
    stamps = Stamps(target.cycle_fence, each)
    declarations: dict[str, Item] = dict(stamps.declarations)
    return _module(target, declarations, _functions(program, target, execution.alone, declarations, stamps))


def emit_program(program: Program, target: Target, execution: Execution) -> str:
    """Return the text of ``emit_module``."""
    return emit_module(program, target, execution).text


def emit_module(program: Program, target: Target, execution: Execution, threads_in_table: bool = False) -> LlvmModule:
    """Return all kernels and the entry.

    The program must be scheduled and its memory planned; ``execution`` is the schedule's decision for it. A program
    with work for several threads needs the symbol THREADS. With ``threads_in_table`` the last word of its table is the
    address of such a record instead, and it has no polls.
    """
    declarations: dict[str, Item] = {}
    functions = _functions(program, target, execution, declarations, threads_in_table=threads_in_table)
    return _module(target, declarations, functions)


def _functions(
    program: Program,
    target: Target,
    execution: Execution,
    declarations: dict[str, Item],
    stamps: Stamps | None = None,
    threads_in_table: bool = False,
) -> list[Item]:
    """Return the kernels and the entry."""
    functions: list[Item] = []
    for kernel in counted(program.kernels):
        chunking, non_temporal = execution.threads.chunked.get(kernel.name), execution.non_temporal.get(kernel.name)
        functions.append(emit_kernel(kernel, target, declarations, chunking))
        if non_temporal:
            functions.append(emit_kernel(kernel, target, declarations, chunking, non_temporal))
    if execution.non_temporal:
        declarations["ptrmask"] = "declare ptr @llvm.ptrmask.p0.i64(ptr, i64)"
    if execution.polls:
        functions += [_INTERRUPT, _LOOK]
    if any(kernel.host >= 0 for kernel in program.kernels):
        functions.append(f"@{HOST} = external global ptr\n")
    return [
        *functions,
        *_EntryWriter(program, execution, target, declarations, stamps, threads_in_table).emit(),
    ]


def _module(target: Target, declarations: dict[str, Item], functions: list[Item]) -> LlvmModule:
    head = f'target triple = "{target.triple}"\n'
    attributes = 'attributes #0 = { nounwind noinline "frame-pointer"="none" }\n'
    first = sorted(declarations.values(), key=text_of)
    return LlvmModule((head, *_spaced(first), "", *_spaced(functions), attributes))


def _spaced(items: Sequence[Item]) -> list[Item]:
    """Return the items with a blank line after every function."""
    return [p for item in items for p in ((item, "") if isinstance(item, Function) else (item,))]


_LEAST = "llvm.umin.i64"
_THREADS = f"@{THREADS} = external global {{ ptr, i64, i64 }}\n"


def _start(
    table: Parameter, most: int, scratch: str, parts: str, head: Sequence[str], record: str = f"@{THREADS}"
) -> Function:
    """Return the entry of a program that threads share, at most ``parts`` of them if given. ``head`` computes the
    registers ``scratch`` and ``parts``, if they depend on the sizes of a call. ``record`` is the address of the record
    of THREADS."""
    allowed = "%allowed" if parts else "%count"
    body = "\n".join(["entry:", *head, ""] if head else [])
    body += f"""\
  %pcount = getelementptr i8, ptr {record}, i64 8
  {allowed} = load atomic i64, ptr %pcount monotonic, align 8
"""
    if parts:
        body += f"  %count = call i64 @{_LEAST}(i64 %allowed, i64 {parts})\n"
    body += f"""\
  %more = icmp ugt i64 %count, 1
  br i1 %more, label %share, label %alone
alone:
  call void @{WORK}(ptr %table, i64 0, i64 1, ptr null, ptr null)
  ret void
share:
  %fewer = icmp ult i64 %count, {most}
  %chunks = select i1 %fewer, i64 %count, i64 {most}
  %pspin = getelementptr i8, ptr {record}, i64 16
  %spin = load atomic i64, ptr %pspin monotonic, align 8
  %run = load atomic ptr, ptr {record} acquire, align 8
  %used = call i64 %run(ptr @{WORK}, ptr %table, i64 %chunks, i64 %spin, i64 {scratch})
  ret void"""
    return Function(ENTRY, (table,), body, local=False, calls=True)


_BARRIER = Function(
    "graphc_meet",
    (("ptr", "%barrier"),),
    """\
  %alone = icmp eq ptr %barrier, null
  br i1 %alone, label %out, label %wait
wait:
  call void %barrier()
  br label %out
out:
  ret void""",
)


_INTERRUPT = f"@{INTERRUPT} = external global i64\n"
# A byte of the signals is SIGINT if one of %x is 0, which %found detects (Warren, Hacker's Delight, section 6-1).
_LOOK = Function(
    LOOK,
    (("ptr", "%word"), ("i64", "%cut")),
    f"""\
  %signals = load atomic i64, ptr @{INTERRUPT} monotonic, align 8
  %x = xor i64 %signals, {_ONES * _SIGINT}
  %less = sub i64 %x, {_ONES}
  %not = xor i64 %x, -1
  %zeros = and i64 %less, %not
  %found = and i64 %zeros, {_HIGHS}
  %came = icmp ne i64 %found, 0
  %now = load atomic i64, ptr %word monotonic, align 8
  %wanted = icmp eq i64 %now, {ARMED}
  %both = and i1 %came, %wanted
  br i1 %both, label %set, label %out
set:
  store atomic i64 %cut, ptr %word monotonic, align 8
  br label %out
out:
  ret void""",
)


CALLS = "graphc_calls"
"""Prefix of the functions that hold the calls of a long program."""
_ARGUMENTS = 1024
"""Approximate number of arguments of the calls of such a function together."""


_QUICK_LINES = 300
"""Lines from which a function that only calls kernels is built without optimisation, which would save nanoseconds."""


def _function(name: str, parameters: Sequence[Parameter], lines: Sequence[str]) -> Function:
    body = "\n".join(["entry:", *lines, "  ret void"])
    quick = len(lines) >= _QUICK_LINES
    return Function(name, tuple(parameters), body, local=name != ENTRY, calls=True, quick=quick)


class _EntryWriter:
    def __init__(
        self,
        program: Program,
        execution: Execution,
        target: Target,
        declarations: dict[str, Item],
        stamps: Stamps | None = None,
        threads_in_table: bool = False,
    ):
        self.program = program
        self.line = target.line_bytes
        self.word_bits = target.word_bits
        self.flush_mode = target.flush_mode if target.flushes else None
        self.polls = execution.polls
        self.dims = tuple(dims_of_program(program).values())
        """Dimensions whose sizes follow the addresses in the table."""
        self.last = len(bound_storages(program)) + 1 + len(self.dims)
        """Index of the table's last word."""
        self.sizes = SizeWriter(self.declare, self.word_bits)
        """Sizes of the current function."""
        self.declarations = declarations
        self.table: Parameter = (f"ptr noalias nocapture{'' if self.polls else ' readonly'}", "%table")
        self.non_temporal = execution.non_temporal
        self.stamps = stamps
        self.threads_in_table = threads_in_table
        """Whether the last word of the table is the address of the record of THREADS."""
        self.threads = execution.threads
        self.kernels = {k.name: k for k in program.kernels}
        self.dims_of = {k.name: tuple(dims_of_kernel(k).values()) for k in program.kernels}
        self.owners = owners(program)
        self.bound = {s.name: i for i, s in enumerate(bound_storages(program))}
        self.temporaries = {s.name: s.offset for s in program.storages if s.cls == "temp" and not s.alias}
        """Offsets in the arena."""
        self.lines: list[str] = []
        """Lines of the current function."""
        self.loops: list[tuple[Axis, str]] = []
        """Open loops, with the suffixes of their registers."""
        self.shared = self.threads.shared_loops(program.calls)
        self.alone = -1
        """First of the calls that only the first thread runs at present; -1 for none."""
        self.repeated: list[str] = []
        """Stamps of calls in open loops, written after the loops."""

    def declare(self, name: str, text: str) -> None:
        """Declare an external function."""
        self.declarations[name] = text

    def emit(self) -> list[Item]:
        """Return the entry, and for a program that threads share the function that runs one chunk of it. The calls of a
        long program are split over several functions, because build time grows faster than the length of a function."""
        shared = bool(self.threads.chunked)
        rest: list[Parameter] = [("i64", "%chunk"), ("i64", "%chunks"), ("ptr", "%barrier"), ("ptr", "%scratch")]
        parameters = [self.table, *(rest if shared else ())]
        spans = self.spans()
        bodies = [self.body(start, stop) for start, stop in spans]
        functions: list[Item] = []
        main = bodies[0]
        if len(spans) > 1:
            functions = [_function(f"{CALLS}{i}", parameters, body) for i, body in enumerate(bodies)]
            arguments = ", ".join(["ptr %table", *(f"{kind} {register}" for kind, register in parameters[1:])])
            main = [line for i, span in enumerate(spans) for line in self.call_span(i, span, arguments)]
        if shared:
            functions += [*(() if self.threads_in_table else (_THREADS,)), self.start(), _BARRIER]
        name = WORK if shared else ENTRY
        if self.flush_mode is None:
            return [*functions, _function(name, parameters, main)]
        self.declarations |= {text: text for text in self.flush_mode.declarations}
        return [*functions, _function(FLUSHED, parameters, main), flushing(name, parameters, self.flush_mode, shared)]

    def start(self) -> Function:
        """Return the entry of a program that threads share."""
        self.sizes = SizeWriter(self.declare, self.word_bits)
        scratch, parts = self.sizes.value(self.program.scratch), ""
        if is_size(self.threads.parts):
            parts = self.sizes.value(self.threads.parts)
            self.declare(_LEAST, f"declare i64 @{_LEAST}(i64, i64)")
        sized = is_size(self.program.scratch) or is_size(self.threads.parts)
        head = [*self.dimensions(), *self.sizes.lines] if sized else []
        if not self.threads_in_table:
            return _start(self.table, self.threads.most, scratch, parts, head)
        head += [
            f"  %threads.p = getelementptr inbounds i64, ptr %table, i64 {self.last}",
            "  %threads = load ptr, ptr %threads.p, align 8",
        ]
        return _start(self.table, self.threads.most, scratch, parts, head, "%threads")

    def dimensions(self) -> list[str]:
        """Return the lines that load the sizes of all dimensions."""
        lines = []
        for i, dimension in enumerate(self.dims, len(self.bound) + 1):
            register = register_of(dimension)
            lines.append(f"  {register}.p = getelementptr inbounds i64, ptr %table, i64 {i}")
            lines.append(f"  {register} = load i64, ptr {register}.p, align 8")
        return lines

    def spans(self) -> list[tuple[int, int]]:
        """Return the ranges of calls of the functions (first call, end); loops are not split."""
        calls = self.program.calls
        ranges, start, size = [], 0, 0
        for number in range(1, len(calls)):
            size += len(calls[number - 1].args)
            is_boundary = calls[number - 1].loops[:1] != calls[number].loops[:1] or not calls[number].loops
            if size >= _ARGUMENTS and is_boundary:
                ranges.append((start, number))
                start, size = number, 0
        return [*ranges, (start, len(calls))]

    def call_span(self, i: int, span: tuple[int, int], arguments: str) -> list[str]:
        """Return the call of one of the functions. The program ends after it if a poll in it has cut the program, or a
        check has failed."""
        start, stop = span
        lines = [f"  call void @{CALLS}{i}({arguments})"]
        if start <= self.program.checked < stop and self.program.checked:
            lines += self.stop(f"stop{i}")
        if self.polls.isdisjoint(range(start, stop)):
            return lines
        # NOTE: another thread may be ahead, and a later poll that this thread has not reached may have cut it.
        return [
            *lines,
            f"  %w{i}.p = getelementptr inbounds i64, ptr %table, i64 {self.last}",
            f"  %w{i} = load atomic i64, ptr %w{i}.p monotonic, align 8",
            f"  %w{i}.n = sub i64 %w{i}, {start + CUT}",
            f"  %w{i}.cut = icmp ult i64 %w{i}.n, {stop - start}",
            f"  br i1 %w{i}.cut, label %U{i}, label %V{i}",
            f"U{i}:",
            "  ret void",
            f"V{i}:",
        ]

    def body(self, start: int, stop: int) -> list[str]:
        """Return the lines of a function with the calls from ``start`` to before ``stop``."""
        self.lines, self.sizes = [], SizeWriter(self.declare, self.word_bits)
        self.arena()
        if self.stamps:
            self.lines.append(f"  %pt = getelementptr inbounds i64, ptr %table, i64 {self.last}")
            self.lines.append("  %ticks = load ptr, ptr %pt, align 8")
            if not start:
                self.lines += self.stamps.begin(len(self.program.calls) if self.stamps.each else 1)
        if self.threads.chunked:
            self.shared_calls(start, stop)
        else:
            self.calls(start, stop)
        if self.stamps and not self.stamps.each and stop == len(self.program.calls):
            self.lines += self.stamps.stamp(LEAD)
        return [*self.dimensions(), *self.sizes.lines, *self.lines]

    def calls(self, start: int, stop: int) -> None:
        """Append the calls of one thread."""
        for number, call in enumerate(self.program.calls[start:stop], start):
            self.stop_where_set(number)
            self.enter(number, call.loops)
            if number in self.polls:
                self.poll(number)
            if self.stamps and self.stamps.each:
                self.stamped_call(number, call, self.stamps)
            else:
                self.call(number, call)
        self.leave(())

    def arena(self) -> None:
        """Load the address of the arena."""
        self.lines.append(f"  %pa = getelementptr inbounds i64, ptr %table, i64 {len(self.bound)}")
        self.lines.append("  %arena = load ptr, ptr %pa, align 8")
        scratch = self.sizes.value(self.program.arena - self.program.scratch)
        self.lines.append(f"  %x = getelementptr inbounds i8, ptr %arena, i64 {scratch}")

    def base(self, storage: str, register: str) -> str:
        """Append the load of a storage's address into a register, and return the register.

        NOTE: each use loads it again. In a long function few addresses would stay in a register from its beginning, and
        LLVM takes twice as long to find that out.
        """
        owner = self.owners[storage].name
        if owner in self.bound:
            self.lines.append(f"  {register}.p = getelementptr inbounds i64, ptr %table, i64 {self.bound[owner]}")
            self.lines.append(f"  {register} = load ptr, ptr {register}.p, align 8")
        else:
            offset = self.sizes.value(self.temporaries[owner])
            self.lines.append(f"  {register} = getelementptr inbounds i8, ptr %arena, i64 {offset}")
        return register

    def poll(self, number: int) -> None:
        """Append the end of the program before call ``number`` for an interrupt."""
        self.look(number)
        self.end_if_cut(number)

    def look(self, number: int) -> None:
        """Append the check for Ctrl-C, which sets the last word of the table."""
        self.lines.append(f"  %v{number} = getelementptr inbounds i64, ptr %table, i64 {self.last}")
        self.lines.append(f"  call void @{LOOK}(ptr %v{number}, i64 {number + CUT})")

    def end_if_cut(self, number: int) -> None:
        """Append the end of the program if the poll before call ``number`` cut it."""
        w = f"%w{number}"
        self.lines += [
            f"  {w}.p = getelementptr inbounds i64, ptr %table, i64 {self.last}",
            f"  {w} = load atomic i64, ptr {w}.p monotonic, align 8",
            f"  {w}.cut = icmp eq i64 {w}, {number + CUT}",
            f"  br i1 {w}.cut, label %U{number}, label %V{number}",
            f"U{number}:",
            "  ret void",
            f"V{number}:",
        ]

    def enter(self, number: int, loops: tuple[Axis, ...]) -> None:
        """Append the ends of finished loops and the heads of new ones before call ``number``."""
        self.leave(loops)
        for axis in loops[len(self.loops) :]:
            label = f"{number}.{len(self.loops)}"
            kind = self.counter_type(axis)
            name = "i" if kind == "i64" else "j"
            self.lines.insert(0, f"  %c{label} = alloca {kind}, align 8")
            self.lines.append(f"  store {kind} 0, ptr %c{label}, align 8")
            if axis.flag:
                self.lines.append(f"  br i1 {self.flag(axis, 'f' + label)}.on, label %L{label}, label %E{label}")
            elif bounds(axis.extent)[0] < 1:
                self.lines.append(f"  %e{label} = icmp eq i64 {self.sizes.value(axis.extent)}, 0")
                self.lines.append(f"  br i1 %e{label}, label %E{label}, label %L{label}")
            else:
                self.lines.append(f"  br label %L{label}")
            self.lines += [
                f"L{label}:",
                f"  %{name}{label} = load {kind}, ptr %c{label}, align 8",
                *([] if name == "i" else [f"  %i{label} = zext {kind} %{name}{label} to i64"]),
            ]
            self.loops.append((axis, label))

    def counter_type(self, axis: Axis) -> str:
        """Return the LLVM type of a loop's counter."""
        return "i64" if is_size(axis.extent) else self.sizes.type_of(0, axis.extent)

    def flag(self, axis: Axis, name: str) -> str:
        """Append the load of a loop's flag; return the prefix of its i1 registers: ``.on`` for another iteration,
        ``.off`` for none. In a shared loop the load is between two barriers: no thread reads the flag before it is set,
        nor sets it again before all have read it."""
        barrier = ["  call void @graphc_meet(ptr %barrier)"] if axis in self.shared else []
        address = self.base(axis.flag, f"%{name}.a")
        self.lines += [
            *barrier,
            f"  %{name} = load i8, ptr {address}, align 1",
            f"  %{name}.on = icmp ne i8 %{name}, 0",
            f"  %{name}.off = icmp eq i8 %{name}, 0",
            *barrier,
        ]
        return f"%{name}"

    def repeat(self, axis: Axis, label: str) -> None:
        """Append the branch at the end of an iteration."""
        end = f"%d{label}"
        if axis.flag:
            flag = self.flag(axis, f"g{label}")
            end = f"{flag}.end"
            self.lines.append(f"  {end} = or i1 {flag}.off, %d{label}")
        self.lines.append(f"  br i1 {end}, label %E{label}, label %L{label}")

    def stop_where_set(self, number: int) -> None:
        """Append the return before call ``number`` for a failed check."""
        if number and number == self.program.checked:
            self.lines += self.stop("stop")

    def stop(self, label: str) -> list[str]:
        """Return the lines that return if a check has failed."""
        slot = next(self.bound[s.name] for s in self.program.storages if s.cls == "status")
        return [
            f"  %{label}.p = getelementptr inbounds i64, ptr %table, i64 {slot}",
            f"  %{label}.s = load ptr, ptr %{label}.p, align 8",
            f"  %{label}.v = load i8, ptr %{label}.s, align 1",
            f"  %{label}.set = icmp ne i8 %{label}.v, 0",
            f"  br i1 %{label}.set, label %{label}.end, label %{label}.on",
            f"{label}.end:",
            "  ret void",
            f"{label}.on:",
        ]

    def leave(self, loops: tuple[Axis, ...]) -> None:
        """Append the ends of the open loops that do not enclose a call with these loops."""
        while self.loops and tuple(axis for axis, _ in self.loops) != loops[: len(self.loops)]:
            axis, label = self.loops.pop()
            if axis in self.shared:
                self.join()
            kind = self.counter_type(axis)
            self.lines += [
                f"  %n{label} = add nuw nsw {kind} %{'i' if kind == 'i64' else 'j'}{label}, 1",
                f"  store {kind} %n{label}, ptr %c{label}, align 8",
                f"  %d{label} = icmp eq {kind} %n{label}, {self.sizes.value(axis.extent)}",
            ]
            self.repeat(axis, label)
            self.lines.append(f"E{label}:")
        if not self.loops:
            self.lines += self.repeated
            self.repeated.clear()

    def address(self, number: int, call: Call, position: int) -> str:
        """Append the computation of an argument's address in the present iteration; return its register."""
        base = self.base(call.args[position], f"%a{number}.{position}")
        offset = call.offset(position)
        if offset == Index():
            return base
        itemsize = self.kernels[call.kernel].arguments[position].dtype.itemsize
        total = self.sizes.value(offset.constant * itemsize)
        for k, (axis, label) in enumerate(self.loops):
            name = f"%o{number}.{position}.{k}"
            step = self.sizes.value(offset.coefficient(axis) * itemsize)
            self.lines.append(f"  {name}.m = mul i64 %i{label}, {step}")
            self.lines.append(f"  {name} = add i64 {name}.m, {total}")
            total = name
        self.lines.append(f"  %q{number}.{position} = getelementptr inbounds i8, ptr {base}, i64 {total}")
        return f"%q{number}.{position}"

    def call(self, number: int, call: Call, scratch: str = "%x") -> None:
        """Append the call of a kernel, with its scratch buffers in a row from ``scratch`` on."""
        kernel = self.kernels[call.kernel]
        args = [f"ptr {self.address(number, call, i)}" for i in range(len(call.args))]
        offset: Any = 0
        for k, buffer in enumerate(b for b in kernel.buffers if b.role == "scratch"):
            position = self.sizes.value(offset)
            self.lines.append(f"  %x{number}.{k} = getelementptr inbounds i8, ptr {scratch}, i64 {position}")
            args.append(f"ptr %x{number}.{k}")
            offset += aligned(call.size(buffer.size) * buffer.dtype.itemsize)
        call_sizes = dict(call.sizes)
        for dimension in self.dims_of[call.kernel]:
            size = self.sizes.value(call_sizes[dimension]) if dimension in call_sizes else register_of(dimension)
            args.append(f"i64 {size}")
        if call.kernel in self.threads.chunked:
            args += ["i64 %chunk", "i64 %chunks"]
        self.lines.append(f"  call void {self.function(number, call)}({', '.join(args)})")

    def function(self, number: int, call: Call) -> str:
        """Return the function of a call's kernel. A variant with non-temporal stores is selected if all their buffers
        start at a cache line."""
        kernel = self.kernels[call.kernel]
        lined = ""
        for i, buffer in enumerate(kernel.arguments):
            if buffer.name in self.non_temporal.get(call.kernel, ()):
                name = f"%s{number}.{i}"
                address = self.base(call.args[i], f"{name}.a")
                self.lines.append(f"  {name}.low = call ptr @llvm.ptrmask.p0.i64(ptr {address}, i64 {self.line - 1})")
                self.lines.append(f"  {name} = icmp eq ptr {name}.low, null")
                if lined:
                    self.lines.append(f"  {name}.all = and i1 {lined}, {name}")
                lined = f"{name}.all" if lined else name
        if not lined:
            return f"@{kernel.name}"
        chosen = f"select i1 {lined}, ptr @{non_temporal_name(kernel.name)}, ptr @{kernel.name}"
        self.lines.append(f"  %f{number} = {chosen}")
        return f"%f{number}"

    def stamped_call(self, number: int, call: Call, stamps: Stamps) -> None:
        """Append a call and its stamp; a repeated one counts as the time of all its runs together."""
        if not call.loops:
            self.call(number, call)
            self.lines += stamps.stamp(LEAD + number)
            return
        self.lines[:0] = stamps.sum_of(number)
        self.lines += stamps.before_run(number)
        self.call(number, call)
        self.lines += stamps.after_run(number)
        self.repeated += stamps.repeated(number, len(self.program.calls))

    def shared_calls(self, start: int, stop: int) -> None:
        """Append calls that threads share. Each thread runs its chunk of chunked kernels, and the first one all others.
        All wait for each other at the barriers of the thread plan."""
        lines = self.lines
        lines.append("  %first = icmp eq i64 %chunk, 0")
        lines.append("  %xp = select i1 %first, ptr %x, ptr %scratch")
        for number, call in enumerate(self.program.calls[start:stop], start):
            chunked = call.kernel in self.threads.chunked
            barrier = number in self.threads.barriers
            together = tuple(axis for axis in call.loops if axis in self.shared)
            self.leave(call.loops)
            if chunked or barrier or len(together) > len(self.loops):
                self.join()
            self.enter(number, max(together, call.loops[: len(self.loops)], key=len))
            if number in self.polls:
                lines += [f"  br i1 %first, label %P{number}, label %Q{number}", f"P{number}:"]
                self.look(number)
                lines += [f"  br label %Q{number}", f"Q{number}:"]
            if barrier or number in self.polls:
                lines.append("  call void @graphc_meet(ptr %barrier)")
            if number in self.polls:
                self.end_if_cut(number)
            self.stop_where_set(number)
            if not chunked and self.alone < 0:
                lines += [f"  br i1 %first, label %A{number}, label %J{number}", f"A{number}:"]
                self.alone = number
            self.enter(number, call.loops)
            self.call(number, call, "%xp")
        self.leave(())
        self.join()

    def join(self) -> None:
        """Append the label where the other threads continue after the first one's exclusive calls."""
        if self.alone >= 0:
            self.lines += [f"  br label %J{self.alone}", f"J{self.alone}:"]
            self.alone = -1
