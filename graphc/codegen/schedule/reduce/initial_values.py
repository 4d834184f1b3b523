"""Initial values of accumulators: start sums of integers at what is added to them."""

from __future__ import annotations

from collections import Counter

from graphc.ir.kernel.index import Dynamic, atoms
from graphc.ir.kernel.map import indices_of, map_statements, scalars_read
from graphc.ir.kernel.statements import Acc, Const, Let, Load, Loop, Read, Ref, Stmt, Store, identity, walk


def start_at_addends(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return statements in which a sum of integers starts at the element that is added to its total, where that element
    is a constant or loaded in the same block. Integers wrap, so the result is the same in any order."""
    stored = {s.buffer for s, _ in walk(body) if isinstance(s, Store)}
    uses = Counter(name for s, _ in walk(body) for name in scalars_read(s))
    reads = Counter(s.acc for s, _ in walk(body) if isinstance(s, Read))

    def started(block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        for acc in [s for s in block if isinstance(s, Acc)]:
            if reads[acc.name] == 1 and acc.dtype.kind in "iu" and acc.init == identity("add", acc.dtype):
                block = _started(block, acc, stored, uses)
        return block

    def leave(loop: Loop) -> tuple[Stmt]:
        new = started(loop.body)
        return (loop if new is loop.body else Loop(loop.axis, loop.kind, new, loop.until),)

    return started(map_statements(body, leave=leave))


def _started(block: tuple[Stmt, ...], acc: Acc, stored: set[str], uses: Counter[str]) -> tuple[Stmt, ...]:
    """Start one sum of a block at the addend of its only reader; return the same block if there is none."""
    read = next((s for s in block if isinstance(s, Read) and s.acc == acc.name and not s.over), None)
    if read is None or acc.combine != "add" or uses[read.name] != 1:
        return block
    total = next((s for s in block if isinstance(s, Let) and s.op == "add" and read.name in s.args), None)
    if total is None:
        return block
    addend: Ref = total.args[1] if total.args[0] == read.name else total.args[0]
    load = next((s for s in block if isinstance(s, Load) and s.name == addend), None)
    if not (isinstance(addend, Const) or (load is not None and _is_movable(load, stored))):
        return block
    places = {id(s): place for place, s in enumerate(block)}
    first = Acc(acc.name, acc.dtype, acc.combine, addend)
    replaced: dict[int, tuple[Stmt, ...]] = {id(read): (), id(total): (Read(total.name, acc.name),), id(acc): (first,)}
    if load is not None and places[id(load)] > places[id(acc)]:
        replaced |= {id(load): (), id(acc): (load, first)}
    return tuple([new for s in block for new in replaced.get(id(s), (s,))])


def _is_movable(load: Load, stored: set[str]) -> bool:
    """Check whether a load gives the same element anywhere in its block."""
    known = not any(isinstance(a, Dynamic) for index in indices_of(load) for a in atoms(index))
    return known and load.buffer not in stored
