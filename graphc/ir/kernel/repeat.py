"""Repeated calls of programs: the execution order of calls, and live spans of storages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from graphc.ir.kernel.index import Axis, Index
from graphc.ir.kernel.statements import Call, Program, Storage


def executions(
    calls: Sequence[Call], goes_on: Callable[[str], bool] = lambda flag: True
) -> Iterator[tuple[Call, dict[Axis, int]]]:
    """Yield every run of a kernel in order, with the iteration of each loop around it. ``goes_on`` returns the current
    value of the flag of that name."""
    stack: list[tuple[Sequence[Call], int, dict[Axis, int], Axis | None]] = [(calls, 0, {}, None)]
    while stack:
        present, depth, at, axis = stack.pop()
        if depth < 0:
            yield present[0], at
        elif axis is not None:
            if at[axis] < axis.extent and (not axis.flag or goes_on(axis.flag)):
                stack += [(present, depth, {**at, axis: at[axis] + 1}, axis), (present, depth + 1, at, None)]
        else:
            entries = [
                (b, -1, at, None) if a is None else (b, depth, {**at, a: 0}, a) for a, b in blocks(present, depth)
            ]
            stack += reversed(entries)


def blocks(calls: Sequence[Call], depth: int = 0) -> Iterator[tuple[Axis | None, Sequence[Call]]]:
    """Yield neighbouring calls in the same loop at that depth, or single calls outside of such loops."""
    if depth < 0:
        return
    start = 0
    for i, call in enumerate(calls):
        axis = _axis(call, depth)
        if axis is None:
            yield None, calls[i : i + 1]
            start = i + 1
        elif i + 1 == len(calls) or _axis(calls[i + 1], depth) != axis:
            yield axis, calls[start : i + 1]
            start = i + 1


def _axis(call: Call, depth: int) -> Axis | None:
    return call.loops[depth] if depth < len(call.loops) else None


def position(index: Index, at: Mapping[Axis, int]) -> int:
    """Return the value of a base offset in given iterations."""
    return index.constant + sum(c * at[a] for a, c in index.terms if isinstance(a, Axis))


def loop_spans(calls: Sequence[Call]) -> dict[Axis, tuple[int, int]]:
    """Return the numbers of the first and the last call of every enclosing loop, inner loops first."""
    spans: dict[Axis, tuple[int, int]] = {}
    for number, call in enumerate(calls):
        for axis in call.loops:
            spans[axis] = (spans.get(axis, (number, number))[0], number)
    depth = {axis: d for call in calls for d, axis in enumerate(call.loops)}
    return dict(sorted(spans.items(), key=lambda item: -depth[item[0]]))


def live_spans(program: Program, root: Callable[[str], str] = lambda name: name) -> dict[str, tuple[int, int]]:
    """Return the live span of every storage used by calls: the numbers of the first and the last call between which it
    needs its own memory.

    Storages used outside of a loop too, or carried between iterations, are live for the entire loop. ``root`` names the
    storage whose memory a storage uses.
    """
    kernels = {k.name: k.arguments for k in program.kernels}
    uses: dict[str, list[tuple[int, bool]]] = {}
    for number, call in enumerate(program.calls):
        arguments = kernels.get(call.kernel, ())
        for i, name in enumerate(call.args):
            fresh = i < len(arguments) and arguments[i].role == "out" and program.is_whole(call, i)
            uses.setdefault(root(name), []).append((number, fresh))
    spans = loop_spans(program.calls)
    for axis, (start, stop) in spans.items():
        if axis.flag:
            uses[root(axis.flag)] = sorted([*uses.get(root(axis.flag), []), (start, False), (stop, False)])
    loops = spans.values()
    return {name: _extended(storage_uses, loops) for name, storage_uses in uses.items()}


def _extended(uses: list[tuple[int, bool]], loops: Iterable[tuple[int, int]]) -> tuple[int, int]:
    first, last = uses[0][0], uses[-1][0]
    for start, stop in loops:
        inside = [fresh for number, fresh in uses if start <= number <= stop]
        if inside and (first < start or last > stop or not inside[0]):
            first, last = min(first, start), max(last, stop)
    return first, last


def owners(program: Program) -> dict[str, Storage]:
    """Return, by name of each storage, the storage that owns its memory."""
    storages = {s.name: s for s in program.storages}
    owner = {}
    for name, storage in storages.items():
        while storage.alias:
            storage = storages[storage.alias]
        owner[name] = storage
    return owner
