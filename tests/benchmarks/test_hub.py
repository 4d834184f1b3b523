"""Models of public collections: lists are complete, rows hold the measurements, and a crash loses one row only."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import hub
from benchmarks.harness.results import Result, first_line

torch = pytest.importorskip("torch")
if torch:
    from benchmarks.models import hub as hub_models
    from benchmarks.models.hub import Model


def small(library: Any) -> Any:
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 3))


def options(**more: Any) -> argparse.Namespace:
    plain = {"peers": ["eager"], "rounds": 1, "seconds": 0.001, "limit": 100.0, "results": None, "weights": "live"}
    return argparse.Namespace(**(plain | more))


def row(name: str = "x", own: float = 1.0, inductor: float = 2.0, error: float = 1e-6, **facts: Any) -> Result:
    plain = {"graphs": 1, "nodes": {"graphc": 98, "torch": 2}, "first_s": {"graphc": 1.0, "inductor": 4.0}}
    times = {"graphc": [own], "eager": [3.0], "inductor": [inductor]}
    return Result(name, plain | facts, times, {}, {"graphc": error})


def measured(key: str, *arguments: Any) -> Result:
    return Result(**hub.measure_model(key, *arguments))


def test_the_lists_are_as_long_as_they_should_be():
    sizes = [len(models) for models in (hub_models.TORCHVISION, hub_models.TIMM, hub_models.TRANSFORMERS)]
    assert sizes == [14, 40, 20] and len(hub_models.MODELS) == 74
    assert {key.partition("/")[0] for key in hub_models.MODELS} == set(hub.COLLECTIONS)


def test_a_row_holds_errors_nodes_first_calls_and_times(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(hub_models.MODELS, "timm/small", Model("small", "timm", small, side=8))
    monkeypatch.setattr(hub_models, "load_collection", lambda name: None)
    result = measured("timm/small", ["eager"], 2, 0.001)
    assert not result.problems and result.errors["graphc"] < 1e-5
    assert result.facts["graphs"] == 1 and result.facts["nodes"] == {"graphc": 4, "torch": 0}
    assert result.facts["first_s"]["graphc"] > 0
    assert len(result.rounds_ms["graphc"]) == len(result.rounds_ms["eager"]) == 2


def test_what_pytorch_computes_is_counted_whoever_gave_it_back():
    x = torch.randn(200, 200)
    count, share = hub.on_torch(lambda: torch.nn.functional.linear(x, x).T.relu())
    assert count == 2 and 0 < share <= 1
    assert hub.on_torch(lambda: x.T.detach()) == (0, 0.0)


def test_the_share_is_that_of_operators_which_are_no_parts_of_others():
    def event(name: str, microseconds: float, parent: Any = None) -> Any:
        return argparse.Namespace(name=name, cpu_time_total=microseconds, cpu_parent=parent)

    outer, view = event("aten::linear", 300.0), event("aten::view", 50.0)
    events = [outer, event("aten::addmm", 250.0, outer), view, event("aten::relu", 100.0, view), event("call", 900.0)]
    assert hub.part_of(events, 1e-3) == (2, pytest.approx(0.4))
    assert hub.part_of(events, 1e-4) == (2, 1.0)


def test_the_problem_of_a_backend_is_told():
    def broken(module: Any, examples: Any) -> Any:
        raise ValueError("no such thing")

    with pytest.raises(Exception, match="broken") as raised:
        torch.compile(lambda x: x + 1, backend=broken)(torch.ones(2))
    assert first_line(raised.value) == "ValueError: no such thing"


def test_f64_decides_where_f32_differs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(hub_models.MODELS, "timm/small", Model("small", "timm", small, side=8))
    monkeypatch.setattr(hub_models, "load_collection", lambda name: None)
    monkeypatch.setattr(hub, "TOLERANCE", -1.0)
    facts = measured("timm/small", ["eager"], 0, 0.001, "frozen").facts
    assert facts["weights"] == "frozen"
    assert 0 <= facts["f64_error"] < 1e-6 and 0 < facts["f64_error_eager"] < 1e-6


def test_constant_parameters_are_drawn_anew():
    module = torch.nn.BatchNorm2d(8)
    hub_models.vary(module)
    values = [module.weight, module.bias, module.running_mean, module.running_var]
    assert all(float(value.detach().std()) > 0.01 for value in values) and float(module.running_var.min()) > 0.7


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (row(), True),
        (row(error=1e-3), False),
        (row(error=float("inf")), False),
        (row(error=1e-3, f64_error=2e-5, f64_error_eager=1e-3), True),
        (row(error=1e-3, f64_error=9e-4, f64_error_eager=1e-5), False),
        (row(nodes={"graphc": 97, "torch": 3}), False),
        (row(torch_share=0.03), False),
        (Result("x", {}, problems={"graphc": "no"}), False),
    ],
)
def test_what_agrees(result: Result, expected: bool):
    assert hub.agrees(result) is expected


def test_the_summary_names_who_is_behind():
    text = hub.format_rows([row("a"), row("b", own=4.0, error=1.0), Result("c", {}, problems={"graphc": "died"})])
    assert "| a | 1.0e-06 | 1 | 98 | 2 | 2.0% | 1 | 3 | 2 | 3.00 | 2.00 | 1.00 | 4.00 | 0.25 |" in text
    assert "1 of 3 agree" in text and "| b | 1.0e+00! |" in text
    assert "inductor: geometric mean of its time over graphc's 1.00 over 2; below 1: b" in text
    assert "geometric mean 0.25; above 0.2: a, b" in text and "graphc: died: c" in text


@pytest.mark.parametrize(
    ("program", "limit", "problem"),
    [
        ("import os; os.abort()", 100.0, "the process died of SIGABRT"),
        ("import time; time.sleep(100)", 0.1, "no answer within 0.1 s"),
    ],
)
def test_a_process_that_ends_early_loses_one_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, limit: float, problem: str
):
    script = tmp_path / "python"
    script.write_text(f"#!{sys.executable}\n{program}\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    assert hub.HUB.run_model("timm/resnet18", options(limit=limit)).problems == {"graphc": problem}


def test_results_are_kept_and_not_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    measured: list[str] = []

    def run_model(self: hub.Command, key: str, _: Any) -> Result:
        measured.append(key)
        return row(key)

    monkeypatch.setattr(hub.Command, "run_model", run_model)
    stored = options(results=tmp_path / "rows.jsonl")

    def run_all(*keys: str) -> list[Result]:
        return hub.HUB.run_all(argparse.Namespace(**{**vars(stored), "keys": keys}))

    assert [r.name for r in run_all("a", "b")] == ["a", "b"]
    results = run_all("b", "c")
    assert measured == ["a", "b", "c"] and [r.name for r in results] == ["b", "c"] and results[0] == row("b")
    assert len(stored.results.read_text().splitlines()) == 3


def test_models_are_chosen_by_collection_and_text():
    chosen = hub.HUB.parse(["--collection", "timm", "--only", "swin"], hub_models.MODELS)
    assert chosen.keys == ["timm/swin_tiny_patch4_window7_224"] and chosen.peers == ["eager", "inductor"]
    assert hub.HUB.parse(["--agreement"], hub_models.MODELS).rounds == 0 and chosen.weights == "live"
    with pytest.raises(SystemExit):
        hub.HUB.parse(["--only", "nothing"], hub_models.MODELS)


def test_json_holds_who_agrees(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(hub, "pin", lambda threads: [0])
    monkeypatch.setattr(hub.Command, "run_model", lambda self, key, _: row(key))
    assert hub.HUB.main(["--only", "alexnet", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["agree"] == ["torchvision/alexnet"] and printed["rows"][0]["ms"]["inductor"] == 2.0
