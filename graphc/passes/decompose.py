"""Decomposition: replace ops without a kernel rule by simpler ops, and drop ops that only autodiff needs."""

from __future__ import annotations

from collections.abc import Sequence

import graphc.ops.registry  # noqa: F401  (fills REGISTRY)
from graphc.base.records import dataclass
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.rewrite import Rule, apply_rules
from graphc.ir.op import REGISTRY, Trait
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.passes.base import PassResult, run_inside


@dataclass(frozen=True)
class Decompose:
    """Replace composite ops by simpler ones.

    Needs: a graph that will not be differentiated any more. Does: applies the rule ``decompose`` of every op with
    such a rule (None means: simple enough), inlines calls, and drops ops whose results equal their operands.
    Leaves: ops with a kernel rule; convolutions without padding.

        %a = stop_gradient(%x) : f32[4]
        %b = mul(%a, %y) : f32[4]      ->        %b = mul(%x, %y) : f32[4]
    """

    name: str = "decompose"

    def run(self, graph: Graph) -> PassResult:
        """Change the graph in place; count decomposed nodes."""
        changed = apply_rules(graph, _rules()) + run_inside(self, graph)
        # The rules keep impure nodes because of their effects; those effects are inlined by now.
        for node in reversed(graph.nodes_of(lambda op: op.decompose is not None and not op.has(Trait.PURE))):
            graph.erase(node)
        return PassResult(graph, changed)


def _decompose(graph: Graph, node: Node) -> Sequence[Value] | None:
    assert node.op.decompose is not None
    with use(GraphDispatcher(graph, node.location)):
        results = node.op.decompose(*node.operands, **node.attrs)
    return results if isinstance(results, tuple) or results is None else (results,)


def _forward(graph: Graph, node: Node) -> Sequence[Value] | None:
    return node.operands


def _rules() -> list[Rule]:
    """Return one rule per op to replace, ops that users have defined so far included."""
    return [
        *(Rule(op.name, _decompose) for op in REGISTRY.values() if op.decompose is not None),
        Rule(Trait.IDENTITY, _forward),
    ]
