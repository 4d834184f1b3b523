"""Lowering: storages, copies, in-place writes of states, values read at several indices, recomputation in rows."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import complex64, float32
from graphc.errors import CompileError
from graphc.ir.graph.graph import Graph
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.statements import Load, Loop, Program, Store, walk
from graphc.ir.kernel.text import print_program
from graphc.ir.kernel.verify import verify_program
from graphc.ir.op import OpDef, Trait
from graphc.ir.types import TensorType
from graphc.lowering.program import lower_graph
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.effects.state import state_write
from graphc.ops.pointwise.elementwise import mul
from graphc.passes.pipeline import optimize
from tests.native import Tolerance, check_results, lowered, run_graph, run_lowered
from tests.passes.check_pass import random_arguments
from tests.passes.graph_text import graph_of
from tests.tensors.against_torch import numbers


def check(text: str) -> Program:
    """Lowers the graph of the text and compares numbers; returns the program."""
    graph = graph_of(text)
    arguments = random_arguments(graph)
    check_results(run_lowered(graph, arguments), run_graph(graph, arguments), Tolerance())
    return lowered(graph)


def storages(program: Program, cls: str) -> list[str]:
    return [s.name for s in program.storages if s.cls == cls]


# ---- storages


def test_order_of_storages():
    program = check("""
        graph @g(%x: f32[3,4], %w: f32[4,5] param "w", %s: f32[3,4] state "s") -> (f32[3,4], f32[3,5]) {
          %c = constant() {value=f32[4](1.0, 2.0, 3.0, 4.0)} : f32[4]
          %a = add(%x, %c) : f32[3,4]
          %m = matmul(%a, %w) : f32[3,5]
          %e = exp(%s) : f32[3,4]
          return %e, %m
        }""")
    assert [s.cls for s in program.storages] == ["input", "param", "state", "output", "output", "constant", "temp"]
    assert program.storage("w").path == "w"


def test_a_value_named_like_an_output_keeps_its_own_memory():
    program = check("""
        graph @g(%x: f32[3,4], %w: f32[4,5]) -> (f32[3,5]) {
          %out0 = exp(%x) : f32[3,4]
          %m = matmul(%out0, %w) : f32[3,5]
          return %m
        }""")
    assert program.storage("out0").shape == (3, 5)


def test_equal_kernels_are_stored_once():
    program = check("""
        graph @g(%x: f32[7], %y: f32[7]) -> (f32[7], f32[7]) {
          %a = exp(%x) : f32[7]
          %b = exp(%y) : f32[7]
          return %a, %b
        }""")
    assert len(program.kernels) == 1 and len(program.calls) == 2


@pytest.mark.parametrize("shape", ["", "3,4", "0,4"])
def test_outputs_that_no_node_computes(shape: str):
    check(f"""
        graph @g(%x: f32[{shape}]) -> (f32[{shape}], f32[{shape}], f32[]) {{
          return %x, %x, f32(2.5)
        }}""")


def test_values_of_no_elements_under_several_shapes():
    program = check("""
        graph @g(%x: f32[0,1]) -> (f32[1,0], f32[0,1], f32[0]) {
          %e = exp(%x) : f32[0,1]
          %r = reshape(%e) {shape=[1,0]} : f32[1,0]
          %t = transpose(%r) {permutation=[1,0]} : f32[0,1]
          %f = reshape(%x) {shape=[0]} : f32[0]
          return %r, %t, %f
        }""")
    assert not program.calls
    check("""
        graph @g(%s: f32[0,3] state "s") -> () {
          %e = exp(%s) : f32[0,3]
          %w = state_write(%s, %e) : f32[0,3]
          return
        }""")


def test_output_given_twice_and_read_again():
    program = check("""
        graph @g(%x: f32[3,4]) -> (f32[3,4], f32[3,4], f32[3]) {
          %a = exp(%x) : f32[3,4]
          %s = sum(%a) {axes=[1], keepdims=false} : f32[3]
          return %a, %a, %s
        }""")
    assert len(program.calls) == 2


def test_views_as_outputs():
    check("""
        graph @g(%x: f32[3,4]) -> (f32[4,3], f32[12], f32[2,3,4]) {
          %t = transpose(%x) {permutation=[1,0]} : f32[4,3]
          %r = reshape(%t) {shape=[12]} : f32[12]
          %b = broadcast_to(%x) {shape=[2,3,4]} : f32[2,3,4]
          return %t, %r, %b
        }""")


def test_constants_only():
    check("""
        graph @g() -> (f32[3], i64[2,2], f32[2]) {
          %c = constant() {value=f32[3](1.0, 2.0, 3.0)} : f32[3]
          %i = iota() {shape=[2,2], axis=1, dtype=i64} : i64[2,2]
          %f = constant() {value=f32[2](1.0, 2.0)} : f32[2]
          %e = exp(%f) : f32[2]
          return %c, %i, %e
        }""")


def test_dead_nodes_are_not_lowered():
    program = check("""
        graph @g(%x: f32[0], %y: f32[5], %z: f32[]) -> (f32[5]) {
          %dead = add(%x, %z) : f32[0]
          %a = exp(%y) : f32[5]
          %late = sum(%a) {axes=[0], keepdims=false} : f32[]
          return %a
        }""")
    assert len(program.calls) == 1


def test_an_effect_keeps_its_operands():
    program = check("""
        graph @g(%x: f32[5], %s: f32[5] state "s") -> () {
          %a = exp(%x) : f32[5]
          %w = state_write(%s, %a) : f32[5]
          return
        }""")
    assert len(program.calls) == 1


@pytest.mark.parametrize("shape,rest", [("0,3", "3"), ("0,1", "1"), ("0", "")])
def test_sums_over_no_elements_are_stored(shape: str, rest: str):
    check(f"""
        graph @g(%x: f32[2,{shape}]) -> (f32[2{"," + rest if rest else ""}], f32[2,{shape}]) {{
          %a = exp(%x) : f32[2,{shape}]
          %s = sum(%a) {{axes=[1]}} : f32[2{"," + rest if rest else ""}]
          return %s, %a
        }}""")


def test_an_op_without_a_rule():
    op = OpDef("mystery", "Nobody knows.", ("x",), (), lambda x: x, traits=Trait.PURE)
    graph = Graph("g")
    x = graph.add_input(TensorType(float32, (3,)), "x")
    graph.set_outputs(graph.add_node(op, [x], {}, (x.type,)).results)
    with pytest.raises(CompileError, match="mystery has no kernel rule"):
        lower_graph(graph)


# ---- states


def roles(program: Program, storage: str) -> set[str]:
    """Return the calls' uses of a storage."""
    kernels = {k.name: k for k in program.kernels}
    return {
        b.role
        for c in program.calls
        for b, name in zip(kernels[c.kernel].arguments, c.args, strict=True)
        if name == storage
    }


