"""Reductions that pick one element out, as a sum over ``where(k == t, x[k], 0)`` does, become that element."""

from __future__ import annotations

from graphc.ir.kernel.index import Axis, Dynamic, Index, as_index, atoms
from graphc.ir.kernel.map import map_indices, substitute_axes
from graphc.ir.kernel.statements import Acc, Const, IndexLet, Let, Load, Loop, Ref, Stmt, Update


def pick_elements(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements of one scope with each loop over a sum of which all terms but one are zero replaced by the
    iteration that has that term."""
    accumulators = {s.name: s for s in body if isinstance(s, Acc)}
    result: list[Stmt] = []
    for stmt in body:
        picked = _picked(stmt, accumulators) if isinstance(stmt, Loop) and stmt.kind == "reduce" else None
        result += [stmt] if picked is None else picked
    return tuple(result)


def _picked(loop: Loop, accumulators: dict[str, Acc]) -> list[Stmt] | None:
    """What a loop comes to, or None when it is no such loop."""
    if not all(isinstance(s, Let | IndexLet | Load | Update) for s in loop.body):
        return None
    given = {s.name: s for s in loop.body if isinstance(s, Let | IndexLet | Load)}
    wanted: set[str] = set()
    for stmt in loop.body:
        if isinstance(stmt, Update):
            acc = accumulators.get(stmt.acc)
            if acc is None or acc.combine != "add" or acc.dtype.kind not in "fi":
                return None
            condition = _condition(stmt.value, given)
            number = _number(condition, given, loop.axis)
            if number is None:
                return None
            wanted.add(number)
    if len(wanted) != 1:
        return None
    return _iteration(loop, next(iter(wanted)), given)


def _condition(value: Ref, given: dict[str, Let | IndexLet | Load]) -> str:
    """The scalar without which a value is zero; empty when there is none."""
    stmt = given.get(value) if isinstance(value, str) else None
    while isinstance(stmt, Let) and stmt.op == "neg":
        stmt = given.get(stmt.args[0]) if isinstance(stmt.args[0], str) else None
    if not isinstance(stmt, Let) or stmt.op != "select":
        return ""
    condition, _, otherwise = stmt.args
    zero = isinstance(otherwise, Const) and otherwise.value == 0
    return condition if zero and isinstance(condition, str) else ""


def _number(condition: str, given: dict[str, Let | IndexLet | Load], axis: Axis) -> str | None:
    """The integer scalar, the same in all iterations, that the axis must equal for a condition to hold."""
    stmt = given.get(condition)
    if not isinstance(stmt, Let) or stmt.op != "eq":
        return None
    for own, other in (stmt.args, stmt.args[::-1]):
        counter = given.get(own) if isinstance(own, str) else None
        if isinstance(counter, IndexLet) and counter.index == as_index(axis) and isinstance(other, str):
            return None if _varies(other, given, axis) else other
    return None


def _varies(name: str, given: dict[str, Let | IndexLet | Load], axis: Axis) -> bool:
    """Whether a scalar may differ between iterations."""
    for source in _sources(name, given):
        stmt = given[source]
        if isinstance(stmt, Load) and stmt.guard:
            return True
        if not isinstance(stmt, Let) and any(atom == axis for atom in atoms(stmt.index)):
            return True
    return False


def _sources(name: str, given: dict[str, Let | IndexLet | Load]) -> set[str]:
    """The scalars of the loop from which one is computed, itself included."""
    stack, seen = [name], set()
    while stack:
        stmt = given.get(stack.pop())
        if stmt is None or stmt.name in seen:
            continue
        seen.add(stmt.name)
        if isinstance(stmt, Let):
            stack += [a for a in stmt.args if isinstance(a, str)]
        else:
            stack += [a.name for a in atoms(stmt.index) if isinstance(a, Dynamic)]
    return seen


def _iteration(loop: Loop, number: str, given: dict[str, Let | IndexLet | Load]) -> list[Stmt]:
    """The iteration with that number, which does nothing if there is none: its condition is then false."""
    axis = loop.axis
    dtype = next(s.dtype for s in loop.body if isinstance(s, IndexLet) and s.index == as_index(axis))
    low, place = f"{number}_{axis.name}_low", f"{number}_{axis.name}"
    last = Const(axis.extent - 1, dtype) if type(axis.extent) is int else f"{number}_{axis.name}_last"
    clamped: list[Stmt] = [IndexLet(last, Index((), axis.extent - 1), dtype)] if isinstance(last, str) else []
    clamped += [Let(low, "max", (number, Const(0, dtype)), dtype), Let(place, "min", (low, last), dtype)]
    at = Index(((Dynamic(place, 0, axis.extent - 1), 1),))
    sources = _sources(number, given)
    first = [s for s in loop.body if isinstance(s, Let | IndexLet | Load) and s.name in sources]
    rest = tuple(s for s in loop.body if s not in first)
    return [*first, *clamped, *map_indices(rest, lambda index: substitute_axes(index, {axis: at}))]
