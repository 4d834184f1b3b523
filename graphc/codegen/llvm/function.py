"""Writer of one LLVM function: blocks, loop scopes with preheaders, values that vary over unrolled axes and lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from graphc.base.dtypes import DType
from graphc.base.errors import CompileError
from graphc.base.sizes.size import bounds
from graphc.codegen.llvm.module import Function, Item
from graphc.codegen.llvm.scalar import register_type, splat_literal
from graphc.codegen.llvm.sizes import SizeWriter
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
    end: str
    """Register or literal of the number of iterations, or of the end of a part of them."""
    slots: list[list[str | list]] = field(default_factory=list)
    """The phi lines, completed at the end."""
    leave: str = ""
    """Label of the block after a loop that may run no time at all, else empty."""
    once: bool = False
    """Whether it runs no more than once."""
    initial: list[tuple[str, str]] = field(default_factory=list)
    """(type, register or literal before the loop) of what it carries."""


class FunctionWriter:
    """Collects the lines of one function. Line lists may hold nested lists (preheaders), flattened at the end."""

    def __init__(self, declarations: dict[str, Item]):
        self.declarations = declarations
        self.calls = False
        """Whether it calls functions that are in the module for it."""
        self.sizes = SizeWriter(self.declare)
        self.lines: list[str | list] = [self.sizes.lines]
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
        runs over that part of the axis, which may be empty."""
        low, high = bounds(axis.extent)
        part = bool(end)
        end = end or self.sizes.value(axis.extent)
        preheader: list[str | list] = []
        self.lines.append(preheader)
        once = not part and low < high == 1
        loop = OpenLoop(self.block, self.name("L"), "0" if once else self.name("%i"), end, once=once)
        if part or low < 1:
            loop.leave = self.name("L")
            some = self.line(f"icmp ult i64 {start}, {end}")
            self.lines.append(f"  br i1 {some}, label %{loop.header}, label %{loop.leave}")
        else:
            self.lines.append(f"  br label %{loop.header}")
        self.lines.append(f"{loop.header}:")
        self.scopes.append(Scope(axis, loop.counter, preheader))
        self.block = loop.header
        if not once:
            self._slot(loop, "i64", start, loop.counter)
        if part and start != "0":
            # NOTE: "freeze" hides that the counter counts. LLVM would take ten times as long for the addresses inside
            # if it took into account where the loop starts.
            self.scopes[-1].register = self.line(f"freeze i64 {loop.counter}")
        return loop

    def _slot(self, loop: OpenLoop, kind: str, initial: str, register: str) -> None:
        slot: list[str | list] = [f"  {register} = phi {kind} [ {initial}, %{loop.before} ], "]
        loop.slots.append(slot)
        self.lines.append(slot)

    def phi(self, loop: OpenLoop, kind: str, initial: str) -> str:
        """A value carried around an open loop; ``close_loop`` supplies the next value in the order of the calls."""
        loop.initial.append((kind, initial))
        if loop.once:
            return initial
        register = self.name()
        self._slot(loop, kind, initial, register)
        return register

    def close_loop(self, loop: OpenLoop, carried: list[str]) -> list[str]:
        """Ends the loop; ``carried`` are the next values of the phis added after ``open_loop``. Returns what they are
        after the loop."""
        following = "" if loop.once else self.line(f"add nuw nsw i64 {loop.counter}, 1")
        condition = "" if loop.once else self.line(f"icmp ult i64 {following}, {loop.end}")
        leave, last = loop.leave or self.name("L"), self.block
        if loop.once:
            self.statement(f"br label %{leave}")
        else:
            self.statement(f"br i1 {condition}, label %{loop.header}, label %{leave}")
            for slot, value in zip(loop.slots, [following, *carried], strict=True):
                slot[0] = f"{slot[0]}[ {value}, %{last} ]"
        self.lines.append(f"{leave}:")
        self.scopes.pop()
        self.block = leave
        if not loop.leave:
            return carried
        values = zip(loop.initial, carried, strict=True)
        return [
            self.line(f"phi {kind} [ {initial}, %{loop.before} ], [ {value}, %{last} ]")
            for (kind, initial), value in values
        ]

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
