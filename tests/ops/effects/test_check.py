"""The check of indices: what it raises, eagerly, in a graph, in kernels and in native code."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.codegen.llvm import entry
from graphc.codegen.machine.target import host_target
from graphc.compiler.compile import compile_graph, compile_stages, load_compiled
from graphc.compiler.stages import Stages
from graphc.errors import IndexRangeError
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import print_graph
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.text import print_program
from graphc.ir.kernel.verify import verify_program
from graphc.ops.effects.check import check_range, holds
from tests.native import lowered, scheduled

TEXT = """graph @g(%i: i64[70], %s: f32[3] state "s") -> (f32[3]) {
  %ok = check_index(%i) {low=-2, high=9, allowed=[-100], what="label"} : bool[]
  %t = add(%s, f32(1.0)) : f32[3]
  %n = state_write(%s, %t) : f32[3]
  return %n
}"""
GOOD = np.array([0, -2, 9, -100, 3] * 14)


def with_one(value: int) -> np.ndarray:
    wrong = GOOD.copy()
    wrong[68] = value
    return wrong


@pytest.mark.parametrize("value", [10, -3, -99, 2**62, -(2**63)])
def test_every_stage_stops_before_it_writes_to_states(value):
    graph = parse_graph(TEXT)
    assert print_graph(parse_graph(print_graph(graph))) == print_graph(graph)
    stages = (lowered(graph), scheduled(lowered(graph), host_target()))
    native = load_compiled(compile_graph(graph))
    expected = rf"label {value} \(at \[68\]\) is out of range[\s\S]*pass values from -2 to 9, -100"
    with pytest.raises(IndexRangeError, match=expected):
        evaluate(graph, [with_one(value), np.zeros(3, np.float32)])
    for run in (*(lambda arrays, p=p: run_program(p, arrays) for p in stages), lambda a: native.run(a[:1], (a[1],))):
        state = np.zeros(3, np.float32)
        with pytest.raises(IndexRangeError):
            run([with_one(value), state])
        assert state.tolist() == [0, 0, 0]
        run([GOOD, state])
        assert state.tolist() == [1, 1, 1]
    with pytest.raises(IndexRangeError, match=expected):
        native.run([with_one(value)], (np.zeros(3, np.float32),))


def test_the_status_is_part_of_the_text_of_a_program():
    program = scheduled(lowered(parse_graph(TEXT)), host_target())
    assert [s.name for s in program.storages if s.cls == "status"] == ["status"] and program.checked >= 1
    again = parse_program(print_program(program))
    verify_program(again)
    assert print_program(again) == print_program(program) and again.checked == program.checked


def test_ranges_of_arrays():
    assert holds(np.zeros((0, 2), np.int64), 0, -1)
    assert holds(np.array([255], np.uint8), -300, 300) and not holds(np.array([255], np.uint8), -1, 254)
    with pytest.raises(IndexRangeError, match=r"row -1 \(at \[1,0\]\) is out of range"):
        check_range(np.array([[0], [-1]]), 0, 3, what="row")


def test_a_program_in_several_functions_stops_as_a_whole(monkeypatch):
    monkeypatch.setattr(entry, "_ARGUMENTS", 1)
    compiled = compile_stages(Stages(parse_graph(TEXT)))
    assert f"@{entry.CALLS}1" in compiled.stages.llvm
    native, state = load_compiled(compiled), np.zeros(3, np.float32)
    with pytest.raises(IndexRangeError, match="label 10"):
        native.run([with_one(10)], (state,))
    assert state.tolist() == [0, 0, 0]
    native.run([GOOD], (state,))
    assert state.tolist() == [1, 1, 1]
