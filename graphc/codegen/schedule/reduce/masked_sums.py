"""Masked sums: stop reading large operands after the last unmasked element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphc.base.dtypes import bool_, float32, int32, int64
from graphc.base.records import dataclass
from graphc.base.sizes.size import hint, is_size
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.contraction.runs import column_runs
from graphc.codegen.schedule.loops.transform import block_index, wrap
from graphc.ir.kernel.access import UNIT, access
from graphc.ir.kernel.index import as_index, axes_of, bounds
from graphc.ir.kernel.map import BodyCopier, Names, scalars_read, substitute_axes
from graphc.ir.kernel.statements import (
    Acc,
    Const,
    IndexLet,
    Let,
    Load,
    Loop,
    Read,
    Ref,
    Stmt,
    Store,
    Update,
    identity,
    walk,
)

_LANE_KINDS = ("vector", "unroll")


def end_masked_sums(body: tuple[Stmt, ...], names: Names, target: Target) -> tuple[Stmt, ...]:
    """Return the statements of a register block of one row, with sums that end where only masked elements follow.

    Sums of products with weights (``weigh``) end after the last nonzero weight. Sums replaced by a mask, in all copies
    of the block at once, are not computed.
    """
    result: list[Stmt] = []
    for stmt in body:
        block = _block(stmt)
        if block is not None:
            result += _Ending(block, names, target).ended()
        elif isinstance(stmt, Loop) and stmt.kind not in _LANE_KINDS:
            inner = end_masked_sums(stmt.body, names, target)
            result.append(stmt if inner == stmt.body else replace(stmt, body=inner))
        else:
            result.append(stmt)
    return tuple(result)


@dataclass(frozen=True)
class _Block:
    """A register block: its statement, the loops over lanes and copies, and the sums inside."""

    stmt: Stmt
    around: tuple[Loop, ...]
    body: tuple[Stmt, ...]


def _block(stmt: Stmt) -> _Block | None:
    """Match a statement as a register block with sums; None for others."""
    around: list[Loop] = []
    body: tuple[Stmt, ...] = (stmt,)
    while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind in _LANE_KINDS:
        around.append(body[0])
        body = body[0].body
    sums = sum(isinstance(s, Acc) for s in body) == 1 and any(isinstance(s, Loop) for s in body)
    return _Block(stmt, tuple(around), body) if around and sums else None


@dataclass(frozen=True)
class _Ending:
    block: _Block
    names: Names
    target: Target

    def ended(self) -> tuple[Stmt, ...]:
        """Return the block with sums that end early, after statements that compute their end."""
        body = self.block.body
        loops = [s for s in body if isinstance(s, Loop)]
        if any(x.kind != "reduce" or x.until or is_size(x.axis.extent) or not self._reads_much(x) for x in loops):
            return (self.block.stmt,)
        before = self._last_weight(loops) or self._any_seen(loops)
        if not before:
            return (self.block.stmt,)
        assert isinstance(before[-1], Let)
        until = before[-1].name
        ended = tuple(replace(s, until=until) if isinstance(s, Loop) else s for s in body)
        return (*before, *wrap([(x.axis, x.kind) for x in self.block.around], ended))

    def _reads_much(self, loop: Loop) -> bool:
        """Check whether a sum reads more than L1 holds, for expected sizes."""
        loads = [s for s, _ in walk((loop,)) if isinstance(s, Load)]
        return any(hint(_span(s)) > self.target.l1_bytes for s in loads)

    # ---- weights

    def _last_weight(self, loops: Sequence[Loop]) -> tuple[Stmt, ...]:
        """Return statements that compute the index after the last nonzero weight, if the sum has one row of weights."""
        weights = self._weights(loops[0]) if len(loops) == 1 else None
        if weights is None:
            return ()
        axis, lanes = loops[0].axis, self.target.lanes(float32)
        pieces: list[Stmt] = []
        acc = self.names.scalar("n")
        for start, number, size in column_runs(axis.extent, lanes):
            step, lane = self.names.axis("o", number), self.names.axis("l", size)
            position = block_index(start, (step, size), (lane, 1))
            weight, nonzero, end = (self.names.scalar(x) for x in ("w", "c", "i"))
            statements: tuple[Stmt, ...] = (
                replace(weights, name=weight, index=substitute_axes(weights.index, {axis: position})),
                Let(nonzero, "ne", (weight, identity("add", weights.dtype)), bool_),
                IndexLet(end, position + 1, int32),
                *self._counted(acc, nonzero, end),
            )
            pieces += wrap([(step, "reduce"), (lane, "vector")], statements)
        return self._maximum(acc, pieces)

    def _weights(self, loop: Loop) -> Load | None:
        """Return the load of the weights of a sum, if it is contiguous and the same for all lanes and copies."""
        loads = {s.name: s for s in loop.body if isinstance(s, Load)}
        products = [s for s, _ in walk(loop.body) if isinstance(s, Let) and s.op == "weigh"]
        if len(products) != 1 or products[0] not in loop.body:
            return None
        weights = loads.get(str(products[0].args[0]))
        if weights is None or weights.guard or access(weights.index, loop.axis) != UNIT:
            return None
        return None if any(x.axis in axes_of(weights.index) for x in self.block.around) else weights

    # ---- selections

    def _any_seen(self, loops: Sequence[Loop]) -> tuple[Stmt, ...]:
        """Return statements that compute 0 if a mask replaces all sums of the block, else at least their step count."""
        match = _selection(self.block.body)
        needed = _definition(self.block.body, match[0].args[0]) if match is not None else None
        if match is None or needed is None:
            return ()
        selection, summed = match
        axes = {x.axis: self.names.axis(x.axis.name[0], x.axis.extent) for x in self.block.around}
        kinds = [(axes[x.axis], x.kind) for x in self.block.around]
        if all(kind == "unroll" for _, kind in kinds) and kinds[-1][0].extent <= self.target.lanes(float32):
            kinds[-1] = (kinds[-1][0], "vector")
        copier = BodyCopier(self.names, {old: as_index(new) for old, new in axes.items()})
        copied = copier.body(needed)
        steps, none = Const(max(x.axis.extent for x in loops), int32), Const(0, int32)
        condition = copier.name(selection.args[0])
        acc, number = self.names.scalar("n"), self.names.scalar("i")
        chosen = (steps, none) if selection.args[1] == summed else (none, steps)
        statements = (*copied, Let(number, "select", (condition, *chosen), int32), Update(acc, number))
        return self._maximum(acc, wrap(kinds, statements))

    # ---- both

    def _counted(self, acc: str, condition: str, number: str) -> tuple[Stmt, ...]:
        chosen = self.names.scalar("s")
        return Let(chosen, "select", (condition, number, Const(0, int32)), int32), Update(acc, chosen)

    def _maximum(self, acc: str, pieces: Sequence[Stmt]) -> tuple[Stmt, ...]:
        result, wide = self.names.scalar("r"), self.names.scalar("u")
        start = Acc(acc, int32, "max", Const(0, int32))
        return (start, *pieces, Read(result, acc), Let(wide, "cast", (result,), int64))


def _span(load: Load) -> int:
    """Return the bytes from the first to the last element of a load."""
    low, high = bounds(load.index)
    return (high - low + 1) * load.dtype.itemsize


def _selection(body: tuple[Stmt, ...]) -> tuple[Let, Ref] | None:
    """Return the only ``select`` through which the sums of a block are used, and its operand that depends on them.

    Returns None where the sums are used in another way.
    """
    dependent = {s.name for s in body if isinstance(s, Read)}
    selection: tuple[Let, Ref] | None = None
    for stmt in body:
        used = scalars_read(stmt) & dependent if not isinstance(stmt, Loop) else set()
        if not used:
            continue
        if not isinstance(stmt, Let):
            return None
        if stmt.op != "select" or stmt.args[0] in dependent:
            dependent.add(stmt.name)
        elif selection is not None or set(stmt.args[1:]) <= dependent:
            return None
        else:
            selection = stmt, next(x for x in stmt.args[1:] if x in dependent)
    return selection


def _definition(body: tuple[Stmt, ...], name: Ref) -> tuple[Stmt, ...] | None:
    """Return the statements of a block that compute a scalar; None where sums are among these."""
    needed, statements = {name}, []
    for stmt in reversed([s for s in body if not isinstance(s, Loop | Store | Update)]):
        if getattr(stmt, "name", None) in needed:
            if not isinstance(stmt, Load | Let | IndexLet):
                return None
            needed |= scalars_read(stmt)
            statements.append(stmt)
    return tuple(reversed(statements))