def test_a_state_is_updated_in_place():
    program = check("""
        graph @g(%g: f32[3,4], %p: f32[3,4] param "p", %m: f32[3,4] state "m") -> () {
          %a = mul(%m, f32(0.5)) : f32[3,4]
          %b = add(%a, %g) : f32[3,4]
          %c = sub(%p, %b) : f32[3,4]
          %w = state_write(%m, %b) : f32[3,4]
          %v = state_write(%p, %c) : f32[3,4]
          return
        }""")
    assert len(program.calls) == 1 and not storages(program, "temp")
    assert roles(program, "p") == roles(program, "m") == {"inout"}


def test_a_row_value_is_updated_in_place():
    program = check("""
        graph @g(%x: f32[6,4], %s: f32[4] state "s") -> (f32[6,4]) {
          %m = sum(%x) {axes=[0], keepdims=true} : f32[1,4]
          %c = sub(%x, %m) : f32[6,4]
          %r = reshape(%m) {shape=[4]} : f32[4]
          %n = add(%s, %r) : f32[4]
          %w = state_write(%s, %n) : f32[4]
          return %c
        }""")
    assert roles(program, "s") == {"inout"} and not storages(program, "temp")


@pytest.mark.parametrize(
    "view",
    [
        "flip(%t) {axes=[0]} : f32[4,4]",
        "transpose(%t) {permutation=[1,0]} : f32[4,4]",
        "softmax",
    ],
)
def test_a_state_read_elsewhere_than_written_is_not_overwritten_early(view: str):
    if view == "softmax":
        lines = "%m = max(%t) {axes=[1], keepdims=true} : f32[4,1]\n          %v = sub(%t, %m) : f32[4,4]"
    else:
        lines = f"%v = {view}"
    check(f"""
        graph @g(%s: f32[4,4] state "s") -> (f32[4,4]) {{
          %t = tanh(%s) : f32[4,4]
          {lines}
          %w = state_write(%s, %v) : f32[4,4]
          return %w
        }}""")
    check(f"""
        graph @g(%s: f32[4,4] state "s") -> () {{
          %t = tanh(%s) : f32[4,4]
          {lines}
          %w = state_write(%s, %v) : f32[4,4]
          return
        }}""")


