"""One-hot reductions: replace a sum such as ``where(k == t, x[k], 0)`` over ``k`` by its only nonzero term."""

from __future__ import annotations

from graphc.ir.kernel.index import Axis, Dynamic, Index, as_index, atoms
from graphc.ir.kernel.map import map_indices, substitute_axes
from graphc.ir.kernel.statements import Acc, Const, IndexLet, Let, Load, Loop, Ref, Stmt, Update


def pick_elements(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements of one scope with each one-hot sum replaced by the iteration of its nonzero term."""
    accumulators = {s.name: s for s in body if isinstance(s, Acc)}
    result: list[Stmt] = []
    for stmt in body:
        picked = _picked(stmt, accumulators) if isinstance(stmt, Loop) and stmt.kind == "reduce" else None
        result += [stmt] if picked is None else picked
    return tuple(result)


def _picked(loop: Loop, accumulators: dict[str, Acc]) -> list[Stmt] | None:
    """Return the statements that replace a one-hot loop; None for other loops."""
    if not all(isinstance(s, Let | IndexLet | Load | Update) for s in loop.body):
        return None
    definitions = {s.name: s for s in loop.body if isinstance(s, Let | IndexLet | Load)}
    targets: set[str] = set()
    for stmt in loop.body:
        if isinstance(stmt, Update):
            acc = accumulators.get(stmt.acc)
            if acc is None or acc.combine != "add" or acc.dtype.kind not in "fi":
                return None
            condition = _condition(stmt.value, definitions)
            number = _picked_index(condition, definitions, loop.axis)
            if number is None:
                return None
            targets.add(number)
    if len(targets) != 1:
        return None
    return _iteration(loop, next(iter(targets)), definitions)


def _condition(value: Ref, definitions: dict[str, Let | IndexLet | Load]) -> str:
    """Return the condition outside of which a value is zero; empty if the value is not such a select."""
    stmt = definitions.get(value) if isinstance(value, str) else None
    while isinstance(stmt, Let) and stmt.op == "neg":
        stmt = definitions.get(stmt.args[0]) if isinstance(stmt.args[0], str) else None
    if not isinstance(stmt, Let) or stmt.op != "select":
        return ""
    condition, _, otherwise = stmt.args
    zero = isinstance(otherwise, Const) and otherwise.value == 0
    return condition if zero and isinstance(condition, str) else ""


def _picked_index(condition: str, definitions: dict[str, Let | IndexLet | Load], axis: Axis) -> str | None:
    """Return the loop-invariant integer scalar ``t`` of a condition ``axis == t``; None for other conditions."""
    stmt = definitions.get(condition)
    if not isinstance(stmt, Let) or stmt.op != "eq":
        return None
    for own, other in (stmt.args, stmt.args[::-1]):
        counter = definitions.get(own) if isinstance(own, str) else None
        if isinstance(counter, IndexLet) and counter.index == as_index(axis) and isinstance(other, str):
            return None if _varies(other, definitions, axis) else other
    return None


def _varies(name: str, definitions: dict[str, Let | IndexLet | Load], axis: Axis) -> bool:
    """Check whether a scalar may differ between iterations."""
    for source in _sources(name, definitions):
        stmt = definitions[source]
        if isinstance(stmt, Load) and stmt.guard:
            return True
        if not isinstance(stmt, Let) and any(atom == axis for atom in atoms(stmt.index)):
            return True
    return False


def _sources(name: str, definitions: dict[str, Let | IndexLet | Load]) -> set[str]:
    """Return the scalars of the loop from which a scalar is computed, including itself."""
    stack, visited = [name], set()
    while stack:
        stmt = definitions.get(stack.pop())
        if stmt is None or stmt.name in visited:
            continue
        visited.add(stmt.name)
        if isinstance(stmt, Let):
            stack += [a for a in stmt.args if isinstance(a, str)]
        else:
            stack += [a.name for a in atoms(stmt.index) if isinstance(a, Dynamic)]
    return visited


def _iteration(loop: Loop, number: str, definitions: dict[str, Let | IndexLet | Load]) -> list[Stmt]:
    """Return the iteration ``number``, clamped to the loop's range; out of range, its condition is false."""
    axis = loop.axis
    dtype = next(s.dtype for s in loop.body if isinstance(s, IndexLet) and s.index == as_index(axis))
    low, clamped_name = f"{number}_{axis.name}_low", f"{number}_{axis.name}"
    last = Const(axis.extent - 1, dtype) if type(axis.extent) is int else f"{number}_{axis.name}_last"
    clamped: list[Stmt] = [IndexLet(last, Index((), axis.extent - 1), dtype)] if isinstance(last, str) else []
    clamped += [Let(low, "max", (number, Const(0, dtype)), dtype), Let(clamped_name, "min", (low, last), dtype)]
    position = Index(((Dynamic(clamped_name, 0, axis.extent - 1), 1),))
    sources = _sources(number, definitions)
    first = [s for s in loop.body if isinstance(s, Let | IndexLet | Load) and s.name in sources]
    rest = tuple(s for s in loop.body if s not in first)
    return [*first, *clamped, *map_indices(rest, lambda index: substitute_axes(index, {axis: position}))]
