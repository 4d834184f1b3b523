"""Masked sums: of large operands that a mask hides in part, what is hidden is not read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphc.base.dtypes import bool_, float32, int32, int64
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
    """The statements of a register block of one row, with sums that end where all that follows is hidden: those of
    products with weights (``weigh``) behind the last weight that is not 0, and those that a mask replaces in all copies
    of the block at once."""
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
    """Sums in all lanes and copies of a register block."""

    whole: Stmt
    around: tuple[Loop, ...]
    body: tuple[Stmt, ...]


def _block(stmt: Stmt) -> _Block | None:
    """The block that a statement is, if it is one with sums in it."""
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
        """The block, behind what finds out where its sums end."""
        body = self.block.body
        loops = [s for s in body if isinstance(s, Loop)]
        if any(x.kind != "reduce" or x.until or is_size(x.axis.extent) or not self._reads_much(x) for x in loops):
            return (self.block.whole,)
        before = self._last_weight(loops) or self._any_seen(loops)
        if not before:
            return (self.block.whole,)
        assert isinstance(before[-1], Let)
        until = before[-1].name
        ended = tuple(replace(s, until=until) if isinstance(s, Loop) else s for s in body)
        return (*before, *wrap([(x.axis, x.kind) for x in self.block.around], ended))

    def _reads_much(self, loop: Loop) -> bool:
        """Whether a sum reads memory that is not near, for the expected sizes."""
        loads = [s for s, _ in walk((loop,)) if isinstance(s, Load)]
        return any(hint(_span(s)) > self.target.l1_bytes for s in loads)

    # ---- weights

    def _last_weight(self, loops: Sequence[Loop]) -> tuple[Stmt, ...]:
        """What gives the place behind the last weight that is not 0, where one row of them lies along the sum."""
        weights = self._weights(loops[0]) if len(loops) == 1 else None
        if weights is None:
            return ()
        axis, lanes = loops[0].axis, self.target.lanes(float32)
        pieces: list[Stmt] = []
        acc = self.names.scalar("n")
        for start, number, size in column_runs(axis.extent, lanes):
            step, lane = self.names.axis("o", number), self.names.axis("l", size)
            place = block_index(start, (step, size), (lane, 1))
            found, seen, at = (self.names.scalar(x) for x in ("w", "c", "i"))
            one: tuple[Stmt, ...] = (
                replace(weights, name=found, index=substitute_axes(weights.index, {axis: place})),
                Let(seen, "ne", (found, identity("add", weights.dtype)), bool_),
                IndexLet(at, place + 1, int32),
                *self._counted(acc, seen, at),
            )
            pieces += wrap([(step, "reduce"), (lane, "vector")], one)
        return self._maximum(acc, pieces)

    def _weights(self, loop: Loop) -> Load | None:
        """The load of the weights of a sum."""
        loads = {s.name: s for s in loop.body if isinstance(s, Load)}
        products = [s for s, _ in walk(loop.body) if isinstance(s, Let) and s.op == "weigh"]
        if len(products) != 1 or products[0] not in loop.body:
            return None
        found = loads.get(str(products[0].args[0]))
        if found is None or found.guard or access(found.index, loop.axis) != UNIT:
            return None
        return None if any(x.axis in axes_of(found.index) for x in self.block.around) else found

    # ---- selections

    def _any_seen(self, loops: Sequence[Loop]) -> tuple[Stmt, ...]:
        """What gives 0 where a mask replaces the sums of the whole block, else at least the number of their steps."""
        found = _selection(self.block.body)
        needed = _made_of(self.block.body, found[0].args[0]) if found is not None else None
        if found is None or needed is None:
            return ()
        selection, summed = found
        axes = {x.axis: self.names.axis(x.axis.name[0], x.axis.extent) for x in self.block.around}
        kinds = [(axes[x.axis], x.kind) for x in self.block.around]
        if all(kind == "unroll" for _, kind in kinds) and kinds[-1][0].extent <= self.target.lanes(float32):
            kinds[-1] = (kinds[-1][0], "vector")
        copier = BodyCopier(self.names, {old: as_index(new) for old, new in axes.items()})
        copied = copier.body(needed)
        steps, none = Const(max(x.axis.extent for x in loops), int32), Const(0, int32)
        seen = copier.name(selection.args[0])
        acc, number = self.names.scalar("n"), self.names.scalar("i")
        chosen = (steps, none) if selection.args[1] == summed else (none, steps)
        one = (*copied, Let(number, "select", (seen, *chosen), int32), Update(acc, number))
        return self._maximum(acc, wrap(kinds, one))

    # ---- both

    def _counted(self, acc: str, seen: str, number: str) -> tuple[Stmt, ...]:
        chosen = self.names.scalar("s")
        return Let(chosen, "select", (seen, number, Const(0, int32)), int32), Update(acc, chosen)

    def _maximum(self, acc: str, pieces: Sequence[Stmt]) -> tuple[Stmt, ...]:
        found, wide = self.names.scalar("r"), self.names.scalar("u")
        start = Acc(acc, int32, "max", Const(0, int32))
        return (start, *pieces, Read(found, acc), Let(wide, "cast", (found,), int64))


def _span(load: Load) -> int:
    """Bytes from the first to the last element that a load reads."""
    low, high = bounds(load.index)
    return (high - low + 1) * load.dtype.itemsize


def _selection(body: tuple[Stmt, ...]) -> tuple[Let, Ref] | None:
    """The selection through which alone the sums of a block are seen, and which of the two it selects from is made of
    these."""
    made = {s.name for s in body if isinstance(s, Read)}
    found: tuple[Let, Ref] | None = None
    for stmt in body:
        used = scalars_read(stmt) & made if not isinstance(stmt, Loop) else set()
        if not used:
            continue
        if not isinstance(stmt, Let):
            return None
        if stmt.op != "select" or stmt.args[0] in made:
            made.add(stmt.name)
        elif found is not None or set(stmt.args[1:]) <= made:
            return None
        else:
            found = stmt, next(x for x in stmt.args[1:] if x in made)
    return found


def _made_of(body: tuple[Stmt, ...], name: Ref) -> tuple[Stmt, ...] | None:
    """The statements of a block that a scalar is made of; None where sums are among these."""
    needed, found = {name}, []
    for stmt in reversed([s for s in body if not isinstance(s, Loop | Store | Update)]):
        if getattr(stmt, "name", None) in needed:
            if not isinstance(stmt, Load | Let | IndexLet):
                return None
            needed |= scalars_read(stmt)
            found.append(stmt)
    return tuple(reversed(found))
