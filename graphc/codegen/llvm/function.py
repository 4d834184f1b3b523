"""Writer of one LLVM function: blocks, loop scopes with preheaders, values that vary over unrolled axes and lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from graphc.base.dtypes import DType
from graphc.base.errors import CompileError
from graphc.codegen.llvm.module import Function, Item
from graphc.codegen.llvm.scalar import register_type, splat_literal
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.statements import Const

Coordinates = dict[Axis, int]
"""Which copy of the unrolled axes is meant."""


@dataclass
class LaneValue:
    """An SSA scalar of the kernel as LLVM sees it: one register per copy of the unrolled axes it depends on."""

    dtype: DType
    axes: tuple[Axis, ...]
    """Unrolled axes it depends on."""
    lanes: int
    """0 for a scalar, else the number of lanes of the vector."""
    parts: dict[tuple[int, ...], str] = field(default_factory=dict)
    """Register by coordinates along ``axes``."""
    depth: int = 0
    """Loop depth at which it is defined."""
    make: Callable[[Coordinates], str] | None = None
    """Emits the register of a copy that is asked for the first time, where not all were emitted together."""

    def part(self, at: Coordinates) -> str:
        """The register for the given copy."""
        key = tuple(at[a] for a in self.axes)
        if key not in self.parts and self.make is not None:
            self.parts[key] = self.make(dict(zip(self.axes, key, strict=True)))
        return self.parts[key]


@dataclass
class Scope:
    """A run-time loop that is open (the function body is the outermost one)."""

    axis: Axis | None
    register: str
    """Name of the loop counter."""
    preheader: list[str | list]
    """Lines that run before the loop is entered, in the scope outside."""
    known: dict = field(default_factory=dict)
    """Registers already computed in this scope, by what they hold."""


@dataclass
class OpenLoop:
    """A run-time loop whose end has not been written yet."""

    before: str
    """Label of the block that enters the loop."""
    header: str
    counter: str
    slots: list[list[str | list]]
    """The phi lines, completed at the end."""
    end: str = ""
    """Register with the end of a loop over a part of its axis, else empty."""
    leave: str = ""
    """Label of the block after such a loop."""


class FunctionWriter:
    """Collects the lines of one function. Line lists may hold nested lists (preheaders), flattened at the end."""

    def __init__(self, declarations: dict[str, Item]):
        self.declarations = declarations
        self.calls = False
        """Whether it calls functions that are in the module for it."""
        self.lines: list[str | list] = []
        self.scopes: list[Scope] = [Scope(None, "", self.lines)]
        self.block = "entry"
        self._count = 0

    @property
    def depth(self) -> int:
        """How many run-time loops are open."""
        return len(self.scopes) - 1

    def name(self, prefix: str = "%t") -> str:
        """A fresh register or label name."""
        self._count += 1
        return f"{prefix}{self._count}"

    def line(self, expression: str) -> str:
        """Appends ``%t = expression`` at the current place; returns the register."""
        register = self.name()
        self.lines.append(f"  {register} = {expression}")
        return register

    def statement(self, text: str) -> None:
        """Appends an instruction without a result."""
        self.lines.append(f"  {text}")

    def declare(self, name: str, item: Item) -> None:
        """Makes sure that what it calls is in the module: a function, or the declaration of an external one."""
        self.declarations[name] = item
        self.calls = self.calls or isinstance(item, Function)

    def memo(self, depth: int, key: object, expression: str) -> str:
        """``expression`` computed once at loop depth ``depth`` (its operands must be available there)."""
        for scope in self.scopes[: depth + 1]:
            if key in scope.known:
                return scope.known[key]
        register = self.at_depth(depth, expression)
        self.scopes[depth].known[key] = register
        return register

    def at_depth(self, depth: int, expression: str) -> str:
        """Appends ``%t = expression`` so that it runs at loop depth ``depth``, before the loop inside that is open."""
        if depth >= self.depth:
            return self.line(expression)
        register = self.name()
        self.scopes[depth + 1].preheader.append(f"  {register} = {expression}")
        return register

    def splat(self, register: str, dtype: DType, lanes: int) -> str:
        """A scalar register in every lane of a vector; shared within the scope."""
        key = ("splat", register, dtype.name, lanes)  # a register may be a literal
        for scope in self.scopes:
            if key in scope.known:
                return scope.known[key]
        element, vector = register_type(dtype), register_type(dtype, lanes)
        first = self.line(f"insertelement {vector} poison, {element} {register}, i64 0")
        result = self.line(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")
        self.scopes[-1].known[key] = result
        return result

    def widen(self, value: LaneValue | Const, at: Coordinates, lanes: int) -> str:
        """The register of ``value`` for one copy, splat when ``lanes`` asks for a vector and it is a scalar."""
        if isinstance(value, Const):
            return splat_literal(value, lanes)
        register = value.part(at)
        if lanes and not value.lanes:
            return self.splat(register, value.dtype, lanes)
        if value.lanes != lanes:
            raise CompileError(f"a vector of {value.lanes} lanes meets one of {lanes}")
        return register

    # ---- loops

    def open_loop(self, axis: Axis, start: str = "0", end: str = "") -> OpenLoop:
        """Starts a run-time loop; phis may be added right after with ``phi``. With registers ``start`` and ``end`` it
        runs over that part of the axis, which may be empty, and carries no other phis."""
        preheader: list[str | list] = []
        self.lines.append(preheader)
        before, header, counter = self.block, self.name("L"), self.name("%i")
        leave = self.name("L") if end else ""
        if end:
            some = self.line(f"icmp ult i64 {start}, {end}")
            self.lines.append(f"  br i1 {some}, label %{header}, label %{leave}")
        else:
            self.lines.append(f"  br label %{header}")
        self.lines.append(f"{header}:")
        self.scopes.append(Scope(axis, counter, preheader))
        self.block = header
        loop = OpenLoop(before, header, counter, [], end, leave)
        self.phi(loop, "i64", start, counter)
        if end:
            # NOTE: "freeze" hides that the counter counts. LLVM would take ten times as long for the addresses inside
            # if it took into account where the loop starts.
            self.scopes[-1].register = self.line(f"freeze i64 {counter}")
        return loop

    def phi(self, loop: OpenLoop, kind: str, initial: str, register: str = "") -> str:
        """A value carried around an open loop; ``close_loop`` supplies the next value in the order of the calls."""
        register = register or self.name()
        slot: list[str | list] = [f"  {register} = phi {kind} [ {initial}, %{loop.before} ], "]
        loop.slots.append(slot)
        self.lines.append(slot)
        return register

    def close_loop(self, loop: OpenLoop, extent: int, carried: list[str]) -> None:
        """Ends the loop; ``carried`` are the next values of the phis added after ``open_loop``."""
        following = self.line(f"add nuw nsw i64 {loop.counter}, 1")
        condition = self.line(f"icmp ult i64 {following}, {loop.end or extent}")
        leave = loop.leave or self.name("L")
        self.statement(f"br i1 {condition}, label %{loop.header}, label %{leave}")
        self.lines.append(f"{leave}:")
        for slot, value in zip(loop.slots, [following, *carried], strict=True):
            slot[0] = f"{slot[0]}[ {value}, %{self.block} ]"
        self.scopes.pop()
        self.block = leave

    def text(self) -> str:
        """The finished body."""
        return "\n".join(_flatten(self.lines))


def _flatten(lines: list) -> list[str]:
    flat: list[str] = []
    stack = [iter(lines)]
    while stack:
        for item in stack[-1]:
            if isinstance(item, list):
                stack.append(iter(item))
                break
            flat.append(item)
        else:
            stack.pop()
    return flat
