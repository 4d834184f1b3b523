"""Texts of fusion plans: they parse back, and lowering goes on from them."""

from __future__ import annotations

import pytest

import graphc as gc
from graphc.base.errors import ParseError
from graphc.compiler.stages import Stages
from graphc.fusion.layout import LAYOUTS
from graphc.fusion.text import parse_plan, print_plan
from graphc.ir.graph.text import collect_data
from graphc.ir.kernel.text import print_program
from graphc.lowering.program import lower_layouts, plan_graph
from graphc.passes.pipeline import optimize
from tests.end_to_end.seeded_graphs import seeded_graph


@pytest.mark.parametrize("seed", range(40))
def test_plans_of_random_graphs_parse_back_and_lower_to_the_same_program(seed: int):
    plan = plan_graph(optimize(seeded_graph(seed)))
    text = print_plan(plan)
    again = parse_plan(text, collect_data(plan.graph))
    assert print_plan(again) == text
    (first,), (second,) = (lower_layouts(p.graph, LAYOUTS[:1], plan=p) for p in (plan, again))
    assert print_program(first) == print_program(second)


def test_a_row_group_names_its_axes_and_stored_values():
    graph = gc.trace(lambda x: x.softmax(1) * 2, gc.zeros(4, 8))
    text = Stages(graph).text("fused")
    assert "row [4, 8] axes [1]: " in text.partition("plan {")[2]


def test_sizes_of_named_dimensions_are_read_back():
    graph = gc.trace(lambda x: x.exp().sum(1), gc.zeros(4, 8), dims={"x": (gc.Dim("batch"),)})
    text = Stages(graph).text("fused")
    assert "[batch, 8]" in text
    assert print_plan(parse_plan(text)) == text


@pytest.mark.parametrize(
    ("line", "message"),
    [("  elementwise [4]: %none", "has no value %none"), ("  a kernel", "is not a line of a plan")],
)
def test_wrong_lines_are_refused(line: str, message: str):
    text = Stages(gc.trace(lambda x: x + 1, gc.zeros(4))).text("fused")
    head, _, _ = text.partition("plan {\n")
    with pytest.raises(ParseError, match=message):
        parse_plan(f"{head}plan {{\n{line}\n}}\n")
