"""Reads of operands by nodes: plain, guarded, dynamic and replicating reads, views looked through."""

from __future__ import annotations

import pytest

from graphc.ir.graph.graph import Graph, Node
from graphc.ir.kernel.index import Axis, as_index
from graphc.lowering.program import lower_graph
from graphc.passes.operand_access import (
    broadcast_index,
    domain_axes,
    is_virtual,
    look_through_views,
    operand_reads,
    written_value,
)
from tests.passes.graph_text import graph_of


def last_node(text: str) -> Node:
    graph = graph_of(text)
    return graph.outputs[0].node


def view(shape: str, line: str, result: str) -> Graph:
    return graph_of(f"graph @g(%x: f32[{shape}]) -> (f32[{result}]) {{\n  %v = {line} : f32[{result}]\n  return %v\n}}")


def test_domain_axes_leave_out_dimensions_of_one_element():
    first, second, third = domain_axes((3, 1, 4))
    assert first == as_index(Axis("d0", 3)) and second.is_constant and third == as_index(Axis("d2", 4))


def test_broadcast_index():
    i, j = domain_axes((3, 4))
    assert broadcast_index((4,), (i, j)) == (j,)
    assert broadcast_index((3, 1), (i, j)) == (i, as_index(0))
    assert broadcast_index((), (i, j)) == ()


@pytest.mark.parametrize(
    "shape,line,result,plain,guarded,replicating",
    [
        ("3,4", "transpose(%x) {permutation=[1,0]}", "4,3", True, False, False),
        ("3,4", "reshape(%x) {shape=[2,6]}", "2,6", True, False, False),
        ("3,4", "slice(%x) {starts=[0,1], stops=[3,3], steps=[1,1]}", "3,2", True, False, False),
        ("3,4", "broadcast_to(%x) {shape=[2,3,4]}", "2,3,4", True, False, True),
        ("3,4", "pad(%x) {low=[1,0], high=[0,0], interior=[0,0]}", "4,4", False, True, True),
    ],
)
def test_views(shape: str, line: str, result: str, plain: bool, guarded: bool, replicating: bool):
    graph = view(shape, line, result)
    (access,) = look_through_views(graph.outputs[0], domain_axes(graph.outputs[0].shape))
    assert access.value is graph.inputs[0]
    assert (access.plain, access.guarded, access.replicating) == (plain, guarded, replicating)


def test_a_chain_of_views_is_one_read():
    graph = graph_of("""
        graph @g(%x: f32[3,4]) -> (f32[2,4]) {
          %t = transpose(%x) {permutation=[1,0]} : f32[4,3]
          %s = slice(%t) {starts=[0,1], stops=[4,3], steps=[1,1]} : f32[4,2]
          %u = transpose(%s) {permutation=[1,0]} : f32[2,4]
          return %u
        }""")
    (access,) = look_through_views(graph.outputs[0], domain_axes((2, 4)))
    i, j = domain_axes((2, 4))
    assert access.value is graph.inputs[0] and access.index == (i + 1, j)


def test_a_concatenation_reads_each_part_under_a_guard():
    graph = graph_of("""
        graph @g(%x: f32[3], %y: f32[2]) -> (f32[5]) {
          %c = concat(%x, %y) {axis=0} : f32[5]
          return %c
        }""")
    found = look_through_views(graph.outputs[0], domain_axes((5,)))
    assert [a.value for a in found] == graph.inputs and all(a.guarded for a in found)


def test_gather_reads_at_a_position_that_is_data():
    node = last_node("""
        graph @g(%x: f32[5,2], %i: i64[3]) -> (f32[3,2]) {
          %g = gather(%x, %i) {axis=0} : f32[3,2]
          return %g
        }""")
    reads = {a.value.name: a.dynamic for a in operand_reads(node, domain_axes((3, 2)))}
    assert reads == {"x": True, "i": False}


def test_what_is_virtual():
    graph = graph_of("""
        graph @g(%x: f32[2,3], %s: f32[3] state "s") -> (f32[3,2], i64[4], f32[3], f32[2,3]) {
          %c = constant() {value=f32[3](1.0, 2.0, 3.0)} : f32[3]
          %t = transpose(%x) {permutation=[1,0]} : f32[3,2]
          %i = iota() {shape=[4], axis=0} : i64[4]
          %w = state_write(%s, %c) : f32[3]
          %a = add(%x, f32(1.0)) : f32[2,3]
          return %t, %i, %w, %a
        }""")
    virtual = {n.op.name for n in graph.nodes() if is_virtual(n)}
    assert virtual == {"transpose", "iota", "state_write", "constant"}
    assert not is_virtual(graph.inputs[0].node)
    stored = [n for n in graph.nodes() if n.op.name == "constant" and n.results[0].shape]
    assert stored and not is_virtual(stored[0])
    assert written_value(graph.outputs[2]) is stored[0].results[0]
    assert written_value(graph.outputs[3]) is graph.outputs[3]


def test_numbers_of_sizes_need_no_memory():
    graph = graph_of("""
        dim batch = 1..8 hint 4
        graph @g(%x: f32[batch], %s: f32[]) -> (f32[batch], f32[]) {
          %n = size() {value=3*batch} : i64[]
          %c = cast(%n) {dtype=f32} : f32[]
          %d = div(f32(1.0), %c) : f32[]
          %e = mul(%d, %s) : f32[]
          %y = mul(%x, %d) : f32[batch]
          return %y, %e
        }""")
    virtual = {n.results[0].name for n in graph.nodes() if n.operands and is_virtual(n)}
    assert virtual == {"c", "d"}
    assert len(lower_graph(graph).calls) == 2
