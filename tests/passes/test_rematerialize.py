"""Rematerialization: which values get a second computation, equal results, and what that saves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import graphc
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.memory.bufferize import plan_memory
from graphc.codegen.schedule.pipeline import schedule_program
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import Evaluator, copy
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import print_graph
from graphc.ir.graph.verify import verify_graph
from graphc.lowering.program import lower_graph
from graphc.nn import functional as F
from graphc.passes.pipeline import PIPELINE, optimize
from graphc.passes.rematerialize import Rematerialize
from tests.passes.check_pass import check_equal, random_arguments

ROWS = """
graph @f(%x: f32[32,2], %y: f32[32,2]) -> (f32[32,32]) {
  %a = matmul(%x, %y) {transpose_b=true} : f32[32,32]
  %p = exp(%a) : f32[32,32]
  %o = matmul(%p, %y) : f32[32,2]
  %d = matmul(%o, %y) {transpose_b=true} : f32[32,32]
  %r = mul(%p, %d) : f32[32,32]
  return %r
}
"""


def large_from(least: int) -> Costs:
    """Costs by which values of so many bytes are computed again."""
    return replace(DEFAULT, rewrites=replace(DEFAULT.rewrites, rematerialized_bytes=least))


def separated(text: str, least: int = 4096) -> tuple[Graph, Graph, int]:
    """The graph before and after, and how many values were not kept."""
    before = parse_graph(text)
    result = Rematerialize(costs=large_from(least)).run(copy(before))
    verify_graph(result.graph)
    assert len(result.reasons) == result.changed and all("bytes are computed again" in r for r in result.reasons)
    return before, result.graph, result.changed


def test_a_use_behind_a_product_gets_its_own():
    before, after, changed = separated(ROWS)
    assert changed == 1
    assert print_graph(after).count("exp(") == 2
    first, second = (n for n in after.nodes() if n.op.name == "exp")
    assert [n.op.name for n, _ in after.uses(first.result)] == ["matmul"]
    assert [n.op.name for n, _ in after.uses(second.result)] == ["mul"]
    order = [n.op.name for n in after.nodes()]
    assert order == ["matmul", "exp", "matmul", "matmul", "matmul", "exp", "mul"], "the copy stands before its use"
    arguments = random_arguments(before)
    np.testing.assert_array_equal(Evaluator().run(after, arguments)[0], Evaluator().run(before, arguments)[0])


@pytest.mark.parametrize(
    ("text", "least"),
    [
        (ROWS, 4097),  # not large
        (ROWS.replace("32,2]", "32,16]"), 4096),  # what it is made of is as large
        (ROWS.replace("return %r", "return %p").replace("%r = mul(%p, %d) : f32[32,32]", ""), 4096),  # an output
        (ROWS.replace("mul(%p, %d)", "mul(%p, %p)"), 4096),  # no use behind a product
    ],
)
def test_what_is_kept(text: str, least: int):
    _, _, changed = separated(text, least)
    assert changed == 0


def test_long_products_are_kept():
    text = ROWS.replace("[32,32]", "[2048,2048]").replace("[32,2]", "[2048,160]")
    assert separated(text)[2] == 0
    assert separated(text.replace(",160]", ",128]"))[2] == 1


def attention(length: int, dropout: float = 0.0) -> Graph:
    """Gradients of attention for queries, keys and values."""

    def loss(q: graphc.Tensor, k: graphc.Tensor, v: graphc.Tensor) -> graphc.Tensor:
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout).square().sum()

    return graphc.trace(graphc.value_and_grad(loss, argnums=(0, 1, 2)), *(graphc.randn(2, length, 4) for _ in range(3)))


@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_weights_of_attention_are_not_kept(dropout: float):
    graph = attention(64, dropout)
    kept = optimize(graph)
    small = optimize(graph, costs=large_from(1 << 14))
    check_equal(kept, small, 0.0, 0.0)
    assert sum(n.op.name == "matmul" for n in small.nodes()) == 1 + sum(n.op.name == "matmul" for n in kept.nodes())


def test_memory_of_long_attention():
    """Three arrays of 2 x 2100 x 2100 numbers would be 106 MB."""
    program = plan_memory(schedule_program(lower_graph(optimize(attention(2100))), host_target()))
    assert program.arena < 80e6


def test_it_comes_last():
    assert isinstance(PIPELINE[-1], Rematerialize)
