"""Reads of quantized codes: numbers that another kernel reads come from their bytes."""

from __future__ import annotations

from graphc.base.dtypes import float32, uint8
from graphc.base.records import dataclass
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.rewrite import Rule, apply_rules
from graphc.ir.op import Trait
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.elementwise import cast, sub
from graphc.ops.pointwise.quantization import quantize_linear
from graphc.passes.base import PassResult

_CODES = 255
"""Difference of the largest and the smallest code of a byte."""


@dataclass(frozen=True)
class ReadCodes:
    """Convert codes from their bytes where these are in memory anyway, or where several kernels read the numbers.

    Needs: common subexpressions merged. Does: replaces integers that ``quantize_linear`` keeps as f32 by a conversion
    of u8 or i8 codes, so that fusion can read a byte where it would store four. Leaves: integers that one kernel reads,
    which are in a register.

        %k = quantize_linear(%x) {dtype=u8}     ->    %k = quantize_linear(%x) {dtype=u8}
        %n = quantize_linear(%x) {dtype=f32}          %n = cast(%k) {dtype=f32}
        %y = mul(%n, f32(0.5))                        %y = mul(%n, f32(0.5))
    """

    name: str = "read-codes"

    def run(self, graph: Graph) -> PassResult:
        """Change the graph in place; count conversions."""
        return PassResult(graph, apply_rules(graph, [Rule(quantize_linear.op.name, _from_bytes, self.name)]))


def _from_bytes(graph: Graph, node: Node) -> Value | None:
    attrs = node.attrs
    if attrs["dtype"] is not float32 or attrs["high"] - attrs["low"] != _CODES:
        return None
    stored = _stored_form(graph, node)
    if stored is None and not _is_read_apart(graph, node.results[0]):
        return None
    zero, dtype = stored or (-attrs["low"], uint8)
    with use(GraphDispatcher(graph, node.location)):
        codes = quantize_linear(node.operands[0], **{**attrs, "zero": zero, "dtype": dtype, "signed_zero": False})
        numbers = cast(codes, dtype=float32)
        return sub(numbers, zero) if zero else numbers


def _stored_form(graph: Graph, node: Node) -> tuple[float, object] | None:
    """Return zero point and type of a node with the same codes as bytes; None without one."""
    for other, _ in graph.uses(node.operands[0]):
        same = other.op is node.op and all(other.attrs[name] == node.attrs[name] for name in ("scale", "low", "high"))
        if same and other.attrs["dtype"] is not float32:
            return other.attrs["zero"], other.attrs["dtype"]
    return None


def _is_read_apart(graph: Graph, value: Value) -> bool:
    """Check whether several nodes read the integers, or the numbers that one node makes of them, and one is not
    elementwise: then not all of them are in one kernel."""
    uses = graph.uses(value)
    if len(uses) == 1 and uses[0][0].results:
        uses = graph.uses(uses[0][0].results[0])
    return len(uses) > 1 and not all(node.op.has(Trait.ELEMENTWISE) for node, _ in uses)
