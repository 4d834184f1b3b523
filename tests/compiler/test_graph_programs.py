"""Programs of graphs: the key under which a compile stores them, and the explanation of stopped calls."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc.codegen.machine.target import host_target
from graphc.compiler import cache
from graphc.compiler.compile import compile_graph
from graphc.compiler.graph_programs import key_inputs_of, load_program, program_key
from graphc.compiler.ready import key_text, spec_and_text, target_spec
from graphc.errors import IndexRangeError
from tests.compiler.graphs import mlp


def test_the_key_is_that_of_a_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    disk, (spec, facts) = cache.current(), spec_and_text("host")
    assert disk is not None and spec == target_spec(host_target())
    key = program_key(disk, mlp(), spec, facts)
    assert disk.load(key, spec) is None
    compiled = compile_graph(mlp())
    entry = disk.load(key, spec)
    assert entry is not None and entry.object == compiled.object


def test_replaced_costs_are_in_the_key_and_those_of_this_machine_are_not_read():
    target = host_target()
    changed = replace(target, costs=replace(target.costs, memory=replace(target.costs.memory, vast=9.0)))
    assert key_text(target) == "host" and "vast=9.0" in key_text(changed)
    code = "import sys; from graphc.compiler.ready import spec_and_text; spec_and_text('host'); "
    code += "print('graphc.codegen.machine' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_loaded_programs_explain_stopped_calls():
    graph = gc.trace(lambda x, i: x[i], gc.ones(4), gc.tensor([1, 2]))
    program = load_program(compile_graph(graph), graph)
    with pytest.raises(IndexRangeError, match="7"):
        program.run([np.ones(4, np.float32), np.array([1, 7])])


def test_cells_of_a_notebook_have_the_same_key_in_each_kernel():
    def inputs(file: str):
        namespace: dict = {}
        exec(compile("def double(x):\n    return x * 2.0\n", file, "exec"), namespace)
        return key_inputs_of(gc.trace(namespace["double"], gc.zeros(3)), "target")

    assert inputs("/folder/ipykernel_11/5.py") == inputs("/folder/ipykernel_22/5.py")
    assert inputs("/folder/ipykernel_11/5.py") != inputs("/folder/ipykernel_11/6.py")
