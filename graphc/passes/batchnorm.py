"""Batch-norm folding: move the scale of each output channel from after a convolution or product into its weights."""

from __future__ import annotations

from functools import partial

import numpy as np

from graphc.base.records import dataclass
from graphc.base.sizes.size import hint, is_one
from graphc.codegen.machine.costs import DEFAULT, Costs, RewriteCosts
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.graph.rewrite import Rule, apply_rules
from graphc.ir.op import Trait
from graphc.ops.contraction.convolution import conv
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement.shape import broadcast_to, reshape
from graphc.ops.pointwise.elementwise import add, div, mul, sub
from graphc.passes.base import PassResult
from graphc.passes.call_invariant import is_call_invariant, leaf_classes
from graphc.passes.operand_access import is_widening


@dataclass(frozen=True)
class BatchNormFolding:
    """Multiplies weights instead of results, as inference with batch normalization allows.

    Needs: canonical form; normalization by fixed statistics: vectors computed from params, states and constants alone.
    In training the statistics depend on the input, so nothing matches.
    Does: conv(x, w) * s + t -> conv(x, w * s) + t. Shifts before the scale are scaled too; consecutive shifts are
    added up. Only where the product has no other reader (a graph that needs it for gradients keeps it), and where it
    pays: weights and scale are constants or weights of the graph (class ``weight``), or the result is many times as
    large as the weights (``scaled_weights``). Does nothing in strict order, since the products round differently.
    Leaves: w * s and t as small nodes; constant folding computes them when they are constants.

        %y = conv(%x, %w) {...} : f32[1,8,30,30]        %v = mul(%w, %s.1) : f32[8,3,3,3]
        %m = mul(%y, %s) : f32[1,8,30,30]        ->     %m = conv(%x, %v) {...} : f32[1,8,30,30]
        %z = add(%m, %t) : f32[1,8,30,30]               %z = add(%m, %t) : f32[1,8,30,30]
    """

    name: str = "fold-batch-norm"
    costs: Costs = DEFAULT

    def run(self, graph: Graph) -> PassResult:
        """Change the graph in place; count rewritten nodes."""
        rules = [] if self.costs.strict_order else _rules(self.costs.rewrites)
        return PassResult(graph, apply_rules(graph, rules))


MODERATE = 2.0**64
"""Largest magnitude of a constant scale, the square root of the range of f32; the smallest one is its inverse, or 0.
Beyond these, weights overflow or vanish. Sums of infinite weights are NaN where the scaled product is not."""


def _is_moderate(scale: Value, divisor: bool) -> bool:
    node = scale.node
    while node.op in (broadcast_to.op, reshape.op):
        node = node.operands[0].node
    if node.op is not CONSTANT:
        return True
    sizes = np.abs(np.asarray(node.attrs["value"], np.float64))
    inside = (sizes >= 1 / MODERATE) & (sizes <= MODERATE)
    return bool(np.all(inside if divisor else inside | (sizes == 0)))


def _is_static(value: Value) -> bool:
    classes = leaf_classes(value)
    return classes is not None and "input" not in classes


@dataclass(frozen=True)
class _Product:
    """A convolution or a product with one matrix, with output channels along one dimension of its result."""

    node: Node

    @property
    def weight(self) -> Value:
        return self.node.operands[1]

    @property
    def channel(self) -> int:
        """Dimension of the result that counts output channels."""
        return 1 if self.node.op is conv.op else len(self.node.result.shape) - 1

    def is_vector(self, value: Value) -> bool:
        """Check whether ``value`` is fixed and has at most one element per output channel, aligned with the result."""
        shape = self.node.result.shape
        if len(value.shape) > len(shape):
            return False
        aligned = (1,) * (len(shape) - len(value.shape)) + value.shape
        return all(extent == 1 or d == self.channel for d, extent in enumerate(aligned)) and _is_static(value)

    def pays(self, scale: Value, costs: RewriteCosts) -> bool:
        """Check whether scaling the weights costs nothing at run time, or little compared with scaling the result."""
        if is_call_invariant(self.weight) and is_call_invariant(scale):
            return True
        smaller = hint(self.weight.type.size) * costs.scaled_weights <= hint(self.node.result.type.size)
        return _is_static(self.weight) and smaller

    def scaled(self, graph: Graph, scale: Value) -> Value:
        """Return the product with its weights multiplied by a vector, at the location of the original."""
        with use(GraphDispatcher(graph, self.node.location)):
            return self._scaled(scale)

    def _scaled(self, scale: Value) -> Value:
        if not is_one(scale.type.size):
            shape = [1] * len(self.weight.shape)
            along_columns = self.node.op is matmul.op and not self.node.attrs["transpose_b"]
            shape[1 if along_columns else 0] = scale.type.size
            scale = reshape(scale, shape=shape)
        elif scale.shape:
            scale = reshape(scale, shape=())
        function = conv if self.node.op is conv.op else matmul
        return function(self.node.operands[0], mul(self.weight, scale), **self.node.attrs)


