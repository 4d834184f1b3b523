"""Compile times: the measured graphs, the figures of one model, and both tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import compile_time
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.graph.verify import verify_graph


def test_chains_have_the_size_that_was_asked_for():
    graph = compile_time.chain(200)
    verify_graph(graph)
    operations = [n for n in graph.nodes() if n.op.name not in ("input", "constant")]
    assert len(operations) == 199
    assert {n.op.name for n in operations} == {"matmul", "maximum", "mul", "add", "sub"}
    assert np.isfinite(Evaluator().run(compile_time.chain(20), [np.ones((8, 8), np.float32)])[0]).all()


def test_times_of_whole_graph_steps():
    times = compile_time.graph_times(100)
    assert list(times) == ["build", "print", "parse", "optimize", "lower"]
    assert all(seconds >= 0 for seconds in times.values())


def test_figures_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cold = compile_time.run_apart("policy_b1", str(tmp_path / "cache"))
    warm = compile_time.run_apart("policy_b1", str(tmp_path / "cache"))
    assert set(compile_time.STAGES) <= cold.keys() and {"wall", "cpu"} <= warm.keys()
    assert sum(cold[stage] for stage in compile_time.STAGES) < cold["wall"]
    assert not set(compile_time.STAGES) & warm.keys()
    monkeypatch.setattr(compile_time, "run_apart", lambda name, cache: json.loads(json.dumps(cold)))
    lines = compile_time.format_models(["policy_b1"]).splitlines()
    assert (
        lines[0].startswith("| model | cold s | warm s |") and lines[2].startswith("| policy_b1 |") and len(lines) == 3
    )


def test_tables_of_growth():
    lines = compile_time.format_growth("nodes", compile_time.graph_times, [20, 40]).splitlines()
    assert [line.split(" | ")[0] for line in lines] == ["| nodes", "|---|---|---|---|---|---|", "| 20", "| 40"]
    assert set(compile_time.stack_times(1)) == set(compile_time.STACKS)