def test_a_product_that_reads_the_state_it_writes():
    check("""
        graph @g(%s: f32[4,4] state "s") -> () {
          %m = matmul(%s, %s) : f32[4,4]
          %w = state_write(%s, %m) : f32[4,4]
          return
        }""")


def test_a_later_reader_sees_the_old_state():
    check("""
        graph @g(%x: f32[4], %s: f32[4] state "s") -> (f32[4,4]) {
          %n = add(%s, %x) : f32[4]
          %w = state_write(%s, %n) : f32[4]
          %o = reshape(%s) {shape=[4,1]} : f32[4,1]
          %p = reshape(%n) {shape=[1,4]} : f32[1,4]
          %m = matmul(%o, %p) : f32[4,4]
          return %m
        }""")


def test_what_a_write_returns_may_be_read():
    check("""
        graph @g(%x: f32[4], %s: f32[4] state "s") -> (f32[4], f32[4], f32[4]) {
          %n = add(%s, %x) : f32[4]
          %w = state_write(%s, %n) : f32[4]
          %o = exp(%w) : f32[4]
          return %o, %w, %s
        }""")


def test_states_exchange_their_contents():
    program = check("""
        graph @g(%a: f32[4] state "a", %b: f32[4] state "b", %c: f32[4] state "c") -> () {
          %x = state_write(%a, %b) : f32[4]
          %y = state_write(%b, %c) : f32[4]
          %z = state_write(%c, %a) : f32[4]
          return
        }""")
    assert len(storages(program, "temp")) == 3


def test_a_state_that_is_copied_elsewhere_is_not_overwritten_before():
    check("""
        graph @g(%x: f32[4], %a: f32[4] state "a", %b: f32[4] state "b") -> (f32[4]) {
          %n = add(%b, %x) : f32[4]
          %v = state_write(%a, %b) : f32[4]
          %w = state_write(%b, %n) : f32[4]
          return %v
        }""")


def test_one_value_for_two_states():
    program = check("""
        graph @g(%x: f32[4], %a: f32[4] state "a", %b: f32[4] state "b") -> () {
          %n = add(%b, %x) : f32[4]
          %v = state_write(%a, %n) : f32[4]
          %w = state_write(%b, %n) : f32[4]
          return
        }""")
    assert len(program.calls) == 2 and not storages(program, "temp")


# ---- kernels


def test_a_value_used_at_two_indices_of_one_group():
    check("""
        graph @g(%x: f32[4,4]) -> (f32[4,4]) {
          %e = exp(%x) : f32[4,4]
          %t = transpose(%e) {permutation=[1,0]} : f32[4,4]
          %a = add(%e, %t) : f32[4,4]
          %s = slice(%a) {starts=[0,0], stops=[4,1], steps=[1,1]} : f32[4,1]
          %b = sub(%a, %s) : f32[4,4]
          return %b
        }""")


def test_padding_reads_nothing_outside():
    (kernel,) = check("""
        graph @g(%x: f32[4]) -> (f32[9]) {
          %p = pad(%x) {low=[2], high=[3], interior=[0], value=1.5} : f32[9]
          %n = exp(%p) : f32[9]
          return %n
        }""").kernels
    (load,) = [s for s, _ in walk(kernel.body) if isinstance(s, Load)]
    assert load.guard and load.other is not None and load.other.value == 1.5


def test_a_padding_inside_a_padding():
    check("""
        graph @g(%x: f32[4], %y: f32[6]) -> (f32[9]) {
          %p = pad(%x) {low=[1], high=[1], interior=[0], value=7.0} : f32[6]
          %a = add(%p, %y) : f32[6]
          %q = pad(%a) {low=[2], high=[1], interior=[0], value=1.5} : f32[9]
          return %q
        }""")


def test_softmax_computes_its_exponentials_once():
    (kernel,) = check("""
        graph @g(%x: f32[5,7]) -> (f32[5,7]) {
          %m = max(%x) {axes=[1], keepdims=true} : f32[5,1]
          %d = sub(%x, %m) : f32[5,7]
          %e = exp(%d) : f32[5,7]
          %s = sum(%e) {axes=[1], keepdims=true} : f32[5,1]
          %y = div(%e, %s) : f32[5,7]
          return %y
        }""").kernels
    assert sum(getattr(s, "op", "") == "exp" for s, _ in walk(kernel.body)) == 1
    assert [b.size for b in kernel.buffers if b.role == "scratch"] == [7]


