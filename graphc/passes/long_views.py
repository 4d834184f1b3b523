"""Views of views of views: which of them are stored, so that what is read through them is found in few steps."""

from __future__ import annotations

from dataclasses import dataclass

from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.ir.graph.graph import CONSTANT, Graph, Node
from graphc.ir.kernel.index import Div, Index, Mod
from graphc.ir.op import Trait
from graphc.passes.operand_access import domain_axes, is_virtual, operand_reads


@dataclass
class _Depth:
    """What lies between a view and memory."""

    views: int = 0
    """Views, one behind the other."""
    divisions: int = 0
    """Those of them whose indices are quotients and remainders; behind each, indices have up to twice as many terms."""
    ways: int = 1
    """How many reads one element is found by: what is concatenated may have been concatenated before."""

    def exceeds(self, costs: FusionCosts) -> bool:
        return self.views > costs.view_depth or self.divisions > costs.view_divisions


def long_views(graph: Graph, costs: FusionCosts = DEFAULT.fusion) -> set[Node]:
    """The views that are stored so that none is looked through too many others, or by too many ways."""
    found: set[Node] = set()
    depths: dict[Node, _Depth] = {}
    for node in graph.nodes():
        if node.op is CONSTANT or node.op.has(Trait.STATE_WRITE) or not is_virtual(node):
            continue
        if is_written_by_parts(node, costs):
            found.add(node)
            continue
        sources = [v.node for v in node.operands]
        if sum(depths[s].ways if s in depths else 1 for s in sources) > costs.view_reads:
            many = [s for s in sources if s in depths and depths[s].ways > 1]
            found.update(many)
            for source in many:
                depths.pop(source, None)
        depth = _depth(node, [depths[s] for s in sources if s in depths])
        if depth.exceeds(costs):
            found.add(node)
        else:
            depths[node] = depth
    return found


def is_written_by_parts(node: Node, costs: FusionCosts = DEFAULT.fusion) -> bool:
    """True for a view of so many operands side by side that each is written to its place by a call of its own."""
    return node.op.parts is not None and len(node.operands) > costs.parts


def _depth(node: Node, behind: list[_Depth]) -> _Depth:
    """The depth of a view in front of others."""
    if not behind:
        return _Depth(1, 0, max(1, len(node.operands)))
    reads = operand_reads(node, domain_axes(node.result.shape))
    divides = any(divides_index(r.index) for r in reads)
    ways = len(node.operands) - len(behind) + sum(d.ways for d in behind)
    return _Depth(1 + max(d.views for d in behind), divides + max(d.divisions for d in behind), ways)


def divides_index(index: tuple[Index, ...]) -> bool:
    """Whether quotients or remainders are among the terms of an index."""
    return any(isinstance(atom, Div | Mod) for i in index for atom, _ in i.terms)
