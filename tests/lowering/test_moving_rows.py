"""Windows that move along where they lie: rows are overwritten in order, and copied where that would be wrong."""

from __future__ import annotations

import numpy as np
import pytest

from graphc import Dim, cat, nn, roll, trace, zeros
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.stages import Stages
from graphc.ir.graph.interpret import bind, copy
from graphc.ir.graph.text import print_graph
from graphc.ir.kernel.dims import bind as bind_program
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Loop, Program, walk
from graphc.lowering.program import lower_graph
from graphc.passes.pipeline import optimize
from graphc.tensors.tensor import Tensor
from tests import native
from tests.lowering.test_in_place import checked, stored, temporaries
from tests.passes.check_pass import check_equal, random_arguments
from tests.passes.graph_text import graph_of
from tests.runtime.threaded import SHARED, thread_count


def in_order(program: Program) -> list[int]:
    """Extents of loops that are in order."""
    results = [s for k in program.kernels for s, _ in walk(k.body) if isinstance(s, Loop) and s.kind == "serial"]
    return [loop.axis.extent for loop in results]


def window(
    shape: str, kept_rows: str, new: str, read: str = "exp(%n) : f32[{0}]", operand_order: str = "%k, %x"
) -> str:
    """A state of a shape of which a slice is kept beside what is new."""
    return f"""
        graph @g(%s: f32[{shape}] state "s", %x: f32[{new}]) -> (f32[{shape}]) {{
          %k = slice(%s) {kept_rows}
          %n = concat({operand_order}) {{axis=1}} : f32[{shape}]
          %y = {read.format(shape)}
          %w = state_write(%s, %n) : f32[{shape}]
          return %y
        }}"""


def test_a_window_that_moves_by_one_row():
    program = checked(window("3,12,32", "{starts=[0,1,0], stops=[3,12,32], steps=[1,1,1]} : f32[3,11,32]", "3,1,32"))
    assert stored(program, "s") == 3 * 12 * 32 and not temporaries(program) and in_order(program) == [12]


@pytest.mark.parametrize("count", [5, 11])
def test_a_window_that_moves_by_several_rows(count: int):
    kept_rows = f"{{starts=[0,{count},0], stops=[3,12,32], steps=[1,1,1]}} : f32[3,{12 - count},32]"
    program = checked(window("3,12,32", kept_rows, f"3,{count},32"))
    assert stored(program, "s") == 3 * 12 * 32 and not temporaries(program)


@pytest.mark.parametrize(
    ("shape", "kept_rows", "new", "operand_order"),
    [
        ("3,12,2", "{starts=[0,1,0], stops=[3,12,2], steps=[1,1,1]} : f32[3,11,2]", "3,1,2", "%k, %x"),
        ("2,160", "{starts=[0,33], stops=[2,160], steps=[1,1]} : f32[2,127]", "2,33", "%k, %x"),
        ("3,12,32", "{starts=[0,0,0], stops=[3,11,32], steps=[1,1,1]} : f32[3,11,32]", "3,1,32", "%x, %k"),
        ("3,13,32", "{starts=[0,0,0], stops=[3,13,32], steps=[1,2,1]} : f32[3,7,32]", "3,6,32", "%k, %x"),
    ],
)
def test_narrow_ones_and_those_that_move_otherwise_are_copied(shape: str, kept_rows: str, new: str, operand_order: str):
    program = checked(window(shape, kept_rows, new, operand_order=operand_order))
    assert len(temporaries(program)) == 1 and not in_order(program)


def test_rows_that_are_read_from_other_batches_are_copied():
    program = checked("""
        graph @g(%s: f32[36,32] state "s", %x: f32[1,32]) -> () {
          %k = slice(%s) {starts=[1,0], stops=[36,32], steps=[1,1]} : f32[35,32]
          %n = concat(%k, %x) {axis=0} : f32[36,32]
          %r = reshape(%n) {shape=[3,12,32]} : f32[3,12,32]
          %e = exp(%r) : f32[3,12,32]
          %b = reshape(%e) {shape=[36,32]} : f32[36,32]
          %w = state_write(%s, %b) : f32[36,32]
          return
        }""")
    assert stored(program, "s") == 36 * 32


def test_a_window_that_is_read_later_as_it_was():
    program = checked("""
        graph @g(%s: f32[12,32] state "s", %x: f32[1,32]) -> (f32[12,12]) {
          %k = slice(%s) {starts=[1,0], stops=[12,32], steps=[1,1]} : f32[11,32]
          %n = concat(%k, %x) {axis=0} : f32[12,32]
          %m = matmul(%s, %n) {transpose_b=true} : f32[12,12]
          %w = state_write(%s, %n) : f32[12,32]
          return %m
        }""")
    assert len(temporaries(program)) == 1


def test_what_leaves_a_window_decays_and_is_summed():
    program = checked("""
        graph @g(%s: f32[4,12,32] state "s", %x: f32[4,2,32]) -> (f32[4,12]) {
          %c = concat(%s, %x) {axis=1} : f32[4,14,32]
          %k = slice(%c) {starts=[0,2,0], stops=[4,14,32], steps=[1,1,1]} : f32[4,12,32]
          %d = mul(%k, f32(0.5)) : f32[4,12,32]
          %m = sum(%d) {axes=[2], keepdims=false} : f32[4,12]
          %w = state_write(%s, %d) : f32[4,12,32]
          return %m
        }""")
    assert stored(program, "s") == 4 * 12 * 32 and not temporaries(program)