@pytest.mark.parametrize("axes", ["", "0", "1", "2", "0,1", "0,2", "1,2", "0,1,2"])
@pytest.mark.parametrize("keepdims", [True, False])
def test_reductions_over_any_axes(axes: str, keepdims: bool):
    reduced = [int(a) for a in axes.split(",") if a]
    shape = [1 if i in reduced else e for i, e in enumerate((3, 4, 5)) if keepdims or i not in reduced]
    text = ",".join(map(str, shape))
    check(f"""
        graph @g(%x: f64[3,4,5]) -> (f64[{text}], f64[{text}]) {{
          %e = exp(%x) : f64[3,4,5]
          %s = sum(%e) {{axes=[{axes}], keepdims={str(keepdims).lower()}}} : f64[{text}]
          %m = max(%e) {{axes=[{axes}], keepdims={str(keepdims).lower()}}} : f64[{text}]
          %l = log(%s) : f64[{text}]
          return %l, %m
        }}""")


def test_every_output_element_is_stored_once():
    program = check("""
        graph @g(%x: f32[3,4,5]) -> (f32[3,4,5], f32[3,5]) {
          %m = max(%x) {axes=[1], keepdims=true} : f32[3,1,5]
          %d = sub(%x, %m) : f32[3,4,5]
          %r = reshape(%m) {shape=[3,5]} : f32[3,5]
          %q = exp(%r) : f32[3,5]
          return %d, %q
        }""")
    sizes = {b.name: b.size for k in program.kernels for b in k.buffers}
    for stmt, loops in walk(program.kernels[0].body):
        if isinstance(stmt, Store):
            assert np.prod([loop.axis.extent for loop in loops]) == sizes[stmt.buffer]
    assert any(isinstance(s, Load) for s, _ in walk(program.kernels[0].body))
    assert any(isinstance(s, Loop) and s.kind == "reduce" for s, _ in walk(program.kernels[0].body))


def test_a_weight_is_updated_after_all_who_read_it():
    program = check("""
        graph @g(%x: f32[4,6], %g: f32[4,5], %w: f32[5,6] param "w") -> (f32[4,6]) {
          %d = matmul(%g, %x) {transpose_a=true} : f32[5,6]
          %n = sub(%w, %d) : f32[5,6]
          %v = state_write(%w, %n) : f32[5,6]
          %i = matmul(%g, %w) : f32[4,6]
          return %i
        }""")
    assert len(program.calls) == 2 and not storages(program, "temp")


def test_results_of_nests_are_turned_by_a_copy():
    """A nest computes tiles in the layout of images, and a copy writes the caller's array."""
    graph = graph_of("""
        graph @g(%m: f32[36,4,32]) -> (f32[1,32,8,8]) {
          %y = winograd_output(%m) {tile=4, kernel=3, shape=[1,32,8,8]} : f32[1,32,8,8]
          %z = tanh(%y) : f32[1,32,8,8]
          return %z
        }""")
    assert len(lower_graph(graph).calls) == 1
    program = lower_graph(graph, "channels_last")
    assert [c.args[-1] for c in program.calls] == ["z", "out0"]


def test_arguments_states_and_results_lie_as_callers_have_them():
    graph = Graph("main")
    x = graph.add_input(TensorType(complex64, (3,)), "x")
    state = graph.add_input(TensorType(complex64, (3,)), "s", "state", "the.state")
    with use(GraphDispatcher(graph)):
        product = mul(x, state)
        state_write(state, product)
    graph.set_outputs([product])
    program = lower_graph(optimize(graph))
    verify_program(program)
    assert parse_program(print_program(program)) == program
    bordering = [s for s in program.storages if s.cls in ("input", "state", "output")]
    assert [str(s.outside) for s in bordering] == ["c64[3]"] * 3
    assert {(s.dtype, s.shape) for s in bordering} == {(float32, (3, 2))}
    a, b = numbers(3, dtype=np.complex64), numbers(3, seed=1, dtype=np.complex64)
    written = b.copy()
    (found,) = run_program(program, [a, written])
    np.testing.assert_allclose(found, a * b, rtol=1e-6)
    np.testing.assert_array_equal(written, found)


def test_a_constant_that_is_a_result_lies_as_callers_have_it():
    graph = Graph("main")
    with use(GraphDispatcher(graph)) as made:
        value = np.array([1 + 2j, 3 - 4j], np.complex64)
        graph.set_outputs([made.constant(value)])
    program = lower_graph(optimize(graph))
    assert [storage.complex for storage in program.storages[:1]] == [True]
    np.testing.assert_array_equal(run_program(program, [])[0], [1 + 2j, 3 - 4j])
