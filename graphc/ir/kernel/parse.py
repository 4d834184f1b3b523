"""Parser of the text of kernels and programs: the inverse of ir.kernel.text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from graphc.base.dtypes import DType, number_of
from graphc.base.sizes.named_dims import dimensions
from graphc.base.sizes.size import Dimension, is_size
from graphc.base.sizes.size_relations import at_most
from graphc.ir.kernel.index import Axis, Div, Dynamic, Index, Mod, as_index
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import (
    ARGUMENT_ROLES,
    COMBINES,
    LOOP_KINDS,
    OWN_ROLES,
    STORAGE,
    Acc,
    Barrier,
    Bound,
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
from graphc.ir.lexer import Cursor, Token

ROLES = (*ARGUMENT_ROLES, *OWN_ROLES)
GROUPS = ("block", "warp")
"""Groups of threads that can synchronize."""


def parse_kernel(text: str) -> Kernel:
    """Parse the text of ``print_kernel``, without verifying the kernel; raise ParseError with line and column."""
    reader = _Parser(Cursor(text, "#"))
    reader.cursor.declare_dims()
    kernel = reader.kernel()
    reader.cursor.expect_end()
    return kernel


def parse_program(text: str, data: Mapping[str, np.ndarray] | None = None) -> Program:
    """Parse the text of ``print_program``. ``data`` contains the arrays that the text names by digest."""
    reader = _Parser(Cursor(text, "#", data))
    reader.cursor.declare_dims()
    program = reader.program()
    reader.cursor.expect_end()
    return program


class _Parser:
    """Recursive-descent parser: one method per phrase of the grammar."""

    def __init__(self, cursor: Cursor):
        self.cursor = cursor
        self.axes: dict[str, Axis] = {}
        self.loops: set[str] = set()
        """Names of the loops around calls."""

    # ---- programs

    def program(self) -> Program:
        c = self.cursor
        c.expect("program")
        name = c.name("symbol", "the program's name, @name")
        arena = c.size() if c.accept("arena") else 0
        storages: list[Storage] = []
        kernels: list[Kernel] = []
        calls: list[Call] = []
        c.expect("{")
        while not c.at("}"):
            if c.at("kernel"):
                kernels.append(self.kernel())
            elif c.at("call", "repeat"):
                calls += self.calls(())
            elif c.at(*STORAGE):
                storages.append(self.storage())
            else:
                c.refuse_next("a storage, a kernel, a call, or '}'")
        c.expect("}")
        return Program(name, tuple(storages), tuple(kernels), tuple(calls), arena)

    def storage(self) -> Storage:
        c = self.cursor
        cls = c.take().text
        name = c.name("value", "the storage's name, %name")
        c.expect(":")
        type = c.tensor_type()
        path = c.string() if c.token.kind == "string" else ""
        alias = c.name("value", "the storage whose memory is used") if c.accept("alias") else ""
        offset = c.size() if c.accept("at") else -1
        is_complex = bool(c.accept("complex"))
        equals = c.size() if c.accept("equals") else None
        data = c.array() if c.accept("=") else None
        return Storage(name, type.dtype, type.shape, cls, path, data, alias, offset, equals, is_complex)

    def calls(self, around: tuple[Axis, ...]) -> list[Call]:
        """Read one call, or a loop around calls, inside the loops ``around``."""
        c = self.cursor
        if c.at("call"):
            return [self.call(around)]
        c.expect("repeat")
        name = c.expect_kind("word", "the name of a loop")
        c.expect("in")
        extent = c.size()
        axis = Axis(name.text, extent, c.name("value", "a storage, %name") if c.accept("while") else "")
        if name.text in self.loops:
            c.refuse(f"{name.text} is a loop already", name)
        self.loops.add(name.text)
        nested: list[Call] = []
        c.expect("{")
        while not c.at("}"):
            nested += self.calls((*around, axis))
        c.expect("}")
        return nested

    def call(self, around: tuple[Axis, ...]) -> Call:
        c = self.cursor
        c.expect("call")
        name = c.name("symbol", "the kernel's name, @name")
        self.axes = {axis.name: axis for axis in around}
        args = c.list_of(self.argument, "(", ")")
        partial = any(at is not None for _, at in args)
        offsets = tuple(at or Index() for _, at in args) if partial else ()
        sizes = self.given_sizes() if c.accept("with") else ()
        return Call(name, tuple(a for a, _ in args), loops=around, offsets=offsets, sizes=sizes)

    def given_sizes(self) -> tuple[tuple[Dimension, int], ...]:
        """Read ``rows = 7, columns = 2*batch``: the sizes of the kernel's dimensions."""
        c = self.cursor
        sizes: list[tuple[Dimension, int]] = []
        while not sizes or c.accept(","):
            name = c.token
            size = c.size()
            if not is_size(size) or name.text not in c.dims:
                c.refuse("expected the name of a dimension of the kernel", name)
            c.expect("=")
            sizes.append((dimensions([size])[name.text.strip("`")], c.size()))
        return tuple(sizes)

    def argument(self) -> tuple[str, Index | None]:
        c = self.cursor
        name = c.name("value", "a storage, %name")
        if not c.accept("["):
            return name, None
        offset = self.index()
        c.expect("]")
        return name, offset

    # ---- kernels

    def kernel(self) -> Kernel:
        c = self.cursor
        c.expect("kernel")
        name = c.name("symbol", "the kernel's name, @name")
        buffers = c.list_of(self.buffer, "(", ")")
        threads = c.integer() if c.accept("threads") else 0
        host = c.integer() if c.accept("host") else -1
        origin: list[str] = []
        if c.accept("from"):
            origin.append(c.string())
            while c.accept(","):
                origin.append(c.string())
        self.axes = {}
        return Kernel(name, tuple(buffers), self.body(), tuple(origin), threads, host)

    def buffer(self) -> Buffer:
        c = self.cursor
        name = c.name("value", "a buffer, %name")
        c.expect(":")
        dtype = c.dtype()
        c.expect("[")
        size = c.size()
        c.expect("]")
        return Buffer(name, dtype, size, c.expect(*ROLES).text)

    def body(self) -> tuple[Stmt, ...]:
        self.cursor.expect("{")
        stmts: list[Stmt] = []
        while not self.cursor.at("}"):
            stmts.append(self.stmt())
        self.cursor.expect("}")
        return tuple(stmts)

    def stmt(self) -> Stmt:
        c = self.cursor
        if c.token.kind != "word":
            c.refuse_next("a statement or '}'")
        readers = {
            "for": self.loop,
            "store": self.store,
            "acc": self.acc,
            "update": self.update,
            "prefetch": self.prefetch,
            "barrier": self.barrier,
        }
        return readers.get(c.token.text, self.definition)()

    def loop(self) -> Loop:
        c = self.cursor
        c.expect("for")
        name = c.expect_kind("word", "the name of an axis")
        c.expect("in")
        axis = Axis(name.text, c.size())
        if axis.name in self.axes:
            c.refuse(f"{axis.name} is an axis of an outer loop already", name)
        kind = c.expect(*LOOP_KINDS).text
        until = c.expect_kind("word", "the name of a scalar").text if c.accept("until") else ""
        self.axes[axis.name] = axis
        body = self.body()
        del self.axes[axis.name]
        return Loop(axis, kind, body, until)

    def store(self) -> Store:
        c = self.cursor
        c.expect("store")
        buffer, index = self.element()
        combine = c.expect(*COMBINES).text if c.token.kind == "word" else None
        c.expect("=")
        return Store(buffer, index, self.ref(), self.guard(), combine)

    def acc(self) -> Acc:
        c = self.cursor
        c.expect("acc")
        name = self.accumulator()
        c.expect(":")
        dtype = c.dtype()
        c.expect("=")
        combine = c.expect(*COMBINES).text
        return Acc(name, dtype, combine, self.ref())

    def update(self) -> Update:
        self.cursor.expect("update")
        acc = self.accumulator()
        self.cursor.expect("with")
        return Update(acc, self.ref())

    def prefetch(self) -> Prefetch:
        self.cursor.expect("prefetch")
        return Prefetch(*self.element())

    def barrier(self) -> Barrier:
        self.cursor.expect("barrier")
        return Barrier(self.cursor.expect(*GROUPS).text)

    def definition(self) -> Stmt:
        c = self.cursor
        name = c.take()
        if not c.accept(":"):
            c.expect("=")
            c.expect("read")
            acc = self.accumulator()
            return Read(name.text, acc, c.expect(*GROUPS).text if c.accept("over") else "")
        dtype = c.dtype()
        c.expect("=")
        if c.accept("index"):
            return IndexLet(name.text, self.index(), dtype)
        return self.load(name.text, dtype) if c.accept("load") else self.let(name.text, dtype)

    def load(self, name: str, dtype: DType) -> Load:
        buffer, index = self.element()
        guard = self.guard()
        other = self.const() if self.cursor.accept("else") else None
        return Load(name, buffer, index, dtype, guard, other)

    def let(self, name: str, dtype: DType) -> Let:
        op = self.cursor.lookup(SCALAR_OPS, "a scalar operation")
        return Let(name, op.name, tuple(self.cursor.list_of(self.ref, "(", ")")), dtype)

    def ref(self) -> Ref:
        c = self.cursor
        if c.token.kind != "word":
            c.refuse_next("a scalar")
        return self.const() if c.peek().text == "(" else c.take().text

    def const(self) -> Const:
        value, dtype = self.cursor.scalar()
        return Const(number_of(value), dtype)

    def accumulator(self) -> str:
        return self.cursor.expect_kind("word", "the name of an accumulator").text

    def element(self) -> tuple[str, Index]:
        c = self.cursor
        buffer = c.name("value", "a buffer, %name")
        c.expect("[")
        index = self.index()
        c.expect("]")
        return buffer, index

    def guard(self) -> Guard:
        bounds: list[Bound] = []
        if self.cursor.accept("if"):
            bounds.append(self.bound())
            while self.cursor.accept("and"):
                bounds.append(self.bound())
        return tuple(bounds)

    def bound(self) -> Bound:
        c = self.cursor
        low = c.size()
        c.expect("<=")
        index = self.index()
        c.expect("<")
        return Bound(index, low, c.size())

    # ---- index expressions

    def index(self) -> Index:
        c = self.cursor
        result = self.product()
        while c.at("+", "-"):
            sign = -1 if c.take().text == "-" else 1
            result = result + self.product() * sign
        return result

    def product(self) -> Index:
        c = self.cursor
        result = self.primary()
        while c.at("*", "//", "%"):
            operation, token = c.take().text, c.token
            right = self.primary()
            if operation == "*" and result.is_constant:
                result = right * result.constant
            elif not right.is_constant or (operation != "*" and at_most(right.constant, 0)):
                c.refuse(f"expected a{'' if operation == '*' else ' positive'} number after {operation}", token)
            elif operation == "*":
                result = result * right.constant
            else:
                result = self.quotient(operation, result, right.constant)
        return result

    def quotient(self, operation: str, index: Index, divisor: int) -> Index:
        """Return the quotient or remainder as written; a quotient of sizes is a size."""
        if index.is_constant and operation == "//" and (is_size(index.constant) or is_size(divisor)):
            return as_index(index.constant // divisor)
        return Index((((Div if operation == "//" else Mod)(index, divisor), 1),))

    def primary(self) -> Index:
        c = self.cursor
        if c.accept("-"):
            return self.primary() * -1
        if c.token.kind == "number":
            return as_index(c.integer())
        if c.accept("("):
            result = self.index()
            c.expect(")")
            return result
        if c.at("max") and c.peek().text == "(":
            return as_index(c.factor())
        if c.accept("["):
            return self.dynamic()
        if c.token.kind not in ("word", "quoted"):
            c.refuse_next("an axis, a number, '(' or '['")
        if c.token.text in c.dims and c.token.text not in self.axes:
            return as_index(c.dims[c.take().text])
        return Index(((self.axis(c.take()), 1),))

    def dynamic(self) -> Index:
        c = self.cursor
        name = c.expect_kind("word", "an integer scalar").text
        c.expect(":")
        low = c.size()
        c.expect("..")
        high = c.size()
        c.expect("]")
        return Index(((Dynamic(name, low, high), 1),))

    def axis(self, token: Token) -> Axis:
        if token.text not in self.axes:
            names = ", ".join(self.axes) or "none"
            self.cursor.refuse(f"{token.text} is not an axis of an enclosing loop (axes: {names})", token)
        return self.axes[token.text]
