"""LLVM text of a library's functions: its entries, contexts and states."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from graphc.base.sizes.size import Size, is_size
from graphc.base.sizes.size_terms import Atom, Dimension
from graphc.c_library.plan import (
    CODES,
    CONTEXT_BYTES,
    HEADER_BYTES,
    STATUSES,
    EntryPlan,
    LibraryPlan,
    ProgramPlan,
)
from graphc.c_library.sections import data_of
from graphc.codegen.door.writer import NativeWriter
from graphc.codegen.llvm.module import Function, Item, LlvmModule, Parameter
from graphc.codegen.llvm.sizes import SizeWriter, register_of
from graphc.codegen.llvm.thread_pool import RESET, RUN
from graphc.files.container import ALIGNMENT
from graphc.runtime.threads import MAX_THREADS

CODE = "signext i32"
"""Return type of functions that return a status code."""
SAFE_SIZE = 2.0**62
"""Largest size computed without overflow."""


class GuardedWriter(NativeWriter):
    """Writer of one function that returns a status code."""

    def __init__(self, declarations: dict[str, Item]):
        super().__init__({})
        self.declarations = declarations
        self._sizes = SizeWriter(lambda name, text: self.declare(name, text))
        self._written = 0
        self._failures: dict[str, int] = {}

    def declare(self, name: str, text: str) -> None:
        """Declare an external function."""
        self.declarations[name] = text

    def room(self, kind: str, align: int, register: str = "") -> str:
        """Allocate stack memory at the start of the function, and return its address."""
        register = register or self._fresh("%room")
        self._lines.insert(1, f"  {register} = alloca {kind}, align {align}")
        return register

    def require(self, condition: str, status: str) -> None:
        """Emit a check that returns the code of ``status`` unless the condition holds."""
        self._failures[f"fail_{CODES[status]}"] = CODES[status]
        self.need(condition, f"fail_{CODES[status]}")

    def require_none(self, code: str) -> None:
        """Emit a check that returns ``code`` unless it is 0."""
        good, bad = self._fresh("good"), self._fresh("bad")
        self.choose(self.equal("i32", code, "0"), good, bad)
        self.label(bad)
        self.give("i32", code)
        self.label(good)

    def require_pointers(self, pointers: Sequence[tuple[str, int]]) -> None:
        """Emit a check that no pointer is null and each is a multiple of its alignment in bytes."""
        joined: dict[int, str] = {}
        for pointer, alignment in pointers:
            self.require(self.differ("ptr", pointer, "null"), "ERROR_NULL")
            number = self.value(f"ptrtoint ptr {pointer} to i64")
            joined[alignment] = self.value(f"or i64 {joined[alignment]}, {number}") if alignment in joined else number
        for alignment, bits in joined.items():
            if alignment > 1:
                low = self.value(f"and i64 {bits}, {alignment - 1}")
                self.require(self.equal("i64", low, "0"), "ERROR_ALIGNMENT")

    def require_context(self, magic: int) -> None:
        """Emit a check that ``%net`` is a context of this library."""
        self.require_pointers([("%net", ALIGNMENT)])
        self.require(self.equal("i64", self.load("i64", "%net"), str(magic)), "ERROR_CONTEXT")

    def within(self, value: str, low: int, high: int, status: str) -> None:
        """Emit a check that ``low <= value <= high``."""
        self.require(self.value(f"icmp sge i64 {value}, {low}"), status)
        self.require(self.value(f"icmp sle i64 {value}, {high}"), status)

    def size(self, size: Any) -> str:
        """Return a number, or the register of a computed size; the registers of dimensions must exist."""
        register = self._sizes.value(size)
        lines = self._sizes.lines
        for line in lines[self._written :]:
            self.do(line.strip())
        self._written = len(lines)
        return register

    def safe(self, size: Any) -> None:
        """Emit an overflow check: a size and its intermediate values must fit in 64 bits."""
        if is_size(size) and largest_magnitude(size) > SAFE_SIZE:
            good = self.value(f"fcmp ole double {self._magnitude(size)}, {_double(SAFE_SIZE)}")
            self.require(good, "ERROR_SIZE")

    def _magnitude(self, size: Any) -> str:
        """Emit an upper bound, as a double, of a size and all its intermediate values."""
        if not is_size(size):
            return _double(abs(int(size)))
        total = _double(0)
        for monomial, coefficient in size.terms:
            product = _double(abs(coefficient))
            for atom in (a for a, power in monomial for _ in range(power)):
                product = self.value(f"fmul double {product}, {self._atom(atom)}")
            total = self.value(f"fadd double {total}, {product}")
        return total

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Dimension):
            return self.value(f"uitofp i64 {register_of(atom)} to double")
        return self._magnitude(atom.operand)

    def function(self, name: str, parameters: Sequence[tuple[str, str]], local: bool = False) -> Function:
        """Finish the function with a return of 0, and return it."""
        self.give("i32", "0")
        for label, code in self._failures.items():
            self.label(label)
            self.give("i32", str(code))
        return Function(name, tuple(parameters), self.body, CODE, local=local, calls=True)


def largest_magnitude(size: Any) -> float:
    """Return the largest value of ``_magnitude`` over the ranges of the dimensions."""
    if type(size) is not Size:
        return abs(float(size))
    total = 0.0
    for monomial, coefficient in size.terms:
        product = abs(float(coefficient))
        for atom, power in monomial:
            product *= (float(atom.high) if isinstance(atom, Dimension) else largest_magnitude(atom.operand)) ** power
        total += product
    return total


def _double(value: float) -> str:
    """Format a number as an LLVM double."""
    return f"0x{struct.pack('>d', float(value)).hex()}"


WEIGHTS, RECORD, COUNT, SPIN, VERSION = 8, 16, 24, 32, 40
"""Offsets in a context after its first word: address of the weights, the record that entry.THREADS describes, and the
number of the target whose programs run."""
SPIN_NS = 1_000_000
"""Nanoseconds that workers spin before they sleep, as in Python."""
_O_RDONLY_CLOEXEC, _SEEK_END, _PROT_READ, _MAP_PRIVATE = 0o2000000, 2, 1, 2
"""Values on Linux for x86-64, aarch64 and riscv64."""
_NET: Parameter = ("ptr", "%net")
_MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
"""Becomes the function of C with the sizes of its machine."""
Declarations = dict[str, Item]


def emit_functions(plan: LibraryPlan) -> LlvmModule:
    """Emit the exported functions, and the internal functions they call."""
    declarations: Declarations = {}
    functions = [_text(plan, name) for name in ("version", "digest", "target")]
    functions += [_number(plan, "context_size", plan.context_bytes), _number(plan, "state_size", _saved_bytes(plan))]
    functions.append(_error_text(plan))
    functions += [write(plan, declarations) for write in _ALWAYS]
    if plan.opens_weights:
        functions += [write(plan, declarations) for write in _BESIDE]
    if plan.threads:
        functions += [write(plan, declarations) for write in _THREADED]
    for entry in plan.entries:
        functions += _entry_functions(plan, entry, declarations)
    head = f'target triple = "{plan.triple}"\n'
    return LlvmModule((head, *declarations.values(), "", *functions))


def declared_data(plan: LibraryPlan) -> LlvmModule:
    """Declare the constants, which another module defines."""
    return LlvmModule(tuple(d.declaration for d in data_of(plan)))


def _saved_bytes(plan: LibraryPlan) -> int:
    return HEADER_BYTES + plan.state_bytes


# ---- what is the same for all entries


def _text(plan: LibraryPlan, name: str) -> Function:
    return Function(plan.symbol(name), (), f"  ret ptr @{plan.inner(f'text_{name}')}", "ptr", local=False, calls=True)


def _number(plan: LibraryPlan, name: str, number: int) -> Function:
    return Function(plan.symbol(name), (), f"  ret i64 {number}", "i64", local=False, calls=True)


def _error_text(plan: LibraryPlan) -> Function:
    w = NativeWriter({})
    w.need(w.value(f"icmp ult i32 %code, {len(STATUSES)}"), "unknown")
    number = w.value("zext i32 %code to i64")
    w.give("ptr", w.item("ptr", f"@{plan.inner('texts')}", number))
    w.label("unknown")
    w.give("ptr", f"@{plan.inner('text_unknown')}")
    return Function(plan.symbol("error_text"), (("i32 signext", "%code"),), w.body, "ptr", local=False, calls=True)


def _init(plan: LibraryPlan, declarations: Declarations) -> Function:
    w = GuardedWriter(declarations)
    version = _detect(w, plan)
    parameters: list[Parameter] = [_NET, ("i64", "%size")]
    w.require_pointers([("%net", ALIGNMENT)])
    w.require(w.value(f"icmp uge i64 %size, {plan.context_bytes}"), "ERROR_MEMORY")
    weights = f"@{plan.inner('weights')}"
    if plan.is_beside:
        parameters += [("ptr", "%weights"), ("i64", "%weights_size")]
        w.require_pointers([("%weights", ALIGNMENT)])
        size = HEADER_BYTES + plan.weight_bytes
        w.require(w.equal("i64", "%weights_size", str(size)), "ERROR_WEIGHTS")
        _require_header(w, plan, "%weights", "weights_header", "ERROR_WEIGHTS")
        weights = w.offset("%weights", HEADER_BYTES)
    w.store("ptr", weights, w.offset("%net", WEIGHTS))
    run = f"@{plan.inner(RUN)}" if plan.threads else "null"
    w.store("ptr", run, w.offset("%net", RECORD))
    for value, offset in ((1, COUNT), (SPIN_NS, SPIN)):
        w.store("i64", str(value), w.offset("%net", offset))
    _copy_initial(w, plan, weights)
    w.store("i64", str(plan.magic), "%net")
    if len(plan.targets) > 1:
        w.store("i64", version, w.offset("%net", VERSION))
    if plan.threads:
        w.declare("run", f"declare hidden i64 @{plan.inner(RUN)}(ptr, ptr, i64, i64, i64)")
    return w.function(plan.symbol("init"), parameters)


def _detect(w: GuardedWriter, plan: LibraryPlan) -> str:
    """Emit a search for the first target whose instructions the processor has, and return its number."""
    number = "-1"
    for version, detected in reversed([*enumerate(plan.detected)]):
        has = "true"
        if detected:
            symbol = plan.detection(version)
            w.declare(symbol, f"declare hidden i1 @{symbol}()")
            has = w.call("i1", f"@{symbol}", "")
        number = str(version) if has == "true" else w.value(f"select i1 {has}, i64 {version}, i64 {number}")
    if all(plan.detected):
        w.require(w.value(f"icmp sge i64 {number}, 0"), "ERROR_MACHINE")
    return number


def _copy_initial(w: GuardedWriter, plan: LibraryPlan, weights: str) -> None:
    """Copy the initial states into the context, and set those after them to zero."""
    size, zeros = plan.initial_bytes, plan.state_bytes - plan.initial_bytes
    if size:
        w.declare("memcpy", _MEMCPY)
        source, states = w.offset(weights, plan.initial), w.offset("%net", CONTEXT_BYTES)
        w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {states}, ptr {source}, i64 {size}, i1 false)")
    if zeros:
        w.declare("memset", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        rest = w.offset("%net", CONTEXT_BYTES + size)
        w.do(f"call void @llvm.memset.p0.i64(ptr {rest}, i8 0, i64 {zeros}, i1 false)")


def _require_header(w: GuardedWriter, plan: LibraryPlan, address: str, name: str, status: str) -> None:
    """Emit a check for the header of this library at an address of any alignment."""
    differing = "0"
    for offset in range(0, HEADER_BYTES, 8):
        expected, actual = w.offset(f"@{plan.inner(name)}", offset), w.offset(address, offset)
        both = w.value(f"load i64, ptr {expected}, align 8"), w.value(f"load i64, ptr {actual}, align 1")
        differing = w.value(f"or i64 {differing}, {w.value(f'xor i64 {both[0]}, {both[1]}')}")
    w.require(w.equal("i64", differing, "0"), status)


def _reset_state(plan: LibraryPlan, declarations: Declarations) -> Function:
    w = GuardedWriter(declarations)
    w.require_context(plan.magic)
    _copy_initial(w, plan, w.load("ptr", w.offset("%net", WEIGHTS)))
    return w.function(plan.symbol("reset_state"), [_NET])


_BUFFER: list[Parameter] = [_NET, ("ptr", "%buffer"), ("i64", "%size")]


def _save_state(plan: LibraryPlan, declarations: Declarations) -> Function:
    w = GuardedWriter(declarations)
    _check_buffer(w, plan)
    copies = [("%buffer", f"@{plan.inner('state_header')}", HEADER_BYTES)]
    if plan.state_bytes:
        copies.append((w.offset("%buffer", HEADER_BYTES), w.offset("%net", CONTEXT_BYTES), plan.state_bytes))
    for to, source, nbytes in copies:
        w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {nbytes}, i1 false)")
    return w.function(plan.symbol("save_state"), _BUFFER)


def _check_buffer(w: GuardedWriter, plan: LibraryPlan) -> None:
    w.declare("memcpy", _MEMCPY)
    w.require_context(plan.magic)
    w.require_pointers([("%buffer", 1)])
    w.require(w.value(f"icmp uge i64 %size, {_saved_bytes(plan)}"), "ERROR_MEMORY")


def _load_state(plan: LibraryPlan, declarations: Declarations) -> Function:
    w = GuardedWriter(declarations)
    _check_buffer(w, plan)
    _require_header(w, plan, "%buffer", "state_header", "ERROR_STATE")
    if plan.state_bytes:
        source, states = w.offset("%buffer", HEADER_BYTES), w.offset("%net", CONTEXT_BYTES)
        w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {states}, ptr {source}, i64 {plan.state_bytes}, i1 false)")
    return w.function(plan.symbol("load_state"), _BUFFER)


def _open_weights(plan: LibraryPlan, declarations: Declarations) -> Function:
    w = GuardedWriter(declarations)
    w.declare("open", "declare i32 @open(ptr, i32, ...)")
    w.declare("lseek", "declare i64 @lseek(i32, i64, i32)")
    w.declare("mmap", "declare ptr @mmap(ptr, i64, i32, i32, i32, i64)")
    w.declare("close", "declare i32 @close(i32)")
    w.require_pointers([("%path", 1), ("%weights", 8), ("%size", 8)])
    file = w.value(f"call i32 (ptr, i32, ...) @open(ptr %path, i32 {_O_RDONLY_CLOEXEC})")
    w.require(w.value(f"icmp sge i32 {file}, 0"), "ERROR_FILE")
    size = w.value(f"call i64 @lseek(i32 {file}, i64 0, i32 {_SEEK_END})")
    mapping = w.value(f"call ptr @mmap(ptr null, i64 {size}, i32 {_PROT_READ}, i32 {_MAP_PRIVATE}, i32 {file}, i64 0)")
    w.value(f"call i32 @close(i32 {file})")
    w.require(w.differ("ptr", mapping, "inttoptr (i64 -1 to ptr)"), "ERROR_FILE")
    w.store("ptr", mapping, "%weights")
    w.store("i64", size, "%size")
    return w.function(plan.symbol("open_weights"), [("ptr", "%path"), ("ptr", "%weights"), ("ptr", "%size")])


def _close_weights(plan: LibraryPlan, declarations: Declarations) -> Function:
    w = GuardedWriter(declarations)
    w.declare("munmap", "declare i32 @munmap(ptr, i64)")
    w.require_pointers([("%weights", ALIGNMENT)])
    w.require(w.equal("i32", w.value("call i32 @munmap(ptr %weights, i64 %size)"), "0"), "ERROR_FILE")
    return w.function(plan.symbol("close_weights"), [("ptr", "%weights"), ("i64", "%size")])


def _set_threads(plan: LibraryPlan, declarations: Declarations) -> Function:
    w = GuardedWriter(declarations)
    w.require_context(plan.magic)
    w.within("%count", 1, MAX_THREADS, "ERROR_THREADS")
    w.store("i64", "%count", w.offset("%net", COUNT))
    return w.function(plan.symbol("set_threads"), [_NET, ("i64", "%count")])


def _forget_threads(plan: LibraryPlan, declarations: Declarations) -> Function:
    w = GuardedWriter(declarations)
    w.declare("reset", f"declare hidden void @{plan.inner(RESET)}()")
    w.do(f"call void @{plan.inner(RESET)}()")
    return w.function(plan.symbol("forget_threads"), [])


_Write = Callable[[LibraryPlan, Declarations], Function]
_ALWAYS: tuple[_Write, ...] = (_init, _reset_state, _save_state, _load_state)
_BESIDE: tuple[_Write, ...] = (_open_weights, _close_weights)
_THREADED: tuple[_Write, ...] = (_set_threads, _forget_threads)


# ---- entries


def _name(plan: LibraryPlan, entry: EntryPlan, number: int, role: str) -> str:
    """Return the symbol of an internal function of the program of this number."""
    return plan.inner("_".join([entry.name, *([str(number)] if len(plan.targets) > 1 else []), role]))


def _dim_parameters(entry: EntryPlan) -> list[Parameter]:
    return [("i64", register_of(d)) for d in entry.dims]


def _entry_functions(plan: LibraryPlan, entry: EntryPlan, declarations: Declarations) -> list[Function]:
    functions, numbers = list[Function](), range(len(plan.targets))
    if entry.dims:
        functions += [_sizes(plan, entry, number, declarations) for number in numbers]
    functions.append(_arena_size(plan, entry))
    if len(plan.targets) == 1:
        return [*functions, _run(plan, entry, 0, declarations)]
    return [*functions, *(_run(plan, entry, number, declarations) for number in numbers), _choose(plan, entry)]


def _sizes(plan: LibraryPlan, entry: EntryPlan, number: int, declarations: Declarations) -> Function:
    """Emit the function that checks a call's sizes and computes the program's dimensions and the bytes of its arena."""
    w, program = GuardedWriter(declarations), entry.programs[number]
    for dimension in entry.dims:
        w.within(register_of(dimension), dimension.low, dimension.high, "ERROR_SIZE")
    for assumed in program.assumptions:
        w.safe(assumed.a)
        w.safe(assumed.b)
        relation = {"==": "eq", "<=": "sle"}[assumed.relation]
        holds = w.value(f"icmp {relation} i64 {w.size(assumed.a)}, {w.size(assumed.b)}")
        w.require(w.equal("i1", holds, "true" if assumed.answer else "false"), "ERROR_SIZE")
    model_dims = {d.name for d in entry.dims}
    for step in program.solved:
        register = register_of(step.dimension)
        if step.dimension.name not in model_dims:
            rest = w.value(f"sub i64 {w.size(step.size)}, {w.size(step.rest)}")
            remainder = w.value(f"srem i64 {rest}, {step.factor}")
            w.require(w.equal("i64", remainder, "0"), "ERROR_SIZE")
            w.do(f"{register} = sdiv i64 {rest}, {step.factor}")
        w.within(register, step.dimension.low, step.dimension.high, "ERROR_SIZE")
    for pair in program.equal:
        w.require(w.equal("i64", w.size(pair.of_model), w.size(pair.of_program)), "ERROR_SIZE")
    w.safe(program.arena)
    dims = program.manifest.dims
    for place, value in enumerate([*map(register_of, dims), w.size(program.arena)]):
        w.store("i64", value, w.offset("%words", 8 * place))
    parameters = [*_dim_parameters(entry), ("ptr", "%words")]
    return w.function(_name(plan, entry, number, "sizes"), parameters, local=True)


def _call_sizes(w: GuardedWriter, plan: LibraryPlan, entry: EntryPlan, number: int) -> tuple[str, str]:
    """Emit a call of ``_sizes``; return the registers of its status code and of the words it wrote."""
    words = w.room(f"[{len(entry.programs[number].manifest.dims) + 1} x i64]", 8)
    arguments = ", ".join([*(f"i64 {register_of(d)}" for d in entry.dims), f"ptr {words}"])
    return w.call(CODE, f"@{_name(plan, entry, number, 'sizes')}", arguments), words


def _arena_size(plan: LibraryPlan, entry: EntryPlan) -> Function:
    """Emit the function that returns the size of an arena, enough for the program of any machine."""
    w = GuardedWriter({"umax": "declare i64 @llvm.umax.i64(i64, i64)"})
    if not entry.dims:
        w.give("i64", str(entry.arena))
    else:
        most = "0"
        for number, program in enumerate(entry.programs):
            code, words = _call_sizes(w, plan, entry, number)
            w.need(w.equal("i32", code, "0"), "bad")
            arena = w.load("i64", w.offset(words, 8 * len(program.manifest.dims)))
            most = w.value(f"call i64 @llvm.umax.i64(i64 {most}, i64 {arena})") if number else arena
        w.give("i64", most)
        w.label("bad")
        w.give("i64", "-1")
    name = plan.symbol(f"{entry.name}_arena_size")
    return Function(name, tuple(_dim_parameters(entry)), w.body, "i64", local=False, calls=True)


def _parameters(entry: EntryPlan) -> list[Parameter]:
    """Return the parameters of the function that runs an entry."""
    arrays: list[Parameter] = [("ptr", f"%a{number}") for number in range(len(entry.arguments))]
    return [_NET, *_dim_parameters(entry), *arrays, ("ptr", "%arena"), ("i64", "%arena_size")]


def _choose(plan: LibraryPlan, entry: EntryPlan) -> Function:
    """Emit the function that runs an entry by the program that ``init`` chose."""
    w = GuardedWriter({})
    w.require_context(plan.magic)
    version = w.load("i64", w.offset("%net", VERSION))
    arguments = ", ".join(f"{kind} {register}" for kind, register in _parameters(entry))
    names = [_name(plan, entry, number, "run") for number in range(len(plan.targets))]
    # NOTE: a proof follows calls, not the conditional jumps that calls at the end of a function may become.
    calls = [f"notail call {CODE} @{name}({arguments})" for name in names]
    for number, call in enumerate(calls[:-1]):
        w.need(w.equal("i64", version, str(number)), f"not{number}")
        w.give("i32", w.value(call))
        w.label(f"not{number}")
    w.require_none(w.value(calls[-1]))
    return w.function(plan.symbol(entry.name), _parameters(entry))


def _run(plan: LibraryPlan, entry: EntryPlan, number: int, declarations: Declarations) -> Function:
    """Emit the function that runs a program of an entry: check the arguments, fill the table of addresses, call the
    native entry."""
    w, program, alone = GuardedWriter(declarations), entry.programs[number], len(plan.targets) == 1
    if alone:
        w.require_context(plan.magic)
    arena, words = str(program.arena), ""
    if entry.dims:
        code, words = _call_sizes(w, plan, entry, number)
        w.require_none(code)
        arena = w.load("i64", w.offset(words, 8 * len(program.manifest.dims)))
    registers = [f"%a{number}" for number in range(len(entry.arguments))]
    pointers = [(r, a.itemsize) for r, a in zip(registers, entry.arguments, strict=True)]
    scratch = [("%arena", ALIGNMENT)] if is_size(program.arena) or program.arena else []
    w.require_pointers([*pointers, *scratch])
    w.require(w.value(f"icmp uge i64 %arena_size, {arena}"), "ERROR_MEMORY")
    slots = program.slots[: len(registers)]
    _fill(w, plan, entry, program, dict(zip(slots, registers, strict=True)) | {program.arena_slot: "%arena"}, words)
    w.do(f"call void @{program.symbol}(ptr %table)")
    if program.status_slot >= 0:
        w.require(w.equal("i8", w.load("i8", "%status"), "0"), "ERROR_INDEX")
    name = plan.symbol(entry.name) if alone else _name(plan, entry, number, "run")
    return w.function(name, _parameters(entry), local=not alone)


def _fill(
    w: GuardedWriter, plan: LibraryPlan, entry: EntryPlan, program: ProgramPlan, addresses: dict[int, str], words: str
) -> None:
    """Emit stores to the table of the native entry; ``addresses`` maps slots to addresses computed earlier."""
    w.room(f"[{program.words} x i64]", 16, "%table")
    weights = f"@{plan.inner('weights')}"
    if plan.is_beside and program.constants:
        weights = w.load("ptr", w.offset("%net", WEIGHTS))
    for slot, offset in program.constants:
        addresses[slot] = w.offset(weights, offset)
    for slot, offset in program.states:
        addresses[slot] = w.offset("%net", offset)
    for slot, argument in zip(program.slots[len(entry.arguments) :], entry.numbers, strict=True):
        address = addresses[slot] = w.room("i64", 8)
        w.store("i64", w.size(argument.spec.equals), address)
    if program.status_slot >= 0:
        w.room("i8", 1, "%status")
        w.store("i8", "0", "%status")
        addresses[program.status_slot] = "%status"
    if program.threaded:
        addresses[program.words - 1] = w.offset("%net", RECORD)
    for slot, address in sorted(addresses.items()):
        w.store("ptr", address, w.offset("%table", 8 * slot))
    for number in range(len(program.manifest.dims)):
        size = w.load("i64", w.offset(words, 8 * number))
        w.store("i64", size, w.offset("%table", 8 * (program.arena_slot + 1 + number)))
