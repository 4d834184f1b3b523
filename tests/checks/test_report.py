"""Faults of the compiler become cases, and messages name the command that runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphc.checks import reduce, report
from graphc.checks.check_case import load_case
from graphc.errors import CompileError
from graphc.ir.graph.parse import parse_graph
from tests.checks.planted_faults import chain, failing, wrong

__all__ = ["failing", "wrong"]


def test_a_case_shows_the_fault_where_it_is_and_nothing_elsewhere(wrong: None):
    graph, arrays = chain()
    fault = reduce.fault_of(graph, arrays)
    assert fault is not None
    path = report.report(graph, arrays, fault)
    assert path.with_suffix(".npz").exists() and "maximum" in path.read_text() and path.name == "chain_compile.gc"
    assert "native code is wrong" in load_case(path).fault()
    block = "import sys; sys.modules['torch'] = None; from graphc.cli.main import main; sys.exit(main(sys.argv[1:]))"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", block, "check", path]
    other = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert (other.returncode, other.stdout) == (0, "compilation: ok\n"), other.stderr


def test_a_failed_compile_names_the_command(failing: None):
    graph, _ = chain()
    with pytest.raises(CompileError, match=r"RuntimeError: no .sine.*; graphc check \S+ reproduces it") as caught:
        report.compile_reported(graph)
    path = Path(caught.value.what.partition("graphc check ")[2].removesuffix(" reproduces it"))
    assert "sin(" in path.read_text() and "exp(" not in path.read_text()
    assert load_case(path).fault().startswith("RuntimeError: no")


def test_arrays_of_constants_stand_beside_the_text():
    text = ", ".join(map(str, range(40)))
    graph = parse_graph(
        f"graph @g(%x: f32[40]) -> (f32[40]) {{ %t = constant() {{value=f32[40]({text})}} : f32[40] "
        "%y = add(%x, %t) : f32[40] return %y }"
    )
    case = load_case(report.written(graph, None, "nothing"))
    assert str(case.graph) == str(graph) and case.fault() == "" and case.what == "nothing"
