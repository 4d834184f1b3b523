"""Lowering of one group: chains that are longer than Python's stack is deep, under conditions too."""

from __future__ import annotations

import sys

import pytest

from graphc.fusion.partition import Partition
from graphc.lowering.group import lower_group
from tests.passes.graph_text import graph_of

STEPS = {
    "an op": ("%{1} = sin(%{0}) : f32[4]", 1),
    "two reads of one value": ("%{1} = mul(%{0}, %{0}) : f32[4]", 1),
    "a read under a condition": (
        "%p{1} = pad(%{0}) {{low=[1], high=[0], interior=[0]}} : f32[5]\n"
        "%{1} = slice(%p{1}) {{starts=[0], stops=[4], steps=[1]}} : f32[4]",
        1,
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_group_of_any_length_is_lowered(step: str):
    text, _ = STEPS[step]
    lines = "\n".join(text.format(f"v{i}", f"v{i + 1}") for i in range(500))
    graph = graph_of(f"graph @g(%v0: f32[4]) -> (f32[4]) {{\n{lines}\nreturn %v500\n}}")
    partition = Partition(graph)
    group = partition.group_of[graph.outputs[0].node]
    group.nodes[:] = [n for n in graph.nodes() if not n.results[0].is_scalar_constant]
    group.outputs = list(graph.outputs)
    place = {graph.inputs[0]: "v0", graph.outputs[0]: "out0"}
    assert sys.getrecursionlimit() < 2000
    kernel, storages = lower_group(group, place, frozenset(graph.outputs))
    assert storages == ("v0", "out0") and kernel.body
