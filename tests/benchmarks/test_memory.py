"""The benchmark of memory budgets."""

import json
import types

from benchmarks import memory
from benchmarks.workloads import Spec, Workload
from graphc import nn


class _Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x):
        return self.linear(x).tanh()


def test_blocks_of_a_model_are_called_through_the_checkpoint():
    calls = []

    def checkpoint(function, *args, use_reentrant):
        calls.append(use_reentrant)
        return function(*args)

    library = types.SimpleNamespace(
        utils=types.SimpleNamespace(checkpoint=types.SimpleNamespace(checkpoint=checkpoint))
    )
    model = nn.Sequential(_Block(), nn.Linear(16, 16), _Block())
    assert memory.checkpoint_blocks(library, model) == 2
    model(nn.init.zeros_(nn.Parameter(model[1].weight.detach())))
    assert calls == [False, False]


def test_a_worker_says_what_is_planned_and_how_long_a_step_takes(monkeypatch, capsys, tmp_path):
    workload = Workload("train_small", lambda nn: nn.Linear(16, 4), (Spec((8, 16)),), Spec((8,), 4), "sgd")
    monkeypatch.setattr(memory, "_RESET", tmp_path / "reset")
    monkeypatch.setattr(memory.sys, "stdin", ["step\n", "step\n"])
    assert memory.work(workload, "100%") == 0
    first, *steps = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["planned_mb"] > 0 and first["again_mb"] == 0
    assert len(steps) == 2 and all(s["ms"] > 0 and s["resident_mb"] > 0 for s in steps)


def test_a_budget_that_cannot_be_met_is_a_problem_of_its_row(capsys):
    workload = Workload("train_small", lambda nn: nn.Linear(16, 4), (Spec((8, 16)),), Spec((8,), 4), "sgd")
    assert memory.work(workload, "1") == 0
    assert "cannot be met" in json.loads(capsys.readouterr().out)["problem"]


def test_the_table_has_a_line_for_each_row():
    rows = [
        {
            "model": "m",
            "contender": "70%",
            "planned_mb": 1.0,
            "resident_mb": 2.0,
            "ms": 3.0,
            "again_mb": 4.0,
            "first_s": 5.0,
        },
        {"model": "m", "contender": "50%", "problem": "no"},
    ]
    lines = memory.table(rows).splitlines()
    assert len(lines) == 3 and "1.0 MB" in lines[1] and lines[2].endswith("no")
