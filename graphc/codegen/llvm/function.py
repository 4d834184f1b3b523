"""Writer of one LLVM function: blocks, loop scopes with preheaders, values per unrolled copy and lane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from graphc.base.dtypes import DType
from graphc.base.errors import CompileError
from graphc.base.records import dataclass
from graphc.base.sizes.size import bounds
from graphc.codegen.llvm.module import Function, Item
from graphc.codegen.llvm.scalar import register_type, splat_literal
from graphc.codegen.llvm.sizes import SizeWriter
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.statements import Const

Coordinates = dict[Axis, int]
"""Copy of the unrolled axes."""


@dataclass
class LaneValue:
    """SSA scalar of the kernel in LLVM: one register per copy of the unrolled axes it depends on."""

    dtype: DType
    axes: tuple[Axis, ...]
    """Unrolled axes it depends on."""
    lanes: int
    """0 for a scalar, else the number of lanes of the vector."""
    registers: dict[tuple[int, ...], str] = field(default_factory=dict)
    """Register by coordinates along ``axes``."""
    depth: int = 0
    """Loop depth at which it is defined."""
    make: Callable[[Coordinates], str] | None = None
    """Emits the register of a copy at its first use, if copies are not emitted together."""

    def register(self, at: Coordinates) -> str:
        """Return the register of a copy."""
        key = tuple(at[a] for a in self.axes)
        if key not in self.registers and self.make is not None:
            self.registers[key] = self.make(dict(zip(self.axes, key, strict=True)))
        return self.registers[key]


@dataclass
class Scope:
    """An open run-time loop (the function body is the outermost scope)."""

    axis: Axis | None
    register: str
    """Name of the loop counter."""
    preheader: list[str | list]
    """Lines before the loop, in the scope outside."""
    keys: list[object] = field(default_factory=list)
    """Keys of the registers that were computed in this scope."""


@dataclass
class OpenLoop:
    """Run-time loop before its end is written."""

    before: str
    """Label of the block that enters the loop."""
    header: str
    counter: str
    end: str
    """Register or literal of the number of iterations, or of the end of a subrange."""
    slots: list[str | list] = field(default_factory=list)
    """The phi lines, each completed at the end; they come before all others of the header."""
    leave: str = ""
    """Label of the block after a loop that may run zero times, else empty."""
    once: bool = False
    """Whether it runs at most once."""
    kind: str = "i64"
    """LLVM type of the counter."""
    initial: list[tuple[str, str]] = field(default_factory=list)
    """(type, register or literal before the loop) of the carried values."""


class FunctionWriter:
    """Collects the lines of one function. Line lists may hold nested lists (preheaders), flattened at the end."""

    def __init__(self, declarations: dict[str, Item], word_bits: int = 64):
        self.declarations = declarations
        self.calls = False
        """Whether it calls functions that were added to the module for it."""
        self.sizes = SizeWriter(self.declare, word_bits)
        self.lines: list[str | list] = [self.sizes.lines]
        self.scopes: list[Scope] = [Scope(None, "", self.lines)]
        self.block = "entry"
        self._count = 0
        self._registers: dict[object, tuple[int, str]] = {}
        """Registers already computed in open scopes, with the least loop depth, by key."""

    @property
    def depth(self) -> int:
        """Number of open run-time loops."""
        return len(self.scopes) - 1

    def depth_of(self, axis: Axis) -> int:
        """Return the depth of the outermost open loop over an axis. Raises CompileError if there is none."""
        for depth, scope in enumerate(self.scopes):
            if scope.axis is axis or (scope.axis is not None and scope.axis.name == axis.name and scope.axis == axis):
                return depth
        raise CompileError(f"axis {axis} is not open")

    def name(self, prefix: str = "%t") -> str:
        """Return a fresh register or label name."""
        self._count += 1
        return f"{prefix}{self._count}"

    def line(self, expression: str) -> str:
        """Append ``%t = expression``; return the register."""
        register = self.name()
        self.lines.append(f"  {register} = {expression}")
        return register

    def statement(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    def declare(self, name: str, item: Item) -> None:
        """Add a called function, or the declaration of an external one, to the module."""
        self.declarations[name] = item
        self.calls = self.calls or isinstance(item, Function)

    def memo(self, depth: int, key: object, expression: str) -> str:
        """Return ``expression`` computed once at loop depth ``depth`` (where its operands must be available)."""
        known = self._registers.get(key)
        if known is not None and known[0] <= depth:
            return known[1]
        return self._remember(depth, key, self.at_depth(depth, expression))

    def _remember(self, depth: int, key: object, register: str) -> str:
        self._registers[key] = depth, register
        self.scopes[depth].keys.append(key)
        return register

    def at_depth(self, depth: int, expression: str) -> str:
        """Append ``%t = expression`` at loop depth ``depth``, before the open loop inside; return the register."""
        if depth >= self.depth:
            return self.line(expression)
        register = self.name()
        self.scopes[depth + 1].preheader.append(f"  {register} = {expression}")
        return register

    def splat(self, register: str, dtype: DType, lanes: int) -> str:
        """Return a scalar register in every lane of a vector; shared within the scope."""
        key = ("splat", register, dtype.name, lanes)  # a register may be a literal
        known = self._registers.get(key)
        if known is not None:
            return known[1]
        element, vector = register_type(dtype), register_type(dtype, lanes)
        first = self.line(f"insertelement {vector} poison, {element} {register}, i64 0")
        result = self.line(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")
        return self._remember(self.depth, key, result)

    def widen(self, value: LaneValue | Const, at: Coordinates, lanes: int) -> str:
        """Return the register of ``value`` for one copy, splat if ``lanes`` asks for a vector and it is a scalar."""
        if isinstance(value, Const):
            return splat_literal(value, lanes)
        register = value.register(at)
        if lanes and not value.lanes:
            return self.splat(register, value.dtype, lanes)
        if value.lanes != lanes:
            raise CompileError(f"a vector of {value.lanes} lanes meets one of {lanes}")
        return register

    # ---- loops

    def narrowed(self, register: str, kind: str) -> str:
        """Return an i64 register or literal, which fits, as one of type ``kind``."""
        is_same = kind == "i64" or not register.startswith("%")
        return register if is_same else self.line(f"trunc i64 {register} to {kind}")

    def widened(self, register: str, kind: str) -> str:
        """Return a register of type ``kind``, whose number is not negative, as i64."""
        return register if kind == "i64" else self.line(f"zext {kind} {register} to i64")

    def open_loop(self, axis: Axis, start: str = "0", end: str = "") -> OpenLoop:
        """Start a run-time loop; add phis right after with ``phi``. With registers ``start`` and ``end`` it runs over
        that subrange of the axis, which may be empty."""
        low, high = bounds(axis.extent)
        is_subrange = bool(end)
        end = end or self.sizes.value(axis.extent)
        preheader: list[str | list] = []
        self.lines.append(preheader)
        once = not is_subrange and low < high == 1
        kind = self.sizes.type_of(0, high) if start == "0" else "i64"
        label, counter = self.name("L"), "0" if once else self.name("%i")
        loop = OpenLoop(self.block, label, counter, self.narrowed(end, kind), once=once, kind=kind)
        if is_subrange or low < 1:
            loop.leave = self.name("L")
            some = self.line(f"icmp ult {kind} {start}, {loop.end}")
            self.lines.append(f"  br i1 {some}, label %{loop.header}, label %{loop.leave}")
        else:
            self.lines.append(f"  br label %{loop.header}")
        self.lines.append(f"{loop.header}:")
        self.scopes.append(Scope(axis, loop.counter, preheader))
        self.block = loop.header
        self.lines.append(loop.slots)
        if not once:
            self._slot(loop, kind, start, loop.counter)
            self.scopes[-1].register = self.widened(loop.counter, kind)
        if is_subrange and start != "0":
            # NOTE: "freeze" hides the induction variable. LLVM would take ten times as long for the addresses inside
            # if it knew where the loop starts.
            self.scopes[-1].register = self.line(f"freeze i64 {loop.counter}")
        return loop

    def _slot(self, loop: OpenLoop, kind: str, initial: str, register: str) -> None:
        loop.slots.append(f"  {register} = phi {kind} [ {initial}, %{loop.before} ], ")

    def phi(self, loop: OpenLoop, kind: str, initial: str) -> str:
        """Return a value carried around an open loop. ``close_loop`` gets the next values in the order of these
        calls."""
        loop.initial.append((kind, initial))
        if loop.once:
            return initial
        register = self.name()
        self._slot(loop, kind, initial, register)
        return register

    def close_loop(self, loop: OpenLoop, carried: list[str]) -> list[str]:
        """End the loop. ``carried`` are the next values of the phis added after ``open_loop``; return their values
        after the loop."""
        following = "" if loop.once else self.line(f"add nuw nsw {loop.kind} {loop.counter}, 1")
        condition = "" if loop.once else self.line(f"icmp ult {loop.kind} {following}, {loop.end}")
        leave, last = loop.leave or self.name("L"), self.block
        if loop.once:
            self.statement(f"br label %{leave}")
        else:
            self.statement(f"br i1 {condition}, label %{loop.header}, label %{leave}")
            for i, value in enumerate([following, *carried]):
                loop.slots[i] = f"{loop.slots[i]}[ {value}, %{last} ]"
        self.lines.append(f"{leave}:")
        depth = self.depth
        for key in self.scopes.pop().keys:
            if self._registers[key][0] == depth:  # else an outer loop has computed it since
                del self._registers[key]
        self.block = leave
        if not loop.leave:
            return carried
        values = zip(loop.initial, carried, strict=True)
        return [
            self.line(f"phi {kind} [ {initial}, %{loop.before} ], [ {value}, %{last} ]")
            for (kind, initial), value in values
        ]

    def text(self) -> str:
        """Return the finished body."""
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
