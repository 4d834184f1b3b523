"""Constant folding: compute pure nodes of constants at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.errors import IndexRangeError
from graphc.base.records import dataclass
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, has_sizes
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import Let, walk
from graphc.ir.op import Trait
from graphc.passes.base import PassResult
from graphc.passes.operand_access import domain_axes, is_widening, recorded


@dataclass(frozen=True)
class ConstantFolding:
    """Evaluate nodes that depend on constants only, by their numpy references.

    Needs: any valid graph. Does: replaces a pure node of constants by a constant when the result has at most
    ``folded_bytes``, or at most ``folded_growth`` times the bytes of its operands. Generators (iota), views that
    repeat elements, and narrow weights (passes.precision) stay, since their code is free. Nodes that depend on sizes of
    a call stay too; in strict order, so do nodes that numpy may sum or round differently (see ``is_exact``).
    Leaves: the operands, which dead code elimination removes.

        %a = mul(f32(2.0), f32(3.0)) : f32[]
        %b = add(%x, %a) : f32[4]      ->        %b = add(%x, f32(6.0)) : f32[4]
    """

    name: str = "fold"
    costs: Costs = DEFAULT

    def run(self, graph: Graph) -> PassResult:
        """Count the nodes that became constants."""
        folder = _Folder(self.costs)
        if not any(folder.is_foldable(node, node.operands) for node in graph.nodes()):
            return PassResult(graph, 0)
        return PassResult(folder.transform(graph), folder.folded)


class _Folder(Reemitter):
    """Rewriter that evaluates nodes of constants."""

    def __init__(self, costs: Costs):
        super().__init__()
        self.costs = costs.rewrites
        self.strict_order = costs.strict_order
        self.folded = 0

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        if not self.is_foldable(node, operands):
            return self.copy_node(node, operands)
        try:
            arrays = node.op.evaluate([v.node.attrs["value"] for v in operands], node.attrs)
        except IndexRangeError:  # The check reports this at run time.
            return self.copy_node(node, operands)
        self.folded += 1
        return tuple(
            emit(self.target, CONSTANT, (), {"value": array}, node.location, old.name)[0]
            for old, array in zip(node.results, arrays, strict=True)
        )

    def is_foldable(self, node: Node, operands: Sequence[Value]) -> bool:
        """Check whether every operand is a constant and the result is worth storing."""
        for value in operands:
            if value.node.op is not CONSTANT:
                return False
        if not operands or not node.op.has(Trait.PURE) or node.op.has(Trait.GENERATOR):
            return False
        if is_widening(node) and operands[0].type.size > self.costs.widened_elements:
            return False
        if has_sizes(node) or (self.strict_order and not is_exact(node)):
            return False
        read, stored = (sum(v.type.nbytes for v in values) for values in (operands, node.results))
        if node.op.has(Trait.VIEW):
            return stored <= read
        return stored <= self.costs.folded_growth * read or stored <= self.costs.folded_bytes


def is_exact(node: Node) -> bool:
    """Check whether numpy gives the same bits as the compiled code on any machine: no sum depends on an order, and no
    function is approximated."""
    if node.op.has_any(Trait.VIEW | Trait.CONVERSION | Trait.IDENTITY):
        return True
    if all(v.dtype.kind in "iub" for v in (*node.operands, *node.results)):
        return True
    if node.op.lower is None or not node.op.has(Trait.ELEMENTWISE):
        return False
    if any(v.dtype.kind == "c" for v in (*node.operands, *node.results)):
        return False  # compiled as products of parts, which round otherwise
    body = recorded(node, domain_axes(node.results[0].shape)).nest.body()
    return not any(SCALAR_OPS[s.op].transcendental for s, _ in walk(body) if isinstance(s, Let))
