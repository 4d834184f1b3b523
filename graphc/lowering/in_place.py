"""In-place updates: values that take over the memory of a state, and kernels that overwrite their own operands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from graphc.fusion.partition import is_check, is_repeated, needs_stored_operands
from graphc.fusion.vertical import FusionPlan
from graphc.ir.graph.graph import INPUT, Graph, Node, Value
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.statements import Kernel, Load, Loop, Store, walk
from graphc.ir.op import Trait
from graphc.passes.operand_access import domain_axes, look_through_views, written_value
from graphc.passes.updates import contents_of


class StateMemory:
    """Analysis of which values may be stored directly in the param or state to which they are written."""

    def __init__(self, graph: Graph, plan: FusionPlan):
        self.plan = plan
        self.checked = max((i for i, g in enumerate(plan.groups) if any(is_check(n) for n in g.nodes)), default=-1)
        """Number of the last group with a check; no state is written before it."""
        self.number = {n: i for i, g in enumerate(plan.groups) for n in g.nodes}
        self.writes = graph.having(Trait.STATE_WRITE)
        self.copied = {written_value(v) for v in (*graph.outputs, *(n.operands[1] for n in self.writes))}
        """Values that outlive the call: outputs and contents written to states."""
        self.last = self._last_readers()

    def updated(self) -> dict[Value, Value]:
        """Return the contents of states with some elements replaced, each with its state.

        Each takes over the memory of its predecessor, which no later group reads, so only changed elements are written.
        """
        result: dict[Value, Value] = {}
        for node in self.writes:
            target = node.operands[0]
            contents = contents_of(node.operands[1], target)
            if len(contents) > 1 and all(self._may_replace(new[-1], old) for new, old in pairwise(contents)):
                result.update((v, target) for content in contents for v in content if v is not target)
        return result

    def overwriting(self) -> dict[Value, Value]:
        """Return the values that might be computed straight into their param or state, with that target.

        No later group and no final copy reads the old content, and no check comes later.
        """
        result: dict[Value, Value] = {}
        for node in self.writes:
            target, value = node.operands[0], written_value(node.operands[1])
            computed = self.number.get(value.node, -1)
            unread = target not in self.copied and max(self.last.get(target, -1), 0) <= computed
            if value not in result and unread and computed > self.checked and not needs_stored_operands(value.node):
                result[value] = target
        return result

    def _may_replace(self, value: Value, old: Sequence[Value]) -> bool:
        """Check that nothing reads an old content, under any of its names, after a value is computed from it."""
        computed = self.number.get(value.node, -1)
        if computed <= self.checked or any(v in self.copied or self.last.get(v, -1) > computed for v in old):
            return False
        return not is_repeated(value.node) or sum(v in old for v in value.node.operands) == 1

    def _last_readers(self) -> dict[Value, int]:
        """Return, for each stored value, the number of the last group that reads it."""
        last: dict[Value, int] = {}
        stored = {v.node for v in self.plan.stored}
        for number, group in enumerate(self.plan.groups):
            for node in group.nodes:
                for operand in node.operands:
                    if _is_stored(operand.node, stored):
                        last[operand] = number
                        continue
                    for access in look_through_views(operand, domain_axes(operand.shape), stored):
                        if _is_stored(access.value.node, stored):
                            last[access.value] = number
        return last


def _is_stored(node: Node, stored: set[Node]) -> bool:
    return node.op is INPUT or node in stored


def overwrites_own_element(kernel: Kernel, args: Sequence[str], storage: str) -> bool:
    """Check whether the kernel reads the storage only at the element to be written next."""
    if storage not in args:
        return True
    buffer = kernel.buffers[args.index(storage)].name
    if not any(isinstance(s, Load) and s.buffer == buffer for s, _ in walk(kernel.body)):
        return True
    reads: list[tuple[Index, tuple[Loop, ...]]] = []
    stored: tuple[Index, tuple[Loop, ...]] | None = None
    for stmt, loops in walk(kernel.body):
        if isinstance(stmt, Load) and stmt.buffer == buffer:
            reads.append((stmt.index, loops))
        if not isinstance(stmt, Store) or stmt.buffer != buffer:
            continue
        ahead = all(index == stmt.index and enclosing == loops[: len(enclosing)] for index, enclosing in reads)
        if stored is not None or not ahead:
            return False
        stored, reads = (stmt.index, loops), []
    return not reads
