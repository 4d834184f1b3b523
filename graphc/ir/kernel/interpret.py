"""Reference interpreter of kernels and programs: slow and exact, every access checked, no iteration reordered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from graphc.base.dtypes import DType, element
from graphc.base.errors import ArgumentError, IndexRangeError
from graphc.ir.kernel.index import Axis, Div, Dynamic, Index
from graphc.ir.kernel.products import FACTORS, fused_products
from graphc.ir.kernel.repeat import executions, position
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import (
    OWN_ROLES,
    Acc,
    Barrier,
    Buffer,
    Call,
    Const,
    Guard,
    IndexLet,
    Kernel,
    Let,
    Load,
    Loop,
    Prefetch,
    Program,
    Read,
    Ref,
    Stmt,
    Storage,
    Store,
    Update,
)
from graphc.ir.kernel.text import print_stmt

POISON = 0xA5
"""Byte that fills uninitialized memory: reads of it give numbers that no test expects."""


def run_kernel(kernel: Kernel, arrays: Mapping[str, np.ndarray], fused: bool = False) -> None:
    """Run a kernel on numpy arrays, one per argument buffer (by name); write ``out`` and ``inout`` ones in place.

    Arrays are C-contiguous with the buffer's element type and number of elements, in any shape. With ``fused`` an
    update with a product rounds once (see ir.kernel.products), as in strict order. Raises ArgumentError for other
    arrays and IndexRangeError for an access outside of a buffer.
    """
    names = {b.name for b in kernel.arguments}
    if names != set(arrays):
        raise ArgumentError(f"@{kernel.name} takes {sorted(names)}, got {sorted(arrays)}")
    flat = [_flat(kernel, b, arrays[b.name]) for b in kernel.arguments]
    if kernel.host >= 0:
        raise ArgumentError(f"@{kernel.name} is a Python function, which the text does not contain")
    flat.extend(_poisoned(b.dtype, b.size) for b in kernel.buffers if b.role in OWN_ROLES)
    with np.errstate(all="ignore"):
        _compiled(kernel, fused)(*flat)


def _flat(kernel: Kernel, buffer: Buffer, array: np.ndarray) -> np.ndarray:
    if array.dtype != buffer.dtype.numpy or array.size != buffer.size or not array.flags.c_contiguous:
        layout = "" if array.flags.c_contiguous else ", not contiguous"
        raise ArgumentError(
            f"@{kernel.name}: %{buffer.name} is {buffer.dtype}[{buffer.size}], got {array.dtype} {array.shape}{layout}"
        )
    return array.reshape(-1)


def _poisoned(dtype: DType, size: int) -> np.ndarray:
    raw = np.full(size * dtype.itemsize, 1 if dtype.kind == "b" else POISON, dtype=np.uint8)
    return raw.view(dtype.numpy)


def run_program(program: Program, arguments: Sequence[np.ndarray], fused: bool = False) -> tuple[np.ndarray, ...]:
    """Return the outputs of a program for its inputs, params and states in order.

    Inputs are unchanged; params and states that the program writes are changed in the caller's arrays. With a planned
    arena (offsets of temporaries are set), the temporaries share one array as planned. ``fused`` is that of
    ``run_kernel``. Raises IndexRangeError if
    checking calls set the status; params and states are unchanged then.
    """
    own = [s for s in program.storages if s.cls in ("input", "param", "state", "weight")]
    if len(own) != len(arguments):
        raise ArgumentError(f"@{program.name} takes {len(own)} arguments, got {len(arguments)}")
    arena = np.full(program.arena, POISON, dtype=np.uint8)
    memory: dict[str, np.ndarray] = {}
    for storage, array in zip(own, arguments, strict=True):
        type = storage.outside
        if array.shape != type.shape or array.dtype != type.dtype.numpy:
            raise ArgumentError(f"%{storage.name} is {type.dtype}{list(type.shape)}, got {array.dtype}{array.shape}")
        memory[storage.name] = _inside(storage, array.copy() if storage.cls == "input" else array)
    for storage in program.storages:
        _allocate(program, storage, memory, arena)
    kernels = {k.name: k for k in program.kernels}
    checked, rest = program.calls[: program.checked], program.calls[program.checked :]
    _run_calls(kernels, checked, memory, fused)
    if any(memory[s.name].any() for s in program.storages if s.cls == "status"):
        raise IndexRangeError(f"@{program.name}: a check fails")
    _run_calls(kernels, rest, memory, fused)
    return tuple(_outside(s, memory[s.name].copy()) for s in program.storages if s.cls == "output")


def _inside(storage: Storage, array: np.ndarray) -> np.ndarray:
    """Return the memory of an argument; a complex one is viewed as pairs."""
    if not storage.complex:
        return array
    if not array.flags.c_contiguous:
        raise ArgumentError(f"%{storage.name}: the array is not dense")
    return array.reshape(-1).view(storage.dtype.numpy).reshape(storage.shape)


def _outside(storage: Storage, array: np.ndarray) -> np.ndarray:
    """Return a result as callers see it."""
    type = storage.outside
    return array.reshape(-1).view(type.dtype.numpy).reshape(type.shape) if storage.complex else array


def _run_calls(
    kernels: Mapping[str, Kernel], calls: Sequence[Call], memory: Mapping[str, np.ndarray], fused: bool
) -> None:
    for call, at in executions(calls, lambda flag: bool(memory[flag])):
        kernel = kernels[call.kernel]
        arrays = {}
        for i, (buffer, name) in enumerate(zip(kernel.arguments, call.args, strict=True)):
            start = position(call.offset(i), at)
            arrays[buffer.name] = memory[name].reshape(-1)[start : start + buffer.size]
        run_kernel(kernel, arrays, fused)


def _allocate(program: Program, storage: Storage, memory: dict[str, np.ndarray], arena: np.ndarray) -> None:
    """Put the memory of a storage, and of the storages it aliases, into ``memory``."""
    chain = [storage]
    while chain[-1].alias and chain[-1].name not in memory:
        chain.append(program.storage(chain[-1].alias))
    for item in reversed(chain):
        if item.name in memory:
            continue
        if item.alias:
            raw = memory[item.alias].reshape(-1).view(np.uint8)[: item.nbytes]
            memory[item.name] = raw.view(item.dtype.numpy).reshape(item.shape)
        elif item.cls == "constant":
            memory[item.name] = np.ascontiguousarray(item.data).reshape(item.shape)
        elif item.cls == "status":
            memory[item.name] = np.zeros(item.shape, item.dtype.numpy)
        elif item.offset != -1:
            raw = arena[item.offset : item.offset + item.nbytes]
            memory[item.name] = raw.view(item.dtype.numpy).reshape(item.shape)
        else:
            memory[item.name] = _poisoned(item.dtype, item.size).reshape(item.shape)


# ---- kernels as Python functions


@lru_cache(maxsize=512)
def _compiled(kernel: Kernel, fused: bool) -> Callable[..., None]:
    return _Translator(kernel, fused).function()


_INFIX = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "weigh": "({} * {})",
    "neg": "(-{})",
    "eq": "({} == {})",
    "ne": "({} != {})",
    "lt": "({} < {})",
    "le": "({} <= {})",
    "gt": "({} > {})",
    "ge": "({} >= {})",
    "and": "({} & {})",
    "or": "({} | {})",
    "xor": "({} ^ {})",
    "not": "(~{})",
    "select": "({1} if {0} else {2})",
}
"""Operations for which operators on numpy scalars have the meaning of ir.kernel.scalar, much faster than ufuncs."""
_COMBINE = {"max": "maximum({}, {})", "min": "minimum({}, {})", "last": "{1}"}


class _Translator:
    """Translator of a kernel to one Python function over flat arrays; numpy scalars carry the exact element types."""

    def __init__(self, kernel: Kernel, fused: bool):
        self.kernel = kernel
        self.products = fused_products(kernel) if fused else {}
        self.buffers = {b.name: (f"b{i}", b) for i, b in enumerate(self._call_order())}
        self.names: dict[str, str] = {}
        self.defined = 0
        self.accs: dict[str, Acc] = {}
        self.env: dict[str, Any] = {"np": np, "maximum": np.maximum, "minimum": np.minimum}
        self.env.update(fail=self._fail, dynamic=self._dynamic)
        self.stmts: list[Stmt] = []
        self.lines: list[str] = []
        self.depth = 1

    def _call_order(self) -> list[Buffer]:
        return [*self.kernel.arguments, *(b for b in self.kernel.buffers if b.role in OWN_ROLES)]

    def function(self) -> Callable[..., None]:
        """Return the compiled function; it takes arguments, then scratch buffers."""
        self._body(self.kernel.body)
        head = f"def run({', '.join(name for name, _ in self.buffers.values())}):"
        source = "\n".join([head, "    pass", *self.lines])
        exec(compile(source, f"<kernel @{self.kernel.name}>", "exec"), self.env)
        return self.env["run"]

    def _line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def _body(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self.stmts.append(stmt)
            _TRANSLATE[type(stmt)](self, stmt)

    # ---- run-time checks

    def _fail(self, number: int, value: int) -> NoReturn:
        stmt = self.stmts[number]
        assert isinstance(stmt, (Load, Store)), stmt
        what = f"index {stmt.index} is {value}, %{stmt.buffer} has {self.kernel.buffer(stmt.buffer).size} elements"
        raise IndexRangeError(f"@{self.kernel.name}: {what}", where=print_stmt(stmt))

    def _dynamic(self, number: int, name: str, value: int, low: int, high: int) -> int:
        if not low <= value <= high:
            what = f"@{self.kernel.name}: {name} is {value}, outside of the promised {low}..{high}"
            raise IndexRangeError(what, where=print_stmt(self.stmts[number]))
        return value

    # ---- expressions

    def _define(self, name: str) -> str:
        self.defined += 1
        self.names[name] = f"s{self.defined}"
        return self.names[name]

    def _bind(self, value: Any) -> str:
        name = f"k{len(self.env)}"
        self.env[name] = value
        return name

    def _ref(self, ref: Ref) -> str:
        if isinstance(ref, Const):
            return self._bind(element(ref.value, ref.dtype))
        return self.names[ref]

    def _index(self, index: Index) -> str:
        summands = [str(index.constant)] if index.constant or not index.terms else []
        for atom, coefficient in index.terms:
            if isinstance(atom, Axis):
                text = self.names[atom.name]
            elif isinstance(atom, Dynamic):
                number = len(self.stmts) - 1
                text = f"dynamic({number}, {atom.name!r}, int({self.names[atom.name]}), {atom.low}, {atom.high})"
            else:
                sign = "//" if isinstance(atom, Div) else "%"
                text = f"({self._index(atom.operand)} {sign} {atom.divisor})"
            summands.append(text if coefficient == 1 else f"{coefficient} * {text}")
        return f"({' + '.join(summands)})"

    def _guard(self, guard: Guard) -> str:
        return " and ".join(f"{b.low} <= {self._index(b.index)} < {b.high}" for b in guard)

    def _combine(self, combine: str, old: str, new: str) -> str:
        return (_COMBINE.get(combine) or _INFIX[combine]).format(old, new)

    def _position(self, index: Index, size: int) -> None:
        self._line(f"p = {self._index(index)}")
        self._line(f"if not 0 <= p < {size}: fail({len(self.stmts) - 1}, p)")

    # ---- statements

    def let(self, stmt: Let) -> None:
        """Translate ``name = op(args)``."""
        args = [self._ref(a) for a in stmt.args]
        self._line(f"{self._define(stmt.name)} = {self._application(stmt, args)}")

    def _application(self, stmt: Let, args: list[str]) -> str:
        if stmt.op in _INFIX:
            return _INFIX[stmt.op].format(*args)
        op = SCALAR_OPS[stmt.op]
        extra = [self._bind(stmt.dtype)] if op.rule == "cast" else []
        return f"{self._bind(op.reference)}({', '.join([*args, *extra])})[()]"

    def index_let(self, stmt: IndexLet) -> None:
        """Translate ``name = index``."""
        text = self._index(stmt.index)
        self._line(f"{self._define(stmt.name)} = np.int64({text}).astype({self._bind(stmt.dtype.numpy)})")

    def load(self, stmt: Load) -> None:
        """Translate ``name = buffer[index]`` under its guard."""
        array, buffer = self.buffers[stmt.buffer]
        name = self._define(stmt.name)
        if stmt.guard:
            self._line(f"if {self._guard(stmt.guard)}:")
            self.depth += 1
        self._position(stmt.index, buffer.size)
        self._line(f"{name} = {array}[p]")
        if stmt.guard:
            self.depth -= 1
            self._line(f"else: {name} = {self._ref(stmt.other if stmt.other is not None else Const(0, stmt.dtype))}")

    def store(self, stmt: Store) -> None:
        """Translate ``buffer[index] = value`` under its guard."""
        array, buffer = self.buffers[stmt.buffer]
        if stmt.guard:
            self._line(f"if {self._guard(stmt.guard)}:")
            self.depth += 1
        self._position(stmt.index, buffer.size)
        value = self._ref(stmt.value)
        self._line(f"{array}[p] = {self._combine(stmt.combine, f'{array}[p]', value) if stmt.combine else value}")
        self.depth -= bool(stmt.guard)

    def acc(self, stmt: Acc) -> None:
        """Declare an accumulator."""
        init = self._ref(stmt.init)
        self.accs[stmt.name] = stmt
        self._line(f"{self._define(stmt.name)} = {init}")

    def update(self, stmt: Update) -> None:
        """Translate ``acc = combine(acc, value)``."""
        name = self.names[stmt.acc]
        product = self.products.get(stmt.value) if isinstance(stmt.value, str) else None
        if product is not None and product.op in FACTORS:
            factors = ", ".join(self._ref(x) for x in product.args)
            self._line(f"{name} = {self._bind(SCALAR_OPS['fma'].reference)}({factors}, {name})[()]")
            return
        self._line(f"{name} = {self._combine(self.accs[stmt.acc].combine, name, self._ref(stmt.value))}")

    def read(self, stmt: Read) -> None:
        """Translate ``name = acc``."""
        acc = self.names[stmt.acc]
        self._line(f"{self._define(stmt.name)} = {acc}")

    def prefetch(self, stmt: Prefetch) -> None:
        """Ignore the prefetch."""

    def barrier(self, stmt: Barrier) -> None:
        """Ignore the barrier: the interpreter runs threads one after the other."""

    def loop(self, stmt: Loop) -> None:
        """Translate a loop of any kind, in order."""
        until = f"min({stmt.axis.extent}, {self._ref(stmt.until)})" if stmt.until else f"{stmt.axis.extent}"
        self._line(f"for {self._define(stmt.axis.name)} in range({until}):")
        self.depth += 1
        self._line("pass")
        self._body(stmt.body)
        self.depth -= 1


_TRANSLATE: dict[type, Callable[[_Translator, Any], None]] = {
    Let: _Translator.let,
    IndexLet: _Translator.index_let,
    Load: _Translator.load,
    Store: _Translator.store,
    Acc: _Translator.acc,
    Update: _Translator.update,
    Read: _Translator.read,
    Prefetch: _Translator.prefetch,
    Barrier: _Translator.barrier,
    Loop: _Translator.loop,
}
