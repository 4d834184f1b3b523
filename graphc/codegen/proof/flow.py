"""Control-flow graph of a function: basic blocks, dominators, natural loops."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.base.errors import RealtimeError
from graphc.base.records import dataclass
from graphc.codegen.machine.step import RETURN, InstructionEffects, Reader
from graphc.codegen.proof.assembly import AssemblyFunction


@dataclass(frozen=True)
class Flow:
    """Basic blocks of a function; the first one is its entry. An empty one at the end follows returns under a
    condition, if there are some."""

    function: AssemblyFunction
    steps: tuple[InstructionEffects, ...]
    """Effects of each instruction."""
    starts: tuple[int, ...]
    """First instruction of each block."""
    after: tuple[tuple[int, ...], ...]
    """Successors of each block; of a branch, first the target of a true condition."""
    before: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    """Position of each block in reverse postorder; unreachable blocks come last."""
    dominators: tuple[frozenset[int], ...]
    """Dominators of each block, itself included; empty for unreachable blocks."""

    def span(self, block: int) -> range:
        """Return the numbers of the instructions of a block."""
        end = self.starts[block + 1] if block + 1 < len(self.starts) else len(self.steps)
        return range(self.starts[block], end)


@dataclass(frozen=True)
class NaturalLoop:
    """Natural loop: its head is the only entry."""

    head: int
    blocks: frozenset[int]
    latches: tuple[int, ...]
    """Blocks with an edge back to the head."""


def flow_of(function: AssemblyFunction, machine: Reader) -> Flow:
    """Return the control-flow graph of a function. Raises RealtimeError for an indirect jump, and for a jump into the
    middle of another function."""
    labels = frozenset(function.labels)
    steps = machine.steps(function.lines, labels)
    starts = sorted({0, *_starts(function, steps)} & set(range(len(steps))))
    ends = [*starts[1:], len(steps)]
    numbers = {start: i for i, start in enumerate(starts)}
    if any(step.target == RETURN for step in steps):
        starts.append(len(steps))
    after = [_next(function, steps, numbers, end - 1, len(ends)) for end in ends]
    after += [()] * (len(starts) - len(ends))
    before: list[list[int]] = [[] for _ in starts]
    for block, following in enumerate(after):
        for other in dict.fromkeys(following):
            before[other].append(block)
    successors, predecessors = tuple(after), tuple(map(tuple, before))
    order = _order(successors)
    return Flow(function, steps, tuple(starts), successors, predecessors, order, _dominators(order, predecessors))


def _order(after: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    done: list[int] = []
    visited: set[int] = set()
    stack = [(0, False)]
    while stack:
        block, expanded = stack.pop()
        if expanded:
            done.append(block)
        elif block not in visited:
            visited.add(block)
            stack += [(block, True), *((other, False) for other in after[block])]
    positions = {block: position for position, block in enumerate(reversed(done))}
    return tuple(positions.get(block, len(after)) for block in range(len(after)))


def _starts(function: AssemblyFunction, steps: Sequence[InstructionEffects]) -> set[int]:
    starts = set()
    for number, step in enumerate(steps):
        if step.kind in ("jump", "branch") and step.target != RETURN:
            if step.target not in function.labels:
                where = f"@{function.name}, line {function.lines[number].number}"
                raise RealtimeError(f"the jump `{function.lines[number]}` has an unknown target", where=where)
            starts.add(function.labels[step.target])
        if step.kind not in ("plain", "call"):
            starts.add(number + 1)
    return starts


def _next(
    function: AssemblyFunction, steps: Sequence[InstructionEffects], numbers: dict[int, int], last: int, end: int
) -> tuple[int, ...]:
    """Return the blocks after the instruction ``last`` of a block. ``end``: the block after all others."""
    step = steps[last]
    following = (numbers[last + 1],) if last + 1 in numbers else ()
    if step.kind == "jump":
        return (numbers[function.labels[step.target]],)
    if step.target == RETURN:
        return (end, *following)
    if step.kind == "branch":
        return (numbers[function.labels[step.target]], *following)
    return following if step.kind in ("plain", "call") else ()


def _dominators(order: tuple[int, ...], before: tuple[tuple[int, ...], ...]) -> tuple[frozenset[int], ...]:
    reached = sorted((b for b, position in enumerate(order) if position < len(order)), key=order.__getitem__)
    everything = frozenset(reached)
    dominators = {block: everything for block in reached} | {0: frozenset({0})}
    changed = True
    while changed:
        changed = False
        for block in reached[1:]:
            incoming = [dominators[b] for b in before[block] if b in dominators]
            now = frozenset.intersection(*incoming) | {block}
            if now != dominators[block]:
                dominators[block], changed = now, True
    return tuple(dominators.get(block, frozenset()) for block in range(len(order)))


def loops_of(flow: Flow) -> list[NaturalLoop] | None:
    """Return the natural loops of a function, inner ones first; None if one has several entries."""
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
        loops.append(NaturalLoop(head, frozenset(blocks), tuple(ends)))
    loops.sort(key=lambda loop: len(loop.blocks))
    return loops if _is_reducible(flow, latches) else None


def _is_reducible(flow: Flow, latches: dict[int, list[int]]) -> bool:
    """Return whether the graph without the loops' back edges has no cycle."""
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