def _product(graph: Graph, value: Value) -> _Product | None:
    """Match ``value`` as a product that only one node reads and whose weights are not stored narrow.

    A product of fixed operands does not match: it may itself be a shift, and the rules would exchange the two forever.
    """
    op = value.node.op
    if op is not conv.op and not (op is matmul.op and len(value.node.operands[1].shape) == 2):
        return None
    weight = value.node.operands[1]
    if is_widening(weight.node) or weight.dtype.kind == "p":
        return None
    return _Product(value.node) if graph.is_used_once(value) and not _is_static(value) else None


@dataclass(frozen=True)
class _Shifted:
    """The expression product + shift, or product - shift."""

    product: _Product
    shift: Value
    negative: bool


def _shifted(graph: Graph, value: Value) -> _Shifted | None:
    """Match ``value`` as a shifted product that only one node reads."""
    node = value.node
    if node.op not in (add.op, sub.op) or not graph.is_used_once(value):
        return None
    for y, t in _pairs(node):
        product = _product(graph, y)
        if product is not None and y.shape == value.shape and product.is_vector(t):
            return _Shifted(product, t, node.op is sub.op)
    return None


def _pairs(node: Node) -> list[tuple[Value, Value]]:
    """List the (value, vector) candidates of a binary node."""
    x, y = node.operands
    return [(x, y), (y, x)] if node.op.has(Trait.COMMUTATIVE) else [(x, y)]


def _scale(costs: RewriteCosts, graph: Graph, node: Node) -> Value | None:
    """Rewrite product * s as the product with scaled weights; (product + t) * s likewise, plus t * s."""
    for y, s in _pairs(node):
        shifted = _shifted(graph, y)
        product = shifted.product if shifted else _product(graph, y)
        if product is None or y.shape != node.result.shape or not product.is_vector(s):
            continue
        if not product.pays(s, costs) or not _is_moderate(s, node.op is div.op):
            continue
        with use(GraphDispatcher(graph, node.location)):
            factor = div(1.0, s) if node.op is div.op else s
            result = product.scaled(graph, factor)
            if shifted is None:
                return result
            return (sub if shifted.negative else add)(result, mul(shifted.shift, factor))
    return None


def _shift(graph: Graph, node: Node) -> Value | None:
    """Rewrite (product + t) + u as product + (t + u), with either sign."""
    for y, u in _pairs(node):
        shifted = _shifted(graph, y)
        if shifted is None or y.shape != node.result.shape or not shifted.product.is_vector(u):
            continue
        t, down = shifted.shift, node.op is sub.op
        with use(GraphDispatcher(graph, node.location)):
            if shifted.negative:
                return sub(shifted.product.node.result, add(t, u) if down else sub(t, u))
            return add(shifted.product.node.result, sub(t, u) if down else add(t, u))
    return None


def _rules(costs: RewriteCosts) -> list[Rule]:
    """Return the rules that move scales up and shifts down."""
    scale, doc = partial(_scale, costs), _scale.__doc__ or ""
    return [
        *(Rule("mul", scale, "scale", doc), Rule("div", scale, "scale", doc)),
        *(Rule("add", _shift), Rule("sub", _shift)),
    ]
