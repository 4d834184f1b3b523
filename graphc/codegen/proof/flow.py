"""The control flow of a function: its blocks, which of them every way to another one goes through, and its loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphc.base.errors import RealtimeError
from graphc.codegen.machine.step import Reader, Step
from graphc.codegen.proof.assembly import Function


@dataclass(frozen=True)
class Flow:
    """A function as blocks of instructions that run one after the other; the first one is its entry."""

    function: Function
    steps: tuple[Step, ...]
    """What each instruction does."""
    starts: tuple[int, ...]
    """The first instruction of each block."""
    after: tuple[tuple[int, ...], ...]
    """The blocks that may run next; of a branch first the one that it goes to where its condition holds."""
    before: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    """For each block its place in an order in which blocks stand behind those before them, but for those that go back;
    those that never run are last."""
    dominators: tuple[frozenset[int], ...]
    """For each block those that have run whenever it runs, itself included; nothing for those that never run."""

    def span(self, block: int) -> range:
        """The numbers of the instructions of a block."""
        end = self.starts[block + 1] if block + 1 < len(self.starts) else len(self.steps)
        return range(self.starts[block], end)


@dataclass(frozen=True)
class Loop:
    """Blocks that run again and again, which are entered through the first one only."""

    head: int
    blocks: frozenset[int]
    latches: tuple[int, ...]
    """Those that go back to the head."""


def flow_of(function: Function, machine: Reader) -> Flow:
    """The control flow of a function. Raises RealtimeError where a jump goes to a place that a register holds, or out
    of the function in the middle of it."""
    labels = frozenset(function.labels)
    steps = tuple(machine.step(line, labels) for line in function.lines)
    starts = sorted({0, *_starts(function, steps)} & set(range(len(steps))))
    numbers = {start: i for i, start in enumerate(starts)}
    after = []
    for block, start in enumerate(starts):
        end = starts[block + 1] if block + 1 < len(starts) else len(steps)
        after.append(_next(function, steps, numbers, end - 1))
        assert start < end
    before: list[list[int]] = [[] for _ in starts]
    for block, following in enumerate(after):
        for other in dict.fromkeys(following):
            before[other].append(block)
    ways, back = tuple(after), tuple(map(tuple, before))
    order = _order(ways)
    return Flow(function, steps, tuple(starts), ways, back, order, _dominators(order, back))


def _order(after: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    done: list[int] = []
    seen: set[int] = set()
    stack = [(0, False)]
    while stack:
        block, left = stack.pop()
        if left:
            done.append(block)
        elif block not in seen:
            seen.add(block)
            stack += [(block, True), *((other, False) for other in after[block])]
    places = {block: place for place, block in enumerate(reversed(done))}
    return tuple(places.get(block, len(after)) for block in range(len(after)))


def _starts(function: Function, steps: Sequence[Step]) -> set[int]:
    found = set()
    for number, step in enumerate(steps):
        if step.kind in ("jump", "branch"):
            if step.target not in function.labels:
                place = f"@{function.name}, line {function.lines[number].number}"
                raise RealtimeError(
                    f"the jump `{function.lines[number]}` goes to a place that is not known", where=place
                )
            found.add(function.labels[step.target])
        if step.kind not in ("plain", "call"):
            found.add(number + 1)
    return found


def _next(function: Function, steps: Sequence[Step], numbers: dict[int, int], last: int) -> tuple[int, ...]:
    step = steps[last]
    following = (numbers[last + 1],) if last + 1 in numbers else ()
    if step.kind == "jump":
        return (numbers[function.labels[step.target]],)
    if step.kind == "branch":
        return (numbers[function.labels[step.target]], *following)
    return following if step.kind in ("plain", "call") else ()


def _dominators(order: tuple[int, ...], before: tuple[tuple[int, ...], ...]) -> tuple[frozenset[int], ...]:
    reached = sorted((b for b, place in enumerate(order) if place < len(order)), key=order.__getitem__)
    everything = frozenset(reached)
    found = {block: everything for block in reached} | {0: frozenset({0})}
    changed = True
    while changed:
        changed = False
        for block in reached[1:]:
            ways = [found[b] for b in before[block] if b in found]
            now = frozenset.intersection(*ways) | {block}
            if now != found[block]:
                found[block], changed = now, True
    return tuple(found.get(block, frozenset()) for block in range(len(order)))


def loops_of(flow: Flow) -> list[Loop] | None:
    """The loops of a function, inner ones before those around them; None where one can be entered at several places."""
    latches: dict[int, list[int]] = {}
    for block, following in enumerate(flow.after):
        for head in following:
            if head in flow.dominators[block]:
                latches.setdefault(head, []).append(block)
    loops = []
    for head, ends in latches.items():
        blocks, stack = {head}, list(ends)
        while stack:
            block = stack.pop()
            if block not in blocks:
                blocks.add(block)
                stack += flow.before[block]
        loops.append(Loop(head, frozenset(blocks), tuple(ends)))
    loops.sort(key=lambda loop: len(loop.blocks))
    return loops if _is_reducible(flow, latches) else None


def _is_reducible(flow: Flow, latches: dict[int, list[int]]) -> bool:
    """Whether nothing goes round without the edges back to the heads of loops."""
    missing = [sum(not _is_back(latches, b, block) for b in flow.before[block]) for block in range(len(flow.after))]
    ready, done = [b for b, n in enumerate(missing) if not n], 0
    while ready:
        block = ready.pop()
        done += 1
        for other in dict.fromkeys(flow.after[block]):
            if not _is_back(latches, block, other):
                missing[other] -= 1
                if not missing[other]:
                    ready.append(other)
    return done == len(flow.after)


def _is_back(latches: dict[int, list[int]], block: int, head: int) -> bool:
    return block in latches.get(head, ())