class Window(nn.Module):
    """The last 12 rows of what came."""

    def __init__(self, how: str):
        super().__init__()
        self.how = how
        self.register_buffer("rows", zeros(2, 12, 32))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if self.how == "concatenated":
            self.rows.copy_(cat([self.rows[:, n:], x], 1))
        elif self.how == "the end of all":
            self.rows.copy_(cat([self.rows, x], 1)[:, -12:])
        elif self.how == "rolled":
            self.rows.copy_(roll(self.rows, -n, 1))
            self.rows[:, -n:] = x
        else:
            self.rows[:, :-n] = self.rows[:, n:].clone()
            self.rows[:, -n:] = x
        return self.rows * 2


HOW = ("concatenated", "the end of all", "rolled", "by slices")


@pytest.mark.parametrize("how", HOW)
def test_ways_to_write_a_window(how: str):
    graph = trace(Window(how), zeros(2, 3, 32))
    before = copy(graph)
    result = optimize(graph)
    check_equal(before, result)
    program = lower_graph(result)
    assert stored(program, "rows") == 2 * 12 * 32 and not temporaries(program)
    native.check_all(result, random_arguments(result))


@pytest.mark.parametrize("how", HOW[:2])
def test_windows_that_move_by_as_much_as_comes(how: str):
    graph = trace(Window(how), zeros(2, 3, 32), dims={"x": (None, Dim("n", 1, 11, hint=3))})
    result = optimize(graph)
    program = lower_graph(result)
    assert not temporaries(program), print_graph(result)
    for n in (1, 2, 5, 11):
        fixed, bound = bind(graph, {"n": n}), bind(result, {"n": n})
        check_equal(fixed, bound)
        native.check_all(bound, random_arguments(bound))


def test_threads_move_a_window():
    graph = optimize(trace(Window("concatenated"), zeros(2, 1, 32)))
    run = load_compiled(compile_stages(Stages(graph, target=SHARED)))
    arguments = random_arguments(graph)
    expected = native.run_graph(graph, arguments)
    state_positions = [i for i, v in enumerate(graph.inputs) if v.node.attrs["cls"] == "state"]
    for count in (1, 2, 3):
        operands = [a.copy() for a in arguments]
        states = [operands[i] for i in state_positions]
        with thread_count(count):
            result = run.run([a for i, a in enumerate(operands) if i not in state_positions], states)
        native.check_results((list(result), {"rows": states[0]}), expected, native.Tolerance())
        assert not np.array_equal(states[0], arguments[state_positions[0]])


@pytest.mark.parametrize("hinted", [1, 3])
def test_windows_side_by_side_along_a_named_dimension(hinted: int):
    graph = graph_of(f"""
        dim t = 1..9 hint {hinted}
        graph @g(%s: f32[5,t,12,32] state "s", %x: f32[5,t,1,32]) -> () {{
          %k = slice(%s) {{starts=[0,0,1,0], stops=[5,t,12,32], steps=[1,1,1,1]}} : f32[5,t,11,32]
          %n = concat(%k, %x) {{axis=2}} : f32[5,t,12,32]
          %w = state_write(%s, %n) : f32[5,t,12,32]
          return
        }}""")
    program = lower_graph(graph)
    assert not temporaries(program) and in_order(program) == [12]
    for t in (1, 2, 9):
        state, x = random_arguments(bind(graph, {"t": t}))
        moved = np.concatenate([state[:, :, 1:], x], 2)
        run_program(bind_program(program, {"t": t}), [state, x])
        np.testing.assert_array_equal(state, moved)


@pytest.mark.parametrize("shape", [(3, 12, 4), (5, 7, 40), (2, 300, 17)])
@pytest.mark.parametrize("how", ["sum", "largest", "softmax"])
def test_rows_that_are_read_as_a_whole_are_changed_where_they_lie(shape: tuple[int, ...], how: str):
    class Changed(nn.Module):
        """A state of which elements are cleared, or rows scaled, with what is read of it."""

        def __init__(self):
            super().__init__()
            self.register_buffer("rows", zeros(*shape))

        def forward(self, x: Tensor) -> Tensor:
            if how == "softmax":
                self.rows.copy_(self.rows.softmax(-1) * x)
                return x
            self.rows.masked_fill_(x > 0, 0.0)
            return self.rows.sum(-1) if how == "sum" else self.rows.amax(-1)

    graph = optimize(trace(Changed(), zeros(*shape)))
    program = lower_graph(graph)
    assert stored(program, "rows") == int(np.prod(shape)) and not temporaries(program)
    native.check_all(graph, random_arguments(graph))


def test_rows_that_are_read_after_they_were_changed_are_copied():
    program = checked("""
        graph @g(%s: f32[5,7] state "s", %x: f32[5,7]) -> (f32[5,7]) {
          %m = max(%s) {axes=[0], keepdims=true} : f32[1,7]
          %d = sub(%s, %m) : f32[5,7]
          %w = state_write(%s, %d) : f32[5,7]
          return %d
        }""")
    assert stored(program, "s") >= 35
