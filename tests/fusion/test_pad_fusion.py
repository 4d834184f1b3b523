"""Pad fusion: results that are only wanted with padding around them are written into it; others are copied."""

from __future__ import annotations

import pytest

from graphc.fusion.layout import LAYOUTS
from graphc.fusion.pad_fusion import fuse_pads, halo_source
from graphc.fusion.partition import Partition
from graphc.fusion.vertical import fuse
from graphc.ir.kernel.statements import Load, walk
from graphc.lowering.program import lower_graph
from tests.native import Tolerance, check_all, check_results, run_graph, run_lowered
from tests.passes.check_pass import random_arguments
from tests.passes.graph_text import graph_of

CONV = "{stride=[1,1], padding=[[0,0],[0,0]], dilation=[1,1]}"


def two_convolutions(pad: str, shape: str, more: str = "", result: str = "%z") -> str:
    return f"""
        graph @g(%x: f32[2,3,6,5], %w: f32[4,3,1,1], %b: f32[4,1,1], %v: f32[2,4,3,3]) -> (f32[2,2,{shape}]) {{
          %y = conv(%x, %w) {CONV} : f32[2,4,6,5]
          %r = add(%y, %b) : f32[2,4,6,5]
          %p = pad(%r) {pad}
          {more}
          %z = conv(%p, %v) {CONV} : f32[2,2,{shape}]
          return {result}
        }}"""


@pytest.mark.parametrize(
    ("pad", "shape"),
    [
        ("{low=[0,0,1,1], high=[0,0,1,1], interior=[0,0,0,0]} : f32[2,4,8,7]", "6,5"),
        ("{low=[0,0,0,2], high=[0,0,1,0], interior=[0,0,0,0], value=-1.5} : f32[2,4,7,7]", "5,5"),
    ],
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_first_convolution_writes_into_the_frame(pad: str, shape: str, layout: str):
    graph = graph_of(two_convolutions(pad, shape))
    plan = fuse(graph)
    assert [[n.op.name for n in g.nodes] for g in plan.groups] == [["conv", "add", "pad"], ["conv"]]
    assert [v.name for v in plan.groups[0].outputs] == ["p"]
    program = lower_graph(graph, layout)
    assert len([c for c in program.calls if c.values]) == 2, "beside a copy of the image into another layout"
    arguments = random_arguments(graph)
    check_results(run_lowered(graph, arguments), run_graph(graph, arguments), Tolerance())
    check_all(graph, arguments)


def test_behind_tiles_too():
    graph = graph_of(f"""
        graph @g(%m: f32[36,4,3], %v: f32[2,3,3,3]) -> (f32[1,2,7,6]) {{
          %y = winograd_output(%m) {{tile=4, kernel=3, shape=[1,3,7,6]}} : f32[1,3,7,6]
          %p = pad(%y) {{low=[0,0,1,1], high=[0,0,1,1], interior=[0,0,0,0]}} : f32[1,3,9,8]
          %z = conv(%p, %v) {CONV} : f32[1,2,7,6]
          return %z
        }}""")
    assert [g.kind for g in fuse(graph).groups] == ["nest", "contraction"]
    check_all(graph, random_arguments(graph))


@pytest.mark.parametrize(
    "pad",
    [
        "{low=[0,0,1,1], high=[0,0,1,1], interior=[0,0,1,0]} : f32[2,4,13,7]",
        "{low=[0,0,-1,1], high=[0,0,1,1], interior=[0,0,0,0]} : f32[2,4,6,7]",
    ],
)
def test_other_paddings_are_kernels_of_their_own(pad: str):
    shape = "11,5" if "13" in pad else "4,5"
    graph = graph_of(two_convolutions(pad, shape))
    assert len(fuse(graph).groups) == 3
    check_all(graph, random_arguments(graph))


def test_a_value_with_other_readers_is_copied():
    pad = "{low=[0,0,1,1], high=[0,0,1,1], interior=[0,0,0,0]} : f32[2,4,8,7]"
    text = two_convolutions(pad, "6,5", "%e = exp(%r) : f32[2,4,6,5]", "%z, %e")
    graph = graph_of(text.replace("(f32[2,2,6,5]) {", "(f32[2,2,6,5], f32[2,4,6,5]) {"))
    plan = fuse(graph)
    assert [[n.op.name for n in g.nodes] for g in plan.groups] == [["conv", "add", "exp"], ["pad"], ["conv"]]
    check_all(graph, random_arguments(graph))


def test_nothing_is_read_for_a_frame():
    pad = "{low=[0,0,1,1], high=[0,0,1,1], interior=[0,0,0,0]} : f32[2,4,8,7]"
    program = lower_graph(graph_of(two_convolutions(pad, "6,5")))
    first = program.kernel(program.calls[0].kernel)
    halos = [nest for nest in first.body[1:]]
    assert len(halos) == 2 and not any(isinstance(s, Load) for s, _ in walk(tuple(halos)))


def test_what_is_framed():
    graph = graph_of(two_convolutions("{low=[0,0,1,1], high=[0,0,1,1], interior=[0,0,0,0]} : f32[2,4,8,7]", "6,5"))
    partition = Partition(graph)
    fuse_pads(partition)
    by_name = {n.results[0].name: n for n in graph.nodes()}
    assert len(partition.group_of[by_name["p"]].nodes) == 1, "the sum before it is a group of its own here"
    members = {by_name["p"], by_name["r"]}
    assert halo_source(by_name["p"].results[0], members) is by_name["r"].results[0]
    assert halo_source(by_name["r"].results[0], members) is by_name["r"].results[0]
    assert halo_source(by_name["p"].results[0], {by_name["p"]}) is by_name["p"].results[0]
