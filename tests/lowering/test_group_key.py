"""Keys of groups: equal where kernels are equal, different where anything that a kernel depends on differs."""

from __future__ import annotations

import pytest

from graphc.fusion.vertical import fuse
from graphc.lowering.group_key import group_key
from graphc.lowering.program import lower_graph
from tests.passes.graph_text import graph_of

ARGUMENTS = "%a: f32[4,6], %b: f32[4,6], %c: f32[6,4], %d: f32[6]"


def keys(*lines: str) -> list:
    """Keys of the groups of a graph, in order."""
    names = [line.split(" =")[0] for line in lines]
    types = [line.split(" : ")[1] for line in lines]
    text = f"graph @g({ARGUMENTS}) -> ({', '.join(types)}) {{\n" + "\n".join(lines) + f"\nreturn {', '.join(names)}\n}}"
    graph = graph_of(text)
    plan = fuse(graph)
    place = {v: v.name for v in (*graph.inputs, *(r for n in graph.nodes() for r in n.results if r in plan.stored))}
    return [group_key(g, place, plan.stored, {}) for g in plan.groups]


def test_equal_groups_of_other_storages():
    (first, one), (second, two) = keys("%x = sum(%a) {axes=[1]} : f32[4]", "%y = sum(%b) {axes=[1]} : f32[4]")
    assert first == second and one == ("a", "x") and two == ("b", "y")


@pytest.mark.parametrize(
    "other",
    [
        "%y = max(%b) {axes=[1]} : f32[4]",
        "%y = sum(%b) {axes=[0]} : f32[6]",
        "%y = sum(%c) {axes=[0]} : f32[4]",
    ],
)
def test_groups_that_differ(other: str):
    (first, _), (second, _) = keys("%x = sum(%a) {axes=[1]} : f32[4]", other)
    assert first != second


def test_operands_in_one_storage_are_not_operands_in_two():
    (once, _), (twice, _) = keys("%x = matmul(%a, %c) : f32[4,4]", "%y = matmul(%c, %c) {transpose_b=true} : f32[6,6]")
    assert once != twice


def test_layers_share_their_kernels():
    lines = ["%x0 = exp(%a) : f32[4,6]"]
    for i in range(6):
        lines.append(f"%m{i} = sum(%x{i}) {{axes=[0]}} : f32[6]")
        lines.append(f"%s{i} = mul(%x{i}, %m{i}) : f32[4,6]")
        lines.append(f"%x{i + 1} = matmul(%s{i}, %w) : f32[4,6]")
    text = f"graph @g({ARGUMENTS}, %w: f32[6,6]) -> (f32[4,6]) {{\n" + "\n".join(lines) + "\nreturn %x6\n}"
    program = lower_graph(graph_of(text))
    assert len(program.kernels) < len(program.calls) / 2
