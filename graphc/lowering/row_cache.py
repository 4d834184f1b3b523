"""Row caches: values of a row group kept in a scratch row instead of being recomputed in every pass over the row."""

from __future__ import annotations

from collections import Counter
from math import prod

from graphc.base.sizes.size import hint
from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.fusion.partition import Group
from graphc.fusion.price import is_slow
from graphc.ir.graph.graph import Node, Value
from graphc.ir.op import Trait
from graphc.passes.operand_access import is_virtual


def cached_values(group: Group, costs: FusionCosts = DEFAULT.fusion) -> set[Value]:
    """Return the expensive full-level values needed by several passes over the row.

    Of each chain of such values this is the last one needed by as many passes as the first.
    """
    if group.kind != "row" or _runs_across(group, costs):
        return set()
    row_bytes = hint(prod(group.shape[a] for a in group.axes)) * costs.scratch_element_bytes
    if row_bytes > costs.row_bytes:
        return set()
    uses: Counter[Node] = Counter()
    for roots in _passes(group):
        uses.update(_reachable(group, roots))
    shared = {n for n, count in uses.items() if count > 1}
    costly = {n for n in shared if _is_costly(n, shared)}
    last = {n for n in costly if not any(c in costly and uses[c] == uses[n] for c in _consumers(n, group))}
    # A value that fewer passes need is not kept if it is cheap to compute from other kept values.
    cached = {n for n in last if _is_costly(n, shared - (last - {n}))}
    return {n.results[0] for n in cached}


def _runs_across(group: Group, costs: FusionCosts) -> bool:
    """Check whether neighbours in memory belong to different rows.

    Lanes then run over rows, and each lane would need a scratch row of its own.
    """
    return bool(group.shape) and len(group.shape) - 1 not in group.axes and hint(group.shape[-1]) >= costs.rows_across


def _passes(group: Group) -> list[list[Value]]:
    """Return the roots of each pass over the row.

    Reductions that wait for equally many others share a pass, whose roots are their operands. The last pass computes
    the full-level outputs.
    """
    roots_by_waits: dict[int, list[Value]] = {}
    waits: dict[Node, int] = {}
    for node in group.nodes:  # NOTE: in the order of the graph, so operands come first
        waits[node] = _waits(node, waits) + node.op.has(Trait.REDUCTION)
        if node.op.has(Trait.REDUCTION):
            roots_by_waits.setdefault(waits[node], []).extend(node.operands)
    return [*roots_by_waits.values(), [v for v in group.outputs if group.is_full(v)]]


def _waits(node: Node, waits: dict[Node, int]) -> int:
    """Return the length of the longest chain of reductions before the node's operands."""
    most, visited = 0, set()
    stack = [v.node for v in node.operands]
    while stack:
        source = stack.pop()
        if source in visited:
            continue
        visited.add(source)
        if source in waits:
            most = max(most, waits[source])
        elif is_virtual(source):
            stack.extend(v.node for v in source.operands)
    return most


def _reachable(group: Group, roots: list[Value]) -> set[Node]:
    """Return the full-level nodes of the group from which the roots are computed, up to reductions."""
    members, reachable = set(group.nodes), set()
    stack = [v.node for v in roots]
    while stack:
        node = stack.pop()
        if node in reachable or node.op.has(Trait.REDUCTION):
            continue
        if node in members and group.is_full(node.results[0]):
            reachable.add(node)
        elif not is_virtual(node):
            continue
        stack.extend(v.node for v in node.operands)
    return reachable


def _is_costly(node: Node, shared: set[Node]) -> bool:
    stack, visited = [node], set()
    while stack:
        current = stack.pop()
        if current in visited:
            continue
        visited.add(current)
        if is_slow(current):
            return True
        stack.extend(v.node for v in current.operands if v.node in shared or is_virtual(v.node))
    return False


def _consumers(node: Node, group: Group) -> list[Node]:
    return [n for n in group.nodes if any(v.node is node for v in n.operands)]
