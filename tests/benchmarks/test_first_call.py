"""First calls: the stages of one model, the processes that run it, and the measured graphs."""

from __future__ import annotations

import cProfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks import first_call
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.graph.verify import verify_graph


def test_chains_have_the_size_that_was_asked_for():
    graph = first_call.chain(200)
    verify_graph(graph)
    operations = [n for n in graph.nodes() if n.op.name not in ("input", "constant")]
    assert len(operations) == 199
    assert {n.op.name for n in operations} == {"matmul", "maximum", "mul", "add", "sub"}
    assert np.isfinite(Evaluator().run(first_call.chain(20), [np.ones((8, 8), np.float32)])[0]).all()


def test_times_of_whole_graph_steps():
    assert list(first_call.graph_times(100)) == ["build", "print", "parse", "optimize", "lower"]


def test_calls_of_graphc_count_and_comprehensions_do_not():
    graph, profile = first_call.chain(20), cProfile.Profile(builtins=False)
    with profile:
        sorted([number for number in range(3)], key=lambda number: -number)
    assert first_call.own_calls(profile) == 0
    with profile:
        graph.nodes()
    assert first_call.own_calls(profile) >= 1


def test_stages_of_a_cold_and_of_a_warm_call(tmp_path: Path):
    cold, warm = (first_call.run_apart("policy_b1", tmp_path) for _ in range(2))
    assert all(cold[stage] > 0 for stage in first_call.STAGES)
    assert sum(cold[stage] for stage in first_call.STAGES) < cold["all"]
    assert not any(warm[stage] for stage in first_call.STAGES)
    calls = [first_call.run_apart("policy_b1", tmp_path, count=True) for _ in range(2)]
    assert [calls[0][stage] for stage in first_call.STAGES] == [calls[1][stage] for stage in first_call.STAGES]
    assert calls[0]["lowered"] > 1000


def test_a_program_starts_with_the_files_that_are_written(tmp_path: Path):
    first_call.write_files("policy_b1", tmp_path)
    for program in ("graphc", "graphc, tier auto", "graphc.load", "graphc.load, code in the file", "graphc.compile"):
        wall, cpu = first_call.start(program, "policy_b1", tmp_path)
        assert wall > 0 and cpu > 0
    with pytest.raises(RuntimeError, match="on train_policy_b256 ended with 1"):
        first_call.start("graphc.compile", "train_policy_b256", tmp_path)


def test_rows_of_both_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    figures = {"all": 9.0, **dict.fromkeys(first_call.STAGES, 1.0)}
    monkeypatch.setattr(first_call, "run_apart", lambda name, folder, count=False: figures)
    row = first_call.stage_row("net", tmp_path)
    assert row == ["net", "9.000", "9.000", *["1.000"] * 6, "3.000", "0"] and len(row) == len(first_call.STAGE_COLUMNS)
    times = iter([(9.0, 9.0)] * 2 + [(1.0, 2.0), (3.0, 4.0)])
    monkeypatch.setattr(first_call, "start", lambda *order: next(times))
    monkeypatch.setattr(first_call, "programs_of", lambda name: ["one"])
    assert first_call.process_rows("net", tmp_path, 1) == [["net", "one", "1.000", "2.000", "3.000", "4.000"]]


def test_tables_of_growth():
    lines = first_call.format_growth("nodes", first_call.graph_times, [20, 40]).splitlines()
    assert [line.split(" | ")[0] for line in lines] == ["| nodes", "|---|---|---|---|---|---|", "| 20", "| 40"]
    assert set(first_call.stack_times(1)) == set(first_call.STACKS)
