"""Graphs on which the compiler fails become small, and programs that show it."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphc.base.pass_runner import PassRun
from graphc.checks import reduce
from graphc.compiler import stages
from graphc.errors import CompileError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.ir.op import REGISTRY
from tests.compiler.graphs import arguments, mlp

CHAIN = """
dim rows = 1..64 hint 4
graph @chain(%x: f32[rows,5], %w: f32[5,5] param "w") -> (f32[rows,5], f32[5,5]) {
  %a = matmul(%x, %w) : f32[rows,5]  // first model.py:3
  %b = exp(%a) : f32[rows,5]  // model.py:4
  %c = sin(%b) : f32[rows,5]  // model.py:5
  %d = maximum(%c, f32(0.0)) : f32[rows,5]  // model.py:6
  %e = add(%d, %b) : f32[rows,5]  // model.py:7
  %v = exp(%w) : f32[5,5]  // model.py:8
  return %e, %v
}
"""


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that takes the smaller where the larger is meant."""

    def passes(graph: Graph, *rest: Any) -> tuple[Graph, list[PassRun]]:
        graph, runs = run_passes(graph, *rest)
        for node in graph.nodes():
            if node.op.name == "maximum":
                node.op = REGISTRY["minimum"]
        return graph, runs

    run_passes = stages.run_passes
    monkeypatch.setattr(stages, "run_passes", passes)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lowering that fails for sines."""

    def lower(graph: Graph, *args: Any, **named: Any) -> Any:
        if any(node.op.name == "sin" for node in graph.nodes()):
            raise RuntimeError('no "sine" in \\ this """ machine')
        return lower_graph(graph, *args, **named)

    lower_graph = stages.lower_graph
    monkeypatch.setattr(stages, "lower_graph", lower)
    monkeypatch.setattr(stages, "possible_layouts", lambda *_: ("plain",))


def chain() -> tuple[Graph, list[np.ndarray]]:
    random = np.random.default_rng(0)
    return parse_graph(CHAIN), [random.standard_normal(s).astype(np.float32) for s in [(3, 5), (5, 5)]]


def names(graph: Graph) -> list[str]:
    return [n.op.name for n in graph.nodes() if not (n.results and n.results[0].is_scalar_constant)]


def test_what_is_right_is_no_fault():
    graph, arrays = chain()
    assert reduce.fault_of(graph) is None and reduce.fault_of(graph, arrays) is None


def test_native_code_that_is_wrong_is_reduced_to_the_node(wrong: None):
    graph, arrays = chain()
    fault = reduce.fault_of(graph, arrays)
    assert fault is not None and fault.kind == "wrong" and "BAD" in fault.what
    small, given = reduce.reduced(graph, arrays, lambda *part: reduce.fault_of(*part) is not None)
    assert names(small) == ["maximum"] and given is not None
    assert [a.shape for a in given] == [(3, 5)] and (given[0] < 0).any()
    assert not small.dims  # it is so for the sizes of the call, too


def test_a_compile_that_fails_is_reduced_without_arguments(failing: None):
    graph, _ = chain()
    small, given = reduce.reduced(graph, None, lambda *part: reduce.fault_of(*part) is not None)
    assert names(small) == ["sin"] and given is None
    assert [n.location.line for n in small.nodes()] == [5]


def test_parts_keep_roles_and_give_what_others_read():
    graph, arrays = chain()
    nodes = graph.nodes()
    part, given = reduce.extracted(graph, nodes[:2], dict(zip(graph.inputs, arrays, strict=True)))
    assert [v.node.attrs["path"] for v in part.inputs] == ["", "w"] and given is not None
    assert [v.name for v in part.outputs] == ["b"]


def test_a_written_program_shows_the_fault_where_it_is_and_nothing_elsewhere(wrong: None, capfd: Any, tmp_path: Path):
    graph, arrays = chain()
    fault = reduce.fault_of(graph, arrays)
    assert fault is not None
    path = reduce.report(graph, arrays, fault)
    assert path.with_suffix(".npz").exists() and "maximum" in path.read_text()
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 1 and "native code is wrong" in capfd.readouterr().out
    block = "import sys; sys.modules['torch'] = None; import runpy; runpy.run_path(sys.argv[1], run_name='__main__')"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    other = subprocess.run([sys.executable, "-c", block, path], capture_output=True, text=True, env=env, check=False)
    assert (other.returncode, other.stdout) == (0, "no fault\n"), other.stderr


def test_a_failed_compile_says_where_the_program_is(failing: None):
    graph, _ = chain()
    with pytest.raises(CompileError, match=r"RuntimeError: no .sine.* reproduces it") as caught:
        reduce.compile_reported(graph)
    path = Path(caught.value.what.partition("; ")[2].removesuffix(" reproduces it"))
    assert "sin(" in path.read_text() and "exp(" not in path.read_text()
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 1


def test_arrays_of_constants_stand_beside_the_program(tmp_path: Path):
    text = ", ".join(map(str, range(40)))
    graph = parse_graph(
        f"graph @g(%x: f32[40]) -> (f32[40]) {{ %t = constant() {{value=f32[40]({text})}} : f32[40] "
        "%y = add(%x, %t) : f32[40] return %y }"
    )
    path = reduce.written(graph, None, "nothing", tmp_path)
    assert path == tmp_path / "g.py"
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 0


def test_time_is_up_at_some_point(wrong: None):
    graph = mlp()
    same, _ = reduce.reduced(graph, arguments(graph), lambda *_: True, budget=0)
    assert names(same) == names(graph)
