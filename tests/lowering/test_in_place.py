"""States that are updated where they lie: only what changes is written, and no kernel reads an old content too late."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.stages import Stages
from graphc.fusion.layout import LAYOUTS
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Kernel, Loop, Program, Store, walk
from graphc.lowering.program import lower_layouts
from tests import native
from tests.passes.check_pass import random_arguments
from tests.passes.graph_text import graph_of
from tests.runtime.threaded import SHARED, thread_count

INPUTS = '%s: f32[5,12,4] state "s", %i: i64[3], %u: f32[5,3,4]'


def checked(text: str) -> Program:
    """The lowered program of a graph of which every stage gives what the graph means."""
    graph = graph_of(text)
    native.check_all(graph, random_arguments(graph))
    return native.lowered(graph)


def stored(program: Program, storage: str) -> int:
    """Count the elements that calls store in a storage, repetitions included."""
    kernels = {k.name: k for k in program.kernels}
    total = 0
    for call in program.calls:
        times = int(np.prod([a.extent for a in call.loops]))
        for buffer, name in zip(kernels[call.kernel].arguments, call.args, strict=True):
            total += times * _stores(kernels[call.kernel], buffer.name) if name == storage else 0
    return total


def _stores(kernel: Kernel, buffer: str) -> int:
    return sum(_times(loops) for s, loops in walk(kernel.body) if isinstance(s, Store) and s.buffer == buffer)


def _times(loops: tuple[Loop, ...]) -> int:
    return int(np.prod([loop.axis.extent for loop in loops]))


def temporaries(program: Program) -> list[str]:
    return [s.name for s in program.storages if s.cls == "temp"]


# ---- one update


@pytest.mark.parametrize("op", ["scatter", "scatter_add", "scatter_extreme"])
def test_an_update_writes_what_changes_and_no_more(op: str):
    more = ", largest=true" if op == "scatter_extreme" else ""
    program = checked(f"""
        graph @g({INPUTS}) -> (f32[5,12]) {{
          %n = {op}(%s, %i, %u) {{axis=1{more}}} : f32[5,12,4]
          %m = sum(%n) {{axes=[2], keepdims=false}} : f32[5,12]
          %w = state_write(%s, %n) : f32[5,12,4]
          return %m
        }}""")
    assert stored(program, "s") == 5 * 3 * 4 and not temporaries(program)


def test_a_slice_along_several_dimensions():
    program = checked("""
        graph @g(%s: f32[5,40,24] state "s", %u: f32[2,17,24], %v: f32[5,3,7]) -> (f32[5,40]) {
          %a = update_slice(%s, %u) {starts=[1,2,0], steps=[2,2,1]} : f32[5,40,24]
          %b = update_slice(%a, %v) {starts=[0,4,17], steps=[1,1,1]} : f32[5,40,24]
          %m = sum(%b) {axes=[2], keepdims=false} : f32[5,40]
          %w = state_write(%s, %b) : f32[5,40,24]
          return %m
        }""")
    assert stored(program, "s") == 2 * 17 * 24 + 5 * 3 * 7 and not temporaries(program)


def test_equal_indices_leave_the_last_one():
    graph = graph_of(f"""
        graph @g({INPUTS}) -> () {{
          %n = scatter(%s, %i, %u) {{axis=1}} : f32[5,12,4]
          %w = state_write(%s, %n) : f32[5,12,4]
          return
        }}""")
    state, _, updates = random_arguments(graph)
    native.check_all(graph, [state, np.array([7, 7, 7]), updates])
    assert stored(native.lowered(graph), "s") == 5 * 3 * 4


def test_an_update_of_the_same_elements_in_another_shape():
    program = checked("""
        graph @g(%s: f32[5,12] state "s", %i: i64[3], %u: f32[3]) -> (f32[5,12]) {
          %f = reshape(%s) {shape=[60]} : f32[60]
          %n = scatter(%f, %i, %u) {axis=0} : f32[60]
          %r = reshape(%n) {shape=[5,12]} : f32[5,12]
          %e = exp(%r) : f32[5,12]
          %w = state_write(%s, %r) : f32[5,12]
          return %e
        }""")
    assert stored(program, "s") == 3 and not temporaries(program)


def test_updates_that_are_views_are_read_where_they_lie():
    program = checked("""
        graph @g(%s: f32[5,12] state "s", %i: i64[3], %u: f32[3,7]) -> () {
          %v = slice(%u) {starts=[0,1], stops=[3,6], steps=[1,1]} : f32[3,5]
          %t = transpose(%v) {permutation=[1,0]} : f32[5,3]
          %n = scatter(%s, %i, %t) {axis=1} : f32[5,12]
          %w = state_write(%s, %n) : f32[5,12]
          return
        }""")
    assert len(program.calls) == 1 and stored(program, "s") == 15


def test_an_update_that_is_returned_is_copied_from_the_state():
    program = checked(f"""
        graph @g({INPUTS}) -> (f32[5,12,4]) {{
          %n = scatter(%s, %i, %u) {{axis=1}} : f32[5,12,4]
          %w = state_write(%s, %n) : f32[5,12,4]
          return %w
        }}""")
    assert stored(program, "s") == 60 and stored(program, "out0") == 240 and not temporaries(program)


# ---- what asks for the old content


def test_what_reads_the_old_content_runs_before():
    program = checked(f"""
        graph @g({INPUTS}) -> (f32[5,12,4], f32[5,12]) {{
          %n = scatter(%s, %i, %u) {{axis=1}} : f32[5,12,4]
          %m = sum(%n) {{axes=[2], keepdims=false}} : f32[5,12]
          %e = exp(%s) : f32[5,12,4]
          %w = state_write(%s, %n) : f32[5,12,4]
          return %e, %m
        }}""")
    assert stored(program, "s") == 60


def test_where_the_old_content_is_read_later_the_state_is_copied():
    program = checked("""
        graph @g(%s: f32[12,4] state "s", %i: i64[3], %u: f32[3,4]) -> (f32[12,12]) {
          %n = scatter(%s, %i, %u) {axis=0} : f32[12,4]
          %m = matmul(%s, %n) {transpose_b=true} : f32[12,12]
          %w = state_write(%s, %n) : f32[12,4]
          return %m
        }""")
    assert stored(program, "s") == 48 and temporaries(program)


@pytest.mark.parametrize("kept", ["return %s", "%v = state_write(%b, %s) : f32[12,4]\n          return %u"])
def test_where_the_old_content_stays_the_state_is_copied(kept: str):
    kind = "f32[12,4]" if kept == "return %s" else "f32[3,4]"
    program = checked(f"""
        graph @g(%s: f32[12,4] state "s", %b: f32[12,4] state "b", %i: i64[3], %u: f32[3,4]) -> ({kind}) {{
          %n = scatter(%s, %i, %u) {{axis=0}} : f32[12,4]
          %w = state_write(%s, %n) : f32[12,4]
          {kept}
        }}""")
    assert stored(program, "s") == 48


@pytest.mark.parametrize(
    "updates",
    [
        "slice(%s) {starts=[2,0], stops=[5,4], steps=[1,1]} : f32[3,4]",
        "gather(%s, %i) {axis=0} : f32[3,4]",
    ],
)
def test_updates_that_are_parts_of_the_old_content(updates: str):
    program = checked(f"""
        graph @g(%s: f32[12,4] state "s", %i: i64[3], %j: i64[3]) -> () {{
          %u = {updates}
          %n = scatter(%s, %j, %u) {{axis=0}} : f32[12,4]
          %w = state_write(%s, %n) : f32[12,4]
          return
        }}""")
    assert stored(program, "s") == 12 and len(temporaries(program)) == 1


def test_a_state_put_into_itself_is_copied():
    program = checked("""
        graph @g(%s: f32[7,4] state "s", %i: i64[7]) -> () {
          %n = scatter(%s, %i, %s) {axis=0} : f32[7,4]
          %w = state_write(%s, %n) : f32[7,4]
          return
        }""")
    assert temporaries(program)


# ---- several updates


def test_updates_one_after_the_other():
    program = checked("""
        graph @g(%s: f32[12,4] state "s", %i: i64[3], %u: f32[3,4], %j: i64[2], %v: f32[2,4]) -> (f32[12], f32[4,4]) {
          %a = scatter(%s, %i, %u) {axis=0} : f32[12,4]
          %m = sum(%a) {axes=[1], keepdims=false} : f32[12]
          %b = scatter_add(%a, %j, %v) {axis=0} : f32[12,4]
          %p = matmul(%b, %b) {transpose_a=true} : f32[4,4]
          %w = state_write(%s, %b) : f32[12,4]
          return %m, %p
        }""")
    assert stored(program, "s") == 20 and not temporaries(program)


def test_a_content_between_two_updates_that_is_asked_for_later():
    program = checked("""
        graph @g(%s: f32[12,4] state "s", %i: i64[3], %u: f32[3,4], %j: i64[2], %v: f32[2,4]) -> (f32[12,12]) {
          %a = scatter(%s, %i, %u) {axis=0} : f32[12,4]
          %b = scatter(%a, %j, %v) {axis=0} : f32[12,4]
          %p = matmul(%a, %b) {transpose_b=true} : f32[12,12]
          %w = state_write(%s, %b) : f32[12,4]
          return %p
        }""")
    assert len(temporaries(program)) == 1


def test_one_update_for_two_states():
    program = checked("""
        graph @g(%s: f32[12,4] state "s", %t: f32[12,4] state "t", %i: i64[3], %u: f32[3,4]) -> () {
          %a = scatter(%s, %i, %u) {axis=0} : f32[12,4]
          %v = state_write(%t, %a) : f32[12,4]
          %w = state_write(%s, %a) : f32[12,4]
          return
        }""")
    assert stored(program, "s") == 12 and stored(program, "t") == 48


def test_two_states_that_exchange_updates_are_copied():
    checked("""
        graph @g(%s: f32[12,4] state "s", %t: f32[12,4] state "t", %i: i64[3], %u: f32[3,4]) -> () {
          %a = scatter(%s, %i, %u) {axis=0} : f32[12,4]
          %b = scatter(%t, %i, %u) {axis=0} : f32[12,4]
          %v = state_write(%t, %a) : f32[12,4]
          %w = state_write(%s, %b) : f32[12,4]
          return
        }""")


# ---- checks, scans, threads


def test_nothing_is_written_before_a_check():
    program = checked("""
        graph @g(%s: f32[12,4] state "s", %i: i64[3], %u: f32[3,4]) -> (bool[]) {
          %n = scatter(%s, %i, %u) {axis=0} : f32[12,4]
          %m = sum(%n) {axes=[0], keepdims=false} : f32[4]
          %k = cast(%m) {dtype=i64} : i64[4]
          %c = check_index(%k) {low=-1000000, high=1000000} : bool[]
          %w = state_write(%s, %n) : f32[12,4]
          return %c
        }""")
    assert temporaries(program)


SCAN = """
    graph @generate(%s: f32[12,4] state "s", %x: f32[6,1,4], %i: i64[6,1]) -> (f32[6,12]) {
      %c.0, %c.1 = scan(%s, %x, %i) {body=graph @step(%h: f32[12,4], %x: f32[1,4], %i: i64[1]) -> (f32[12,4], f32[12]) {
        %n = scatter(%h, %i, %x) {axis=0} : f32[12,4]
        %m = sum(%n) {axes=[1], keepdims=false} : f32[12]
        return %n, %m
      }, carries=1, sequences=2, length=6, reverse=false} : f32[12,4], f32[6,12]
      %w = state_write(%s, %c.0) : f32[12,4]
      return %c.1
    }"""


def test_the_steps_of_a_scan_update_a_state():
    program = checked(SCAN)
    assert stored(program, "s") == 6 * 4 and not temporaries(program)


def test_a_scan_that_reads_the_state_otherwise_too():
    program = checked("""
        graph @g(%s: f32[12,4] state "s", %x: f32[6,1,4], %i: i64[6,1]) -> () {
          %c = scan(%s, %x, %i, %s) {body=graph @step(
              %h: f32[12,4], %x: f32[1,4], %i: i64[1], %s: f32[12,4]
          ) -> (f32[12,4]) {
            %n = scatter(%h, %i, %x) {axis=0} : f32[12,4]
            %a = scatter_add(%n, %i, %x) {axis=0} : f32[12,4]
            %b = add(%a, %s) : f32[12,4]
            %z = scatter(%b, %i, %x) {axis=0} : f32[12,4]
            return %z
          }, carries=1, sequences=2, length=6, reverse=false} : f32[12,4]
          %w = state_write(%s, %c) : f32[12,4]
          return
        }""")
    assert temporaries(program)


@pytest.mark.parametrize(
    "text",
    [
        SCAN,
        f"""
    graph @g({INPUTS}) -> (f32[5,12]) {{
      %n = scatter_add(%s, %i, %u) {{axis=1}} : f32[5,12,4]
      %m = sum(%n) {{axes=[2], keepdims=false}} : f32[5,12]
      %w = state_write(%s, %n) : f32[5,12,4]
      return %m
    }}""",
    ],
)
def test_threads_update_a_state(text: str):
    graph = graph_of(text)
    run = load_compiled(compile_stages(Stages(graph, target=SHARED)))
    arguments = random_arguments(graph)
    expected = native.run_graph(graph, arguments)
    for count in (1, 2, 3):
        given = [a.copy() for a in arguments]
        with thread_count(count):
            result = run.run(given[1:], given[:1])
        native.check_results((list(result), {"s": given[0]}), expected, native.Tolerance())


def test_layouts_leave_states_as_they_lie():
    text = """
        graph @g(%s: f32[2,8,6,6] state "s", %i: i64[1], %u: f32[1,8,6,6], %w: f32[8,8,3,3]) -> (f32[2,8,4,4]) {
          %n = scatter(%s, %i, %u) {axis=0} : f32[2,8,6,6]
          %c = conv(%n, %w) {stride=[1,1], padding=[[0,0],[0,0]], dilation=[1,1]} : f32[2,8,4,4]
          %v = state_write(%s, %n) : f32[2,8,6,6]
          return %c
        }"""
    graph = graph_of(text)
    arguments = random_arguments(graph)
    arguments[1][:] = 1
    expected = native.run_graph(graph, arguments)
    for layout in LAYOUTS:
        given = [a.copy() for a in arguments]
        result = run_program(lower_layouts(graph, [layout])[0], given)
        native.check_results((list(result), {"s": given[0]}), expected, native.Tolerance())
