"""Horizontal fusion: what is duplicated instead of stored, and which groups that read the same memory become one."""

from __future__ import annotations

from graphc.fusion.vertical import FusionPlan, fuse
from tests.native import Tolerance, check_results, run_graph, run_lowered
from tests.passes.check_pass import random_arguments
from tests.passes.graph_text import graph_of

LARGE, SMALL = "256,300", "8,16"


def check(text: str, compare: bool = False) -> FusionPlan:
    graph = graph_of(text)
    if compare:
        arguments = random_arguments(graph)
        check_results(run_lowered(graph, arguments), run_graph(graph, arguments), Tolerance())
    return fuse(graph)


def stored(plan: FusionPlan) -> set[str]:
    return {v.name for v in plan.stored}


def column_sums(shape: str, escapes: bool = False) -> str:
    """Sums over rows, and of a product of it over columns: the gradient of a normalisation's scale and shift."""
    rows, columns = shape.split(",")
    result = f", f32[{shape}]" if escapes else ""
    return f"""
        graph @g(%x: f32[{shape}], %g: f32[{shape}]) -> (f32[{columns}], f32[{columns}], f32[{shape}]{result}) {{
          %m = sum(%x) {{axes=[1], keepdims=true}} : f32[{rows},1]
          %c = sub(%x, %m) : f32[{shape}]
          %y = exp(%c) : f32[{shape}]
          %p = mul(%c, %g) : f32[{shape}]
          %s = sum(%p) {{axes=[0]}} : f32[{columns}]
          %t = sum(%g) {{axes=[0]}} : f32[{columns}]
          return %s, %t, %y{", %p" if escapes else ""}
        }}"""


def test_a_product_is_computed_again_and_sums_of_columns_become_one():
    plan = check(column_sums(LARGE))
    assert len(plan.groups) == 2 and stored(plan) == {"m", "y", "s", "t"}
    (columns,) = [g for g in plan.groups if g.axes == (0,)]
    assert {n.results[0].name for n in columns.nodes} == {"c", "p", "s", "t"}


def test_small_values_are_stored():
    plan = check(column_sums(SMALL), compare=True)
    assert len(plan.groups) == 3 and "p" in stored(plan)


def test_what_is_there_after_the_call_is_stored_anyway():
    assert "p" in stored(check(column_sums(LARGE, escapes=True)))


def test_expensive_values_are_stored():
    rows, columns = LARGE.split(",")
    plan = check(f"""
        graph @g(%x: f32[{LARGE}]) -> (f32[{columns}], f32[{rows}]) {{
          %e = tanh(%x) : f32[{LARGE}]
          %r = sum(%e) {{axes=[1]}} : f32[{rows}]
          %c = sum(%e) {{axes=[0]}} : f32[{columns}]
          return %c, %r
        }}""")
    assert "e" in stored(plan)


def fused_beside(first: str, second: str, shape: str = LARGE, result: str = LARGE) -> FusionPlan:
    return check(f"""
        graph @g(%x: f32[{shape}]) -> (f32[{result}], f32[{result}]) {{
          %a = {first} : f32[{result}]
          %b = {second} : f32[{result}]
          return %a, %b
        }}""")


def test_maps_of_one_value_become_one():
    assert len(fused_beside("exp(%x)", "neg(%x)").groups) == 1


def test_maps_of_a_small_value_stay():
    assert len(fused_beside("exp(%x)", "neg(%x)", SMALL, SMALL).groups) == 2


def test_sums_over_the_same_axes_become_one():
    assert len(fused_beside("sum(%x) {axes=[1]}", "max(%x) {axes=[1]}", result="256").groups) == 1


def test_a_map_joins_a_row():
    assert len(check(_row_and_map(1)).groups) == 1


def test_a_map_does_not_join_columns():
    assert len(check(_row_and_map(0)).groups) == 2


def _row_and_map(axis: int) -> str:
    kept = LARGE.split(",")[1 - axis]
    return f"""
        graph @g(%x: f32[{LARGE}]) -> (f32[{kept}], f32[{LARGE}]) {{
          %s = sum(%x) {{axes=[{axis}]}} : f32[{kept}]
          %b = neg(%x) : f32[{LARGE}]
          return %s, %b
        }}"""


def test_other_axes_stay_apart():
    rows, columns = LARGE.split(",")
    plan = check(f"""
        graph @g(%x: f32[{LARGE}]) -> (f32[{rows}], f32[{columns}]) {{
          %s = sum(%x) {{axes=[1]}} : f32[{rows}]
          %t = sum(%x) {{axes=[0]}} : f32[{columns}]
          return %s, %t
        }}""")
    assert len(plan.groups) == 2


def test_groups_of_which_one_needs_the_other_stay_apart():
    plan = check(f"""
        graph @g(%x: f32[{LARGE}], %w: f32[300,300]) -> (f32[{LARGE}], f32[{LARGE}]) {{
          %a = exp(%x) : f32[{LARGE}]
          %m = matmul(%a, %w) : f32[{LARGE}]
          %s = cumsum(%m) {{axis=0}} : f32[{LARGE}]
          %b = mul(%x, %s) : f32[{LARGE}]
          return %b, %a
        }}""")
    assert [g.kind for g in plan.groups].count("map") == 2


def test_numbers_of_joined_groups():
    check(f"""
        graph @g(%x: f32[{LARGE}], %s: f32[{LARGE}] state "s") -> (f32[256], f32[{LARGE}]) {{
          %a = sum(%x) {{axes=[1]}} : f32[256]
          %b = add(%x, %s) : f32[{LARGE}]
          %w = state_write(%s, %b) : f32[{LARGE}]
          %c = mul(%x, %x) : f32[{LARGE}]
          return %a, %c
        }}""")
