"""Dead code elimination (DCE): remove nodes that neither an output nor an effect needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.records import dataclass
from graphc.ir.graph.graph import Graph, Node
from graphc.ir.graph.interpret import Reemitter, has_effect, live_nodes
from graphc.ir.op import Trait
from graphc.passes.base import PassResult


@dataclass(frozen=True)
class DeadCodeElimination:
    """Remove nodes that nothing needs.

    Needs: any valid graph. Does: keeps the nodes from which an output or an impure node can be reached.
    Leaves: all inputs, also unused ones, since they are the signature.

        %a = exp(%x) : f32[4]
        %b = sin(%x) : f32[4]          ->        %a = exp(%x) : f32[4]
        return %a                                return %a
    """

    name: str = "dce"

    def run(self, graph: Graph) -> PassResult:
        """Count removed nodes."""
        possible = graph.nodes_of(lambda op: not op.has(Trait.PURE) or op.has(Trait.ORDERED))
        effects = [r for n in possible if has_effect(n) for r in n.results]
        live = live_nodes(graph, [*graph.outputs, *effects])
        dead = sum([node not in live for node in graph.nodes()])
        return PassResult(_Keep(live).transform(graph) if dead else graph, dead)


class _Keep(Reemitter):
    """Rewriter that copies live nodes only."""

    def __init__(self, live: set[Node]):
        super().__init__()
        self.live = live

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        return self.copy_node(node, operands) if node in self.live else (None,) * len(node.results)
