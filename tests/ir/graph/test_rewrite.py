"""The rewrite driver: what is visited again, what is erased, names, locations, and rules that are wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings

import graphc.ops.registry  # noqa: F401  (fills the registry)
from graphc.base.dtypes import float32
from graphc.errors import PassError
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.interpret import copy, evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.rewrite import Rule, apply_rules
from graphc.ir.graph.text import print_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.op import REGISTRY
from graphc.ir.types import TensorType
from tests.ir.random_graphs import graphs


def make(graph: Graph, op: str, *operands: Value, **attrs: object) -> Value:
    return emit(graph, REGISTRY[op], operands, attrs)[0]


def double_negation(graph: Graph, node: Node) -> Value | None:
    inner = node.operands[0].node
    return inner.operands[0] if inner.op is node.op else None


def add_itself(graph: Graph, node: Node) -> Value | None:
    """``x + x`` is ``2 * x``."""
    x, y = node.operands
    return make(graph, "mul", x, graph.scalar(2, x.dtype)) if x is y else None


def times_power(graph: Graph, node: Node) -> Value | None:
    """``(x * a) * b`` is ``x * (a * b)`` for scalar constants."""
    inner, scalar = node.operands
    if not scalar.is_scalar_constant or inner.node.op is not node.op or not inner.node.operands[1].is_scalar_constant:
        return None
    product = inner.node.operands[1].node.attrs["value"] * scalar.node.attrs["value"]
    return make(graph, "mul", inner.node.operands[0], graph.scalar(product, scalar.dtype))


RULES = [Rule("neg", double_negation), Rule("add", add_itself), Rule("mul", times_power)]


def check(before: str, after: str, count: int, rules: list[Rule] = RULES) -> None:
    graph = parse_graph(before)
    assert apply_rules(graph, rules) == count
    verify_graph(graph)
    assert print_graph(graph) == after
    assert apply_rules(graph, rules) == 0


def test_replaced_by_an_existing_value():
    check(
        """graph @g(%x: f32[2]) -> (f32[2], f32[2]) {
  %a = neg(%x) : f32[2]
  %b = neg(%a) : f32[2]
  %c = exp(%b) : f32[2]
  return %c, %b
}
""",
        """graph @g(%x: f32[2]) -> (f32[2], f32[2]) {
  %c = exp(%x) : f32[2]
  return %c, %x
}
""",
        1,
    )


def test_operands_with_other_uses_stay():
    check(
        """graph @g(%x: f32[2]) -> (f32[2], f32[2]) {
  %a = neg(%x) : f32[2]
  %b = neg(%a) : f32[2]
  return %a, %b
}
""",
        """graph @g(%x: f32[2]) -> (f32[2], f32[2]) {
  %a = neg(%x) : f32[2]
  return %a, %x
}
""",
        1,
    )


def test_new_nodes_and_users_are_looked_at_again():
    """Each sum becomes a product, and each product joins the one before."""
    check(
        """graph @g(%x: f32[2]) -> (f32[2]) {
  %a = add(%x, %x) : f32[2]  // fc1 m.py:1
  %b = add(%a, %a) : f32[2]  // fc2 m.py:2
  %c = add(%b, %b) : f32[2]  // fc3 m.py:3
  return %c
}
""",
        """graph @g(%x: f32[2]) -> (f32[2]) {
  %c = mul(%x, f32(8.0)) : f32[2]  // fc3 m.py:3
  return %c
}
""",
        5,
    )


def test_new_values_take_names_and_locations():
    check(
        """graph @g(%x: f32[2]) -> (f32[2]) {
  %fc1.y = add(%x, %x) : f32[2]  // fc1 m.py:1
  %fc2.y = exp(%fc1.y) : f32[2]  // fc2 m.py:2
  return %fc2.y
}
""",
        """graph @g(%x: f32[2]) -> (f32[2]) {
  %fc1.y = mul(%x, f32(2.0)) : f32[2]  // fc1 m.py:1
  %fc2.y = exp(%fc1.y) : f32[2]  // fc2 m.py:2
  return %fc2.y
}
""",
        1,
    )


def test_scalars_without_use_are_erased_and_others_kept():
    graph = parse_graph("""graph @g(%x: f32[2]) -> (f32[2], f32[]) {
  %a = mul(%x, f32(3.0)) : f32[2]
  %b = mul(%a, f32(5.0)) : f32[2]
  return %b, f32(5.0)
}
""")
    assert apply_rules(graph, RULES) == 1
    scalars = [n.attrs["value"].item() for n in graph.nodes() if n.results[0].is_scalar_constant]
    assert sorted(scalars) == [5.0, 15.0]


def test_first_rule_in_order_is_taken():
    seen: list[str] = []

    def rule(name: str) -> Callable:
        def rewrite(graph: Graph, node: Node) -> Value:
            seen.append(name)
            return make(graph, "exp", node.operands[0])

        return rewrite

    graph = parse_graph("graph @g(%x: f32[2]) -> (f32[2]) { %y = neg(%x) : f32[2] return %y }")
    assert apply_rules(graph, [Rule("neg", rule("one")), Rule("neg", rule("two"))]) == 1
    assert seen == ["one"]


def test_ops_with_several_results():
    text = """graph @g(%x: f32[2]) -> (f32[2], f32[2]) {
  %y.0, %y.1 = call(%x) {forward=graph @f(%a: f32[2]) -> (f32[2], f32[2]) {
    %b = exp(%a) : f32[2]
    return %b, %a
  }, backward=graph @f.grad(%g: f32[2], %h: f32[2]) -> (f32[2]) {
    return %g
  }, results=2} : f32[2], f32[2]
  return %y.1, %y.0
}
"""

    def open_call(graph: Graph, node: Node) -> list[Value]:
        return [make(graph, "exp", node.operands[0]), node.operands[0]]

    after = """graph @g(%x: f32[2]) -> (f32[2], f32[2]) {
  %y.0 = exp(%x) : f32[2]
  return %x, %y.0
}
"""
    check(text, after, 1, [Rule("call", open_call)])


def test_nodes_that_are_not_pure_stay_and_are_not_repeated():
    check(
        """graph @g(%x: f32[2]) -> (f32[2]) {
  %t = tap(%x) {name="a"} : f32[2]
  %y = exp(%t) : f32[2]
  return %y
}
""",
        """graph @g(%x: f32[2]) -> (f32[2]) {
  %t = tap(%x) {name="a"} : f32[2]
  %y = exp(%x) : f32[2]
  return %y
}
""",
        1,
        [Rule("tap", lambda graph, node: node.operands[0] if graph.uses(node.result) else None)],
    )


def test_returning_the_same_value_is_no_change():
    graph = parse_graph("graph @g(%x: f32[2]) -> (f32[2]) { %y = neg(%x) : f32[2] return %y }")
    assert apply_rules(graph, [Rule("neg", lambda graph, node: node.result)]) == 0


def test_rules_that_undo_each_other():
    graph = parse_graph("graph @g(%x: f32[2]) -> (f32[2]) {\n  %y = neg(%x) : f32[2]  // fc1 m.py:1\n  return %y\n}")
    forth = Rule("neg", lambda graph, node: make(graph, "exp", node.operands[0]), "neg-to-exp")
    back = Rule("exp", lambda graph, node: make(graph, "neg", node.operands[0]), "exp-to-neg")
    with pytest.raises(PassError) as error:
        apply_rules(graph, [forth, back])
    assert str(error.value) == (
        "rule neg-to-exp is applied without end: its outcome was rewritten 1000 times\n"
        "  where  %y = neg(...)\n"
        "  from   fc1, m.py:1\n"
        "  try    do not let a rule undo another one, or emit nodes that it matches"
    )


def test_rule_that_grows_what_it_matches():
    def grow(graph: Graph, node: Node) -> Value:
        return make(graph, "neg", make(graph, "neg", node.operands[0]))

    graph = parse_graph("graph @g(%x: f32[2]) -> (f32[2]) { %y = neg(%x) : f32[2] return %y }")
    with pytest.raises(PassError, match="rule grow is applied without end"):
        apply_rules(graph, [Rule("neg", grow)])


def test_rule_that_changes_the_type():
    graph = parse_graph("graph @g(%x: f32[2]) -> (f32[2]) { %y = neg(%x) : f32[2] return %y }")
    to_sum = Rule("neg", lambda graph, node: make(graph, "sum", node.operands[0], axes=(0,)), "to-sum")
    with pytest.raises(PassError, match=r"rule to-sum replaces f32\[2\] by f32\[\]"):
        apply_rules(graph, [to_sum])


def test_rule_that_uses_what_it_replaces():
    graph = parse_graph("graph @g(%x: f32[2]) -> (f32[2]) { %y = neg(%x) : f32[2] return %y }")
    wrap = Rule("neg", lambda graph, node: make(graph, "exp", node.result), "wrap")
    with pytest.raises(PassError, match=r"rule wrap replaces %y by something computed from it \(exp\)"):
        apply_rules(graph, [wrap])


def test_long_chains_take_linear_time():
    """Two thousand negations, folded from either end without recursion or repeated sorting."""
    graph = Graph()
    value = graph.add_input(TensorType(float32, (2,)), "x")
    for _ in range(2000):
        value = make(graph, "neg", value)
    graph.set_outputs([value])
    visits = 0

    def counted(graph: Graph, node: Node) -> Value | None:
        nonlocal visits
        visits += 1
        return double_negation(graph, node)

    assert apply_rules(graph, [Rule("neg", counted)]) == 1000
    assert graph.outputs == tuple(graph.inputs) and len(graph) == 0
    assert visits < 8000


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_random_graphs_keep_their_meaning(graph: Graph):
    before = copy(graph)
    apply_rules(graph, RULES)
    verify_graph(graph)
    rng = np.random.default_rng(0)
    arguments = [rng.integers(0, 2, v.shape).astype(v.dtype.numpy) for v in graph.inputs]
    with np.errstate(all="ignore"):
        for a, b in zip(evaluate(before, arguments), evaluate(graph, arguments), strict=True):
            np.testing.assert_array_equal(a, b)
