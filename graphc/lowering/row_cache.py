"""Which values of a row group are kept in a scratch row instead of being computed again in every pass over the row."""

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
    """Full-level values that several passes over the row need and that are expensive: of each chain the last one that
    as many passes need as the first."""
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
    # What fewer passes need is not kept if it costs little once that is kept of which it is made.
    kept = {n for n in last if _is_costly(n, shared - (last - {n}))}
    return {n.results[0] for n in kept}


def _runs_across(group: Group, costs: FusionCosts) -> bool:
    """True when neighbours in memory belong to different rows: then lanes run over rows, each of which would need a
    scratch row of its own."""
    return bool(group.shape) and len(group.shape) - 1 not in group.axes and hint(group.shape[-1]) >= costs.rows_across


def _passes(group: Group) -> list[list[Value]]:
    """The roots of each pass over the row: operands of the reductions that can be computed together, which are those
    that wait for equally many others, and the full-level outputs."""
    found: dict[int, list[Value]] = {}
    waits: dict[Node, int] = {}
    for node in group.nodes:  # NOTE: in the order of the graph, so operands come first
        waits[node] = _waits(node, waits) + node.op.has(Trait.REDUCTION)
        if node.op.has(Trait.REDUCTION):
            found.setdefault(waits[node], []).extend(node.operands)
    return [*found.values(), [v for v in group.outputs if group.is_full(v)]]


def _waits(node: Node, waits: dict[Node, int]) -> int:
    """How many reductions, one after the other, come before what the node reads."""
    most, seen = 0, set()
    stack = [v.node for v in node.operands]
    while stack:
        source = stack.pop()
        if source in seen:
            continue
        seen.add(source)
        if source in waits:
            most = max(most, waits[source])
        elif is_virtual(source):
            stack.extend(v.node for v in source.operands)
    return most


def _reachable(group: Group, roots: list[Value]) -> set[Node]:
    """Full-level nodes of the group behind the roots, not looking behind reductions."""
    members, seen = set(group.nodes), set()
    stack = [v.node for v in roots]
    while stack:
        node = stack.pop()
        if node in seen or node.op.has(Trait.REDUCTION):
            continue
        if node in members and group.is_full(node.results[0]):
            seen.add(node)
        elif not is_virtual(node):
            continue
        stack.extend(v.node for v in node.operands)
    return seen


def _is_costly(node: Node, shared: set[Node]) -> bool:
    stack, seen = [node], set()
    while stack:
        current = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        if is_slow(current):
            return True
        stack.extend(v.node for v in current.operands if v.node in shared or is_virtual(v.node))
    return False


def _consumers(node: Node, group: Group) -> list[Node]:
    return [n for n in group.nodes if any(v.node is node for v in n.operands)]
