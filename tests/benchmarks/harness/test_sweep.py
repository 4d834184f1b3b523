"""The sweeps: cases match their names, contenders agree, and tables hold the measurements."""

from __future__ import annotations

import argparse
import json

import numpy as np
import pytest

from benchmarks import conv, gemm, kernels, precision
from benchmarks.harness.sweep import Result, arrays_of, difference, floor_seconds, format_table, measure, report
from benchmarks.workloads import WORKLOADS

SMALL_GEMM = ("3x5x7", "1x17x64 t w", "64x64x64 f64")
SMALL_CONV = ("odd 3x7x37 3x3 11 s2", "grouped 1x128x28 3x3 128 g32", "unet 1x64x32 2x2 32 s2 t")
SMALL_KERNELS = ("sum first", "embedding", "concat", "argmax", "cumsum last", "layer_norm grad")


def test_enough_cases():
    assert len(gemm.CASES) >= 60 and len(conv.CASES) >= 40 and len(kernels.CASES) >= 20


@pytest.mark.parametrize("name", SMALL_GEMM)
def test_products_agree(name: str):
    result = gemm.run_case(gemm.CASES[name], ["numpy"], 1, 0.001)
    assert not result.problems and result.errors["graphc"] < 1e-5
    assert result.facts["bound"] in ("memory", "peak") and set(result.rounds_ms) == {"graphc", "numpy"}


@pytest.mark.parametrize("name", SMALL_CONV)
def test_layers_agree_with_their_sizes(name: str):
    layer = conv.CASES[name]
    pytest.importorskip("torch")
    result = conv.run_case(layer, ["torch"], 1, 0.001)
    assert not result.problems and result.errors["graphc"] < 1e-4
    (array,) = arrays_of(conv.own(layer)()())
    assert array.shape == (layer.batch, layer.filters, layer.out_side, layer.out_side)


@pytest.mark.parametrize("name", SMALL_KERNELS)
def test_kernels_agree(name: str):
    pytest.importorskip("torch")
    result = kernels.run_case(kernels.CASES[name], ["torch"], 1, 0.001)
    assert not result.problems and result.errors["graphc"] < 1e-3
    assert {"kernels", "GB/s", "of floor"} < set(result.facts)


def test_what_fails_is_told():
    def broken():
        raise ValueError("no such thing\nmore")

    result = measure(Result("x", {}), {"graphc": lambda: lambda: np.ones(2), "torch": broken}, 2, 0.001)
    assert result.problems == {"torch": "ValueError: no such thing"}
    assert len(result.rounds_ms["graphc"]) == 2 and result.ratio is None
    assert "torch: ValueError: no such thing: x" in format_table([result], (), ["graphc", "torch"])


def test_ratio_is_that_of_the_best_peer():
    result = Result("x", {}, {"graphc": [1.0, 2.0, 4.0], "a": [3.0, 3.0, 3.0], "b": [2.0, 2.0, 2.0]})
    assert result.best_peer == "b" and result.ratio == 1.0
    table = format_table([result], (), ["graphc", "a", "b"])
    assert "| x | 2 | 3 | **2** | 1.00 |" in table and "1 compared, 0 behind" in table


def test_differences():
    a = [np.array([1.0, 2.0])]
    assert difference(a, [np.array([1.0, 4.0])]) == 0.5
    assert difference(a, [np.zeros(3)]) == float("inf")
    assert difference(a, [*a, *a]) == float("inf")


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_a_difference_unless_both_have_it(odd: float):
    plain, other = [np.array([1.0, 2.0])], [np.array([odd, 2.0])]
    assert difference(other, plain) == difference(plain, other) == float("inf")
    assert difference(other, other) == 0 and difference([np.array([odd, 4.0])], other) == 1


def test_arrays_of_nested_results_are_found():
    arrays = arrays_of({"a": (np.ones(2), None), "b": [np.zeros(3)]})
    assert [a.tolist() for a in arrays] == [[1.0, 1.0], [0.0, 0.0, 0.0]]


def test_floors():
    assert floor_seconds(0, 10**12) > 0.5 * floor_seconds(0, 10**12, double=True) * 0.99
    assert floor_seconds(1 << 20, 0) > 0


def test_json(capsys: pytest.CaptureFixture[str]):
    options = argparse.Namespace(json=True, rounds=1, peers=["a"])
    report(options, [Result("x", {"n": 1}, {"graphc": [1.0], "a": [3.0]})], ("n",))
    printed = json.loads(capsys.readouterr().out)
    assert printed["rows"][0]["ratio"] == 3.0 and printed["machine"]["peak_flops"] > 0


def test_narrow_weights_are_measured_with_their_errors():
    result = precision.run_case(WORKLOADS["lstm_b1_t64"], ["bf16", "int8"], 1, 0.001)
    assert not result.problems and set(result.rounds_ms) == {"graphc", "bf16", "int8"}
    facts = result.facts
    assert facts["graphc"]["error"] == 0 < facts["bf16"]["error"] < 0.01 and 0 < facts["int8"]["error"] < 0.02
    assert facts["graphc"]["MB"] > 1.9 * facts["bf16"]["MB"] > 3.4 * facts["int8"]["MB"] / 1.9
    row = precision.format_row(result, ["bf16", "int8"])
    assert row.startswith("| lstm_b1_t64 | ") and row.count("x, ") == 2
