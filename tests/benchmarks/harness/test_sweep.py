"""The sweeps: cases match their names, contenders agree, and commands print what is measured."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from benchmarks import conv, gemm, kernels, linalg, overheads
from benchmarks.harness.process import THREADS
from benchmarks.harness.results import arrays_of
from benchmarks.harness.sweep import Sweep, copy_seconds, restart

SMALL_GEMM = ("3x5x7", "1x17x64 t w", "64x64x64 f64")
SMALL_CONV = ("odd 3x7x37 3x3 11 s2", "grouped 1x128x28 3x3 128 g32", "unet 1x64x32 2x2 32 s2 t")
SMALL_KERNELS = ("sum first", "embedding", "concat", "argmax", "cumsum last", "layer_norm grad")


def test_enough_cases():
    assert len(gemm.SWEEP.cases) >= 60 and len(conv.SWEEP.cases) >= 40 and len(kernels.SWEEP.cases) >= 20


@pytest.mark.parametrize(
    ("sweep", "names", "peers", "most"),
    [
        (gemm.SWEEP, SMALL_GEMM, ["numpy"], 1e-5),
        (conv.SWEEP, SMALL_CONV, ["torch"], 1e-4),
        (kernels.SWEEP, SMALL_KERNELS, ["torch"], 1e-3),
    ],
    ids=["gemm", "conv", "kernels"],
)
def test_contenders_agree(sweep: Sweep, names: tuple[str, ...], peers: list[str], most: float):
    pytest.importorskip(*peers)
    for name in names:
        result = sweep.run_case(name, peers, 1, 0.001)
        assert not result.problems and result.errors["graphc"] < most
        assert set(result.rounds_ms) == {"graphc", *peers}
        assert set(sweep.columns) <= set(result.facts)


@pytest.mark.parametrize("name", SMALL_CONV)
def test_results_of_layers_have_their_sizes(name: str):
    layer = conv.SWEEP.cases[name]
    (array,) = arrays_of(layer.graphc()())
    assert array.shape == (layer.batch, layer.filters, layer.out_side, layer.out_side)


def test_floors():
    assert copy_seconds(1 << 20) > 0


@pytest.mark.parametrize(
    ("sweep", "case", "names", "fact"),
    [
        (overheads.SWEEP, "first_nan perceptron", {"without", "first_nan", "all"}, "with / without"),
        (overheads.SWEEP, "hooks eager", {"without", "hooks"}, "one hook us"),
        (linalg.SWEEP, "solve 3x3", {"graphc", "numpy"}, ""),
    ],
    ids=["first_nan", "hooks", "linalg"],
)
def test_costs_are_timed(sweep: Sweep, case: str, names: set[str], fact: str):
    result = sweep.run_case(case, list(names), 1, 0.001)
    assert not result.problems and set(result.rounds_ms) == names
    assert not fact or fact in result.facts


def test_a_watched_step_is_that_of_an_unwatched_model():
    for compiled in (True, False):
        for watched in (True, False):
            overheads.watched_step(compiled, watched, 4, 2)()


@pytest.mark.parametrize("compiled", [False, True])
def test_hooks_are_called_and_change_nothing(compiled: bool):
    call, called = overheads.hooked_call(compiled, True, modules=4)
    results = [call().numpy(), call().numpy()]
    assert called == [8]
    plain = overheads.hooked_call(compiled, False, modules=4)[0]().numpy()
    np.testing.assert_allclose(results, [plain, plain], rtol=1e-6)


def test_commands_print_tables_and_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("benchmarks.harness.sweep.pin", lambda threads: None)
    options = ["--only", "1x1x1", "--peers", "numpy", "--rounds", "1", "--seconds", "0.001"]
    assert gemm.SWEEP.main(options) == 0
    assert "| case | GFLOP/s | of floor | bound | graphc | numpy | best peer / graphc |" in capsys.readouterr().out
    assert gemm.SWEEP.main([*options, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["ratio"] > 0 and row["name"] == "1x1x1"
    for wrong in (["--only", "nothing"], ["--peers", "nobody"], ["no such case"]):
        with pytest.raises(SystemExit):
            gemm.SWEEP.main(wrong)


def test_a_table_is_written_into_its_page(tmp_path, monkeypatch: pytest.MonkeyPatch):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table of benchmarks.linalg -->\nold\n<!-- end -->\nafter\n")
    monkeypatch.setattr("benchmarks.harness.sweep.pin", lambda threads: None)
    sweep = Sweep(**{**vars(linalg.SWEEP), "page": page})
    assert sweep.main(["solve 3x3", "--peers", "numpy", "--rounds", "1", "--seconds", "0.001", "--write"]) == 0
    text = page.read_text()
    assert text.startswith("before\n<!-- table of benchmarks.linalg -->\nMicroseconds") and "old" not in text
    assert "| solve 3x3 |" in text and text.endswith("\n<!-- end -->\nafter\n")


def test_a_program_starts_again_once_with_its_variables(monkeypatch: pytest.MonkeyPatch):
    starts: list[dict[str, str]] = []
    monkeypatch.setattr(os, "execve", lambda path, command, environment: starts.append(environment))
    for name in THREADS:
        monkeypatch.setenv(name, "2")
    restart("benchmarks.int8", 2)
    assert not starts
    restart("benchmarks.int8", 2, {"LIMIT": "AVX2"})
    (environment,) = starts
    assert environment["LIMIT"] == "AVX2" and environment[THREADS[0]] == "2"
    monkeypatch.setenv("LIMIT", "AVX2")
    restart("benchmarks.int8", 2, {"LIMIT": "AVX2"})
    assert len(starts) == 1
