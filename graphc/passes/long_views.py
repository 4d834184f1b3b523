"""Views of views of views: choose which to store, so that each read resolves in few steps."""

from __future__ import annotations

from graphc.base.records import dataclass
from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.ir.graph.graph import CONSTANT, Graph, Node
from graphc.ir.kernel.index import Div, Index, Mod
from graphc.ir.op import Trait
from graphc.passes.operand_access import domain_axes, is_virtual, operand_reads


@dataclass
class _Depth:
    """Cost of resolving a view to memory."""

    views: int = 0
    """Number of consecutive views."""
    divisions: int = 0
    """Number of views whose indices are quotients and remainders; each may double the number of index terms."""
    reads: int = 1
    """Number of reads that may resolve one element; concatenations of concatenations multiply them."""

    def exceeds(self, costs: FusionCosts) -> bool:
        return self.views > costs.view_depth or self.divisions > costs.view_divisions


def long_views(graph: Graph, costs: FusionCosts = DEFAULT.fusion) -> set[Node]:
    """Return the views to store, so that no read resolves through too many views or too many alternative reads."""
    stored: set[Node] = set()
    depths: dict[Node, _Depth] = {}
    for node in graph.nodes():
        op = node.op
        if op is CONSTANT or op.has(Trait.STATE_WRITE) or not is_virtual(node):
            continue
        if is_written_by_parts(node, costs):
            stored.add(node)
            continue
        sources = [v.node for v in node.operands]
        if sum(depths[s].reads if s in depths else 1 for s in sources) > costs.view_reads:
            many = [s for s in sources if s in depths and depths[s].reads > 1]
            stored.update(many)
            for source in many:
                depths.pop(source, None)
        depth = _depth(node, [depths[s] for s in sources if s in depths])
        if depth.exceeds(costs):
            stored.add(node)
        else:
            depths[node] = depth
    return stored


def is_written_by_parts(node: Node, costs: FusionCosts = DEFAULT.fusion) -> bool:
    """Check for a concatenation with more operands than ``costs.parts``; a call of its own then writes each operand."""
    return node.op.parts is not None and len(node.operands) > costs.parts


def _depth(node: Node, sources: list[_Depth]) -> _Depth:
    """Compute the depth of a view of other views."""
    if not sources:
        return _Depth(1, 0, max(1, len(node.operands)))
    accesses = operand_reads(node, domain_axes(node.result.shape))
    divides = any(divides_index(r.index) for r in accesses)
    reads = len(node.operands) - len(sources) + sum(d.reads for d in sources)
    return _Depth(1 + max(d.views for d in sources), divides + max(d.divisions for d in sources), reads)


def divides_index(index: tuple[Index, ...]) -> bool:
    """Check whether the terms of an index include quotients or remainders."""
    return any(isinstance(atom, Div | Mod) for i in index for atom, _ in i.terms)
