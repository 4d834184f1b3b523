"""Layouts: which values are images, where their elements lie, and that no number depends on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphc.codegen.machine.target import target_named
from graphc.fusion.layout import (
    LAYOUTS,
    dimension_order,
    image_values,
    possible_layouts,
    strides_of,
    turned_strides,
)
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Store, walk
from graphc.ir.kernel.verify import verify_program
from graphc.ir.types import row_major_strides
from graphc.lowering.program import lower_graph, lower_layouts
from tests.native import Native, Tolerance, check_results, run_graph, run_native, scheduled, target_or_skip
from tests.passes.check_pass import random_arguments
from tests.passes.graph_text import graph_of

NET = """
    graph @net(%x: f32[8,2,9,7], %w: f32[3,2,2,2], %b: f32[3,1,1], %v: f32[4,3,2,2]) -> (f32[8,4,3,2], f32[8,72]) {
      %c = conv(%x, %w) {stride=[1,1], padding=[[0,0],[0,0]], dilation=[1,1]} : f32[8,3,8,6]
      %a = add(%c, %b) : f32[8,3,8,6]
      %m = max_pool(%a) {kernel=[2,2], stride=[2,2], padding=[[0,0],[0,0]], dilation=[1,1]} : f32[8,3,4,3]
      %t = tanh(%m) : f32[8,3,4,3]
      %d = conv(%t, %v) {stride=[1,1], padding=[[0,0],[0,0]], dilation=[1,1]} : f32[8,4,3,2]
      %e = exp(%t) : f32[8,3,4,3]
      %s = reshape(%e) {shape=[8,36]} : f32[8,36]
      %f = concat(%s, %s) {axis=1} : f32[8,72]
      return %d, %f
    }"""


def test_images_are_what_convolutions_and_pools_touch():
    names = {v.name for v in image_values(graph_of(NET))}
    assert {"x", "c", "a", "m", "t", "d", "e"} <= names and not names & {"w", "v", "s", "f"}


def test_one_layout_is_enough_without_images():
    plain = graph_of("graph @g(%x: f32[8,2,9,7]) -> (f32[8,2,9,7]) {\n  %e = exp(%x) : f32[8,2,9,7]\n  return %e\n}")
    assert possible_layouts(plain) == LAYOUTS[:1] and possible_layouts(graph_of(NET)) == LAYOUTS


@given(st.lists(st.integers(1, 5), min_size=3, max_size=5).map(tuple), st.sampled_from(LAYOUTS))
def test_every_element_has_a_place_of_its_own(shape: tuple[int, ...], layout: str):
    places = np.zeros(shape, np.int64)
    for axis, stride in enumerate(strides_of(shape, layout)):
        places += np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))]) * stride
    assert sorted(places.ravel()) == list(range(places.size))


def test_orders():
    assert strides_of((2, 3, 4, 5), "channels_first") == row_major_strides((2, 3, 4, 5))
    assert dimension_order(4, "channels_last") == (0, 2, 3, 1)
    assert dimension_order(4, "batch_last") == (1, 2, 3, 0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_number_depends_on_the_layout(layout: str):
    graph = graph_of(NET)
    arguments = random_arguments(graph)
    expected, _ = run_graph(graph, arguments)
    program = lower_graph(graph, layout)
    verify_program(program)
    Tolerance().check(run_program(program, arguments), expected)
    machine = target_or_skip("host")
    Tolerance().check(Native(scheduled(program, machine), machine)(arguments), expected)


def test_layouts_differ_in_temporaries_only():
    programs = lower_layouts(graph_of(NET), LAYOUTS)
    assert len({p.kernels for p in programs}) == len(LAYOUTS)
    for program in programs:
        scheduled(program, target_named("sse2"))


HEADS = """
    graph @heads(%a: f32[2,3,5,5], %v: f32[2,3,5,4]) -> (f32[2,5,12]) {
      %o = matmul(%a, %v) : f32[2,3,5,4]
      %t = transpose(%o) {permutation=[0,2,1,3]} : f32[2,5,3,4]
      %r = reshape(%t) {shape=[2,5,12]} : f32[2,5,12]
      %s = sum(%r) {axes=[2], keepdims=true} : f32[2,5,1]
      %d = sub(%r, %s) : f32[2,5,12]
      return %d
    }"""


def test_heads_lie_side_by_side():
    graph = graph_of(HEADS)
    product = graph.nodes()[0]
    assert turned_strides(graph, product.result) == (60, 4, 12, 1)
    product_kernel = lower_graph(graph).kernel("k0")
    stored = next(s for s, _ in walk(product_kernel.body) if isinstance(s, Store))
    assert sorted(c for _, c in stored.index.terms) == [1, 4, 12, 60]
    arguments = random_arguments(graph)
    check_results(
        run_native(graph, arguments, target_or_skip("host")), run_graph(graph, arguments), Tolerance(1e-5, 1e-5)
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return %d", "return %o"),  # users see the order of the shape
        ("%d = sub(%r, %s)", "%f = reshape(%o) {shape=[2,5,12]} : f32[2,5,12]\n      %d = sub(%r, %f)"),
        ("[0,2,1,3]} : f32[2,5,3,4]", "[0,2,3,1]} : f32[2,5,4,3]"),  # rows would fall apart
    ],
)
def test_other_values_lie_as_they_are(old: str, new: str):
    text = HEADS.replace(old, new)
    graph = graph_of(text.replace("-> (f32[2,5,12])", "-> (f32[2,3,5,4])") if "return %o" in text else text)
    assert turned_strides(graph, graph.nodes()[0].result) is None
