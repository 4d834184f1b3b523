"""Fusion: into how many kernels typical graphs fuse, what must stay apart, and the order of groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.codegen.machine.costs import DEFAULT
from graphc.fusion.partition import Partition
from graphc.fusion.vertical import FusionPlan, Reason, fuse
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import copy
from graphc.lowering.program import lower_graph
from graphc.nn import functional as F
from graphc.passes.pipeline import optimize
from tests.native import Tolerance, check_kernels, check_results, run_graph, run_lowered
from tests.passes.check_pass import random_arguments
from tests.passes.graph_text import graph_of


def floats(*shape: int) -> gc.Tensor:
    return gc.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def optimized(model, *examples) -> Graph:
    return optimize(copy(gc.trace(model, *examples)))


def kinds(graph: Graph) -> list[str]:
    return [g.kind for g in fuse(graph).groups]


def check(text: str, count: int) -> FusionPlan:
    """The graph of the text fuses into that many kernels and means the same as kernels."""
    graph = graph_of(text)
    check_kernels(graph, count)
    arguments = random_arguments(graph)
    check_results(run_lowered(graph, arguments), run_graph(graph, arguments), Tolerance())
    return fuse(graph)


# ---- models


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_is_one_kernel(axis: int):
    check_kernels(optimized(lambda x: F.softmax(x, axis), floats(4, 5, 6)), 1)


def test_layer_norm_is_one_kernel():
    check_kernels(optimized(nn.LayerNorm(32), floats(8, 32)), 1)


def test_gelu_is_one_kernel():
    check_kernels(optimized(F.gelu, floats(8, 32)), 1)


def test_cross_entropy_is_a_kernel_over_rows_and_one_over_the_batch():
    """And one that checks the targets."""
    check_kernels(optimized(F.cross_entropy, floats(8, 10), gc.tensor(np.arange(8))), 3)


def test_linear_with_activation_is_one_kernel():
    check_kernels(optimized(nn.Sequential(nn.Linear(32, 16), nn.ReLU()), floats(8, 32)), 1)


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.GELU(), nn.Tanh()])
def test_linear_over_three_dimensions_is_one_kernel(activation: nn.Module):
    check_kernels(optimized(nn.Sequential(nn.Linear(32, 16), activation), floats(4, 8, 32)), 1)


def test_convolution_with_activation_is_one_kernel_and_one_for_padding():
    check_kernels(optimized(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), floats(2, 3, 9, 9)), 1)
    check_kernels(optimized(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()), floats(2, 3, 9, 9)), 2)


def test_a_training_step_of_a_linear_model_updates_in_its_products():
    model = nn.Linear(6, 4)
    step = gc.compile_step(model, F.mse_loss, gc.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    step(floats(5, 6), floats(5, 4))
    graph = optimize(copy(step.graphs[0]))
    check_kernels(graph, 4)
    assert sorted(kinds(graph)) == ["contraction", "contraction", "row", "row"]


def test_momentum_update_is_one_kernel():
    check(
        """
        graph @g(%g: f32[3,4], %p: f32[3,4] param "p", %m: f32[3,4] state "m", %lr: f32[]) -> () {
          %a = mul(%m, f32(0.5)) : f32[3,4]
          %b = add(%a, %g) : f32[3,4]
          %s = mul(%b, %lr) : f32[3,4]
          %c = sub(%p, %s) : f32[3,4]
          %w = state_write(%m, %b) : f32[3,4]
          %v = state_write(%p, %c) : f32[3,4]
          return
        }""",
        1,
    )


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, t, width = x.shape
        q, k, v = (
            z.reshape(b, t, self.heads, width // self.heads).transpose(1, 2)
            for z in self.qkv(self.norm(x)).split(width, -1)
        )
        scores = F.softmax((q @ k.transpose(-2, -1)) * 0.25, -1)
        return x + self.out((scores @ v).transpose(1, 2).reshape(b, t, width))


def test_attention():
    graph = optimized(Attention(32, 4), floats(2, 16, 32))
    check_kernels(graph, 6)
    assert kinds(graph) == ["row", "contraction", "contraction", "row", "contraction", "contraction"]


# ---- what stays apart


def test_a_map_reads_two_reductions_over_different_axes():
    plan = check(
        """
        graph @g(%x: f32[4,5]) -> (f32[4,5]) {
          %a = sum(%x) {axes=[0], keepdims=true} : f32[1,5]
          %b = sum(%x) {axes=[1], keepdims=true} : f32[4,1]
          %c = mul(%a, %b) : f32[4,5]
          return %c
        }""",
        2,
    )
    assert all(g.kind == "row" for g in plan.groups)


def test_a_group_never_waits_for_itself():
    check(
        """
        graph @g(%x: f32[4,4], %w: f32[4,4]) -> (f32[4,4]) {
          %a = exp(%x) : f32[4,4]
          %m = matmul(%a, %w) : f32[4,4]
          %b = add(%a, %m) : f32[4,4]
          %n = matmul(%b, %w) : f32[4,4]
          %c = add(%a, %n) : f32[4,4]
          return %c
        }""",
        3,
    )


def test_a_product_that_somebody_else_reads_keeps_its_shape():
    plan = check(
        """
        graph @g(%x: f32[6,4], %w: f32[4,8], %b: f32[8]) -> (f32[2,3,8], f32[6,8]) {
          %m = matmul(%x, %w) : f32[6,8]
          %r = reshape(%m) {shape=[2,3,8]} : f32[2,3,8]
          %a = add(%r, %b) : f32[2,3,8]
          %e = exp(%m) : f32[6,8]
          return %a, %e
        }""",
        2,
    )
    assert plan.groups[0].shape == (6, 8)


@pytest.mark.parametrize(
    "view,shape,count",
    [
        ("reshape(%m) {shape=[2,3,8]}", "2,3,8", 1),
        ("reshape(%m) {shape=[6,2,4]}", "6,2,4", 1),
        ("reshape(%m) {shape=[48]}", "48", 2),
        ("transpose(%m) {permutation=[1,0]}", "8,6", 2),
        ("flip(%m) {axes=[1]}", "6,8", 2),
        ("slice(%m) {starts=[0,0], stops=[6,4], steps=[1,1]}", "6,4", 2),
        ("broadcast_to(%m) {shape=[2,6,8]}", "2,6,8", 2),
    ],
)
def test_products_are_computed_in_the_domain_of_a_reshape_only(view: str, shape: str, count: int):
    check(
        f"""
        graph @g(%x: f32[6,4], %w: f32[4,8]) -> (f32[{shape}]) {{
          %m = matmul(%x, %w) : f32[6,8]
          %v = {view} : f32[{shape}]
          %a = tanh(%v) : f32[{shape}]
          return %a
        }}""",
        count,
    )


def test_a_value_read_at_two_places_is_stored_or_computed_in_both():
    check(
        """
        graph @g(%x: f32[8]) -> (f32[4]) {
          %e = exp(%x) : f32[8]
          %a = slice(%e) {starts=[0], stops=[4], steps=[1]} : f32[4]
          %b = slice(%e) {starts=[4], stops=[8], steps=[1]} : f32[4]
          %c = mul(%a, %b) : f32[4]
          return %c
        }""",
        1,
    )


def test_an_expensive_value_is_not_computed_again_for_every_copy():
    plan = check(
        """
        graph @g(%x: f32[8], %y: f32[5,8]) -> (f32[5,8]) {
          %e = exp(%x) : f32[8]
          %c = mul(%y, %e) : f32[5,8]
          return %c
        }""",
        2,
    )
    assert [g.shape for g in plan.groups] == [(8,), (5, 8)]


def test_nests_stand_alone():
    plan = check(
        """
        graph @g(%x: f32[6,3], %i: i64[4], %u: f32[4,3]) -> (f32[6,3]) {
          %a = exp(%u) : f32[4,3]
          %s = scatter_add(%x, %i, %a) {axis=0} : f32[6,3]
          %t = tanh(%s) : f32[6,3]
          return %t
        }""",
        3,
    )
    assert [g.kind for g in plan.groups] == ["map", "nest", "map"]


def test_elementwise_nodes_follow_where_a_nest_stores_every_element_once():
    """The image is stored too, because somebody else wants it; edges of tiles are guarded in what follows as well."""
    plan = check(
        """
        graph @g(%m: f32[36,4,3], %s: f32[1,3,7,6], %b: f32[3,1,1]) -> (f32[1,3,7,6], f32[1,3,7,6]) {
          %y = winograd_output(%m) {tile=4, kernel=3, shape=[1,3,7,6]} : f32[1,3,7,6]
          %z = add(%y, %b) : f32[1,3,7,6]
          %t = mul(%z, %s) : f32[1,3,7,6]
          return %y, %t
        }""",
        1,
    )
    assert [v.name for v in plan.groups[0].outputs] == ["y", "t"]


def test_a_nest_may_follow_what_the_nodes_behind_it_compute_first():
    plan = check(
        """
        graph @g(%m: f32[36,4,3], %s: f32[1,3,7,6]) -> (f32[1,3,7,6]) {
          %c = le(%s, f32(0.0)) : bool[1,3,7,6]
          %y = winograd_output(%m) {tile=4, kernel=3, shape=[1,3,7,6]} : f32[1,3,7,6]
          %t = where(%c, f32(0.0), %y) : f32[1,3,7,6]
          return %t
        }""",
        1,
    )
    assert {n.op.name for n in plan.groups[0].nodes} >= {"le", "winograd_output", "where"}


def test_nests_do_not_take_in_other_orders_of_elements():
    check(
        """
        graph @g(%m: f32[16,2,3]) -> (f32[3,8]) {
          %y = winograd_output(%m) {tile=2, kernel=3, shape=[2,3,2,2]} : f32[2,3,2,2]
          %t = transpose(%y) {permutation=[1,0,2,3]} : f32[3,2,2,2]
          %r = reshape(%t) {shape=[3,8]} : f32[3,8]
          %z = tanh(%r) : f32[3,8]
          return %z
        }""",
        2,
    )


# ---- order


def test_groups_come_in_an_order_in_which_they_can_run():
    graph = optimized(Attention(32, 4), floats(2, 16, 32))
    plan = fuse(graph)
    grouped = {n for g in plan.groups for n in g.nodes}
    done = set(graph.inputs)
    for group in plan.groups:
        read = {v for n in group.nodes for v in n.operands if v.node in grouped - set(group.nodes)}
        assert read <= done
        done.update(group.outputs)
    assert set(plan.stored) == done - set(graph.inputs)


def test_every_node_is_in_one_group():
    graph = optimized(Attention(32, 4), floats(2, 16, 32))
    nodes = [n for g in fuse(graph).groups for n in g.nodes]
    assert len(nodes) == len(set(nodes))


def test_what_is_stored_has_a_shape_of_the_rows():
    """The end of the graph is computed under another shape; a row kernel that took it in could not store it."""
    check(
        """
        graph @g(%x: f32[5,4], %e: f32[5,1,4], %s: f32[5,1,1], %m: f32[5], %n: f32[5]) -> (f32[5]) {
          %q = mul(%x, %x) : f32[5,4]
          %r = reshape(%q) {shape=[5,1,4]} : f32[5,1,4]
          %p = mul(%r, %e) : f32[5,1,4]
          %a = sum(%p) {axes=[2]} : f32[5,1]
          %b = reshape(%a) {shape=[5,1,1]} : f32[5,1,1]
          %d = div(%b, %s) : f32[5,1,1]
          %c = sub(%r, %d) : f32[5,1,4]
          %w = abs(%c) : f32[5,1,4]
          %t = sum(%w) {axes=[2]} : f32[5,1]
          %u = neg(%t) : f32[5,1]
          %v = reshape(%u) {shape=[5]} : f32[5]
          %y = div(%v, %m) : f32[5]
          %z = mul(%y, %n) : f32[5]
          return %z
        }""",
        3,
    )


# ---- reasons


def reasons(text: str) -> dict[tuple[str, str], Reason]:
    """(name of the value, op of its reader) to the reason why they stayed apart."""
    return {(r.value.name, r.reader.op.name): r.reason for r in fuse(graph_of(text)).refusals}


def test_reasons_of_products():
    found = reasons(
        """
        graph @g(%x: f32[4,4], %w: f32[4,4]) -> (f32[4]) {
          %a = exp(%x) : f32[4,4]
          %m = matmul(%a, %w) : f32[4,4]
          %s = sum(%m) {axes=[1], keepdims=false} : f32[4]
          return %s
        }"""
    )
    assert found == {("a", "matmul"): Reason.READER, ("m", "sum"): Reason.KINDS}


def test_reasons_of_rows_and_detours():
    found = reasons(
        """
        graph @g(%x: f32[4,4], %w: f32[4,4]) -> (f32[4,4]) {
          %a = exp(%x) : f32[4,4]
          %s = sum(%a) {axes=[0], keepdims=true} : f32[1,4]
          %t = sum(%a) {axes=[1], keepdims=true} : f32[4,1]
          %m = matmul(%a, %w) : f32[4,4]
          %b = add(%a, %m) : f32[4,4]
          %c = mul(%s, %t) : f32[4,4]
          %d = mul(%b, %c) : f32[4,4]
          return %d
        }"""
    )
    assert found == {
        ("a", "sum"): Reason.ROWS,
        ("a", "matmul"): Reason.READER,
        ("a", "add"): Reason.CYCLE,
        ("s", "mul"): Reason.CYCLE,
        ("c", "mul"): Reason.KINDS,
    }


def test_an_expensive_epilogue_is_refused():
    chain = "\n".join(f"          %e{i + 1} = erf(%e{i}) : f32[4,4]" for i in range(3))
    found = reasons(
        f"""
        graph @g(%x: f32[4,4], %w: f32[4,4]) -> (f32[4,4]) {{
          %e0 = matmul(%x, %w) : f32[4,4]
{chain}
          return %e3
        }}"""
    )
    assert list(found.values()) == [Reason.EPILOGUE]


def test_what_was_merged_later_has_no_reason():
    plan = fuse(optimized(nn.LayerNorm(32), floats(8, 32)))
    assert len(plan.groups) == 1 and plan.refusals == ()


def test_single_values_of_an_optimizer_stay_small_kernels():
    """The same kernel for each of many parameters, although all of them read one value that is computed too."""
    inputs = ", ".join(f"%t{i}: f32[] state" for i in range(12))
    steps = [f"%n{i} = add(%t{i}, f32(1.0)) : f32[]\n%m{i} = mul(%n{i}, %l) : f32[]" for i in range(12)]
    roots = [f"%e{i} = expm1(%m{i}) : f32[]\n%s{i} = sqrt(%e{i}) : f32[]" for i in range(12)]
    rest = [f"%r{i} = div(%s{i}, %n{i}) : f32[]" for i in range(12)]
    head = f"graph @steps(%b: f32[], {inputs}) -> ({', '.join(['f32[]'] * 12)}) {{"
    end = f"return {', '.join(f'%r{i}' for i in range(12))}"
    text = "\n".join([head, "%l = log(%b) : f32[]", *steps, *roots, *rest, end, "}"])
    program = lower_graph(graph_of(text))
    assert len(program.kernels) <= 4 < len(program.calls)
    assert Reason.SINGLE in {r.reason for r in fuse(graph_of(text)).refusals}


@pytest.mark.parametrize(("kernel", "apart"), [(3, True), (1, False)])
def test_an_optimizer_follows_the_gradient_of_a_window_by_itself(kernel: int, apart: bool):
    """Lanes of the gradient run along channels, between which the taps of a window lie: weights and moments are read
    in order by a kernel of their own."""
    model = nn.Conv2d(4, 8, kernel, bias=False)
    step = gc.compile_step(model, F.mse_loss, gc.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    x = floats(2, 4, 6, 6)
    step(x, gc.zeros(2, 8, 7 - kernel, 7 - kernel))
    plan = fuse(optimize(step.graphs[0]))
    assert (Reason.STRIDED in {r.reason for r in plan.refusals}) is apart
    gradient = next(g for g in plan.groups if any(n.op.name == "conv_grad_weight" for n in g.nodes))
    assert any(v.node.op.name in ("sub", "add") for v in gradient.outputs) is not apart


def test_no_kernel_has_more_nodes_than_the_longest():
    lines = "\n".join(f"%v{i + 1} = sin(%v{i}) : f32[4]" for i in range(300))
    graph = graph_of(f"graph @g(%v0: f32[4]) -> (f32[4]) {{\n{lines}\nreturn %v300\n}}")
    plan, longest = fuse(graph), DEFAULT.fusion.longest
    assert [len(g.nodes) for g in plan.groups] == [longest, longest, 300 - 2 * longest]
    assert {r.reason for r in plan.refusals} == {Reason.LONG}


def test_costs_decide_how_long_a_kernel_may_be():
    graph = graph_of(LONG_CHAIN)
    assert [len(g.nodes) for g in fuse(graph, replace(DEFAULT.fusion, longest=2)).groups] == [2, 2]
    assert [len(g.nodes) for g in fuse(graph).groups] == [4]


LONG_CHAIN = """
graph @f(%x: f32[64]) -> (f32[64]) {
  %a = neg(%x) : f32[64]
  %b = mul(%a, %x) : f32[64]
  %c = add(%b, %x) : f32[64]
  %d = neg(%c) : f32[64]
  return %d
}
"""


def names(text: str) -> list[str]:
    return [g.outputs[0].name for g in fuse(graph_of(text)).groups]


def test_groups_that_are_free_come_as_in_the_graph():
    assert names("""
        graph @g(%x: f32[4,8], %y: f32[8,4]) -> (f32[4,4], f32[8,8], f32[4,4]) {
          %a = matmul(%x, %y) : f32[4,4]
          %b = matmul(%y, %x) : f32[8,8]
          %c = matmul(%a, %a) : f32[4,4]
          return %a, %b, %c
        }""") == ["a", "b", "c"]


def test_a_state_is_overwritten_after_its_last_reader():
    assert names("""
        graph @g(%x: f32[4,4], %s: f32[4,4] state "s") -> (f32[4,4]) {
          %new = matmul(%x, %x) : f32[4,4]
          %old = matmul(%s, %x) : f32[4,4]
          %w = state_write(%s, %new) : f32[4,4]
          return %old
        }""") == ["old", "new"]


def test_a_state_that_is_needed_before_it_is_read_is_overwritten_early():
    assert names("""
        graph @g(%x: f32[4,4], %s: f32[4,4] state "s") -> (f32[4,4]) {
          %new = matmul(%x, %x) : f32[4,4]
          %old = matmul(%s, %new) : f32[4,4]
          %w = state_write(%s, %new) : f32[4,4]
          return %old
        }""") == ["new", "old"]


def test_dependences_of_a_backward_pass_are_found_in_linear_time(monkeypatch):
    searched, find = [0], Partition._after

    def counted(partition, group):
        searched[0] += 1
        return find(partition, group)

    def searches(layers):
        net = nn.Sequential(*(m for _ in range(layers) for m in (nn.Linear(4, 4), nn.ReLU())))
        weights = list(net.parameters())
        graph = optimize(gc.trace(lambda x: gc.autograd.grad(net(x).sum(), weights), gc.ones(2, 4)))
        searched[0] = 0
        fuse(graph)
        return searched[0]

    monkeypatch.setattr(Partition, "_after", counted)
    assert searches(80) < 2.5 * searches(40)
