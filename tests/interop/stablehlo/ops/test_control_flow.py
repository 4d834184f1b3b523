"""Rules of loops, branches and calls."""

import numpy as np
import pytest

import graphc as gc
from tests.interop.stablehlo.kept import arrays_of, check_kept, run, text_of

LOOPS = ["scan", "scan_gradient", "collatz", "fori", "newton", "lorenz", "lqr", "adam", "lstm"]


@pytest.mark.parametrize("name", [*LOOPS, "branches"])
def test_kept_programs_give_what_jax_gives(name):
    check_kept(name)


def test_loops_are_part_of_model_files(tmp_path):
    with gc.no_grad():
        gc.export(gc.from_stablehlo(text_of("lorenz")), *arrays_of("lorenz", "in"), path=tmp_path / "lorenz.gcm")
    results = gc.load(tmp_path / "lorenz.gcm")(*arrays_of("lorenz", "in"))
    for result, expected in zip(results, arrays_of("lorenz", "out"), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-10)


def test_the_last_branch_runs_for_numbers_out_of_range():
    body = """(%i: tensor<i32>) -> tensor<i32>
    %0 = "stablehlo.case"(%i) ({
      %1 = stablehlo.constant dense<10> : tensor<i32>
      stablehlo.return %1 : tensor<i32>
    }, {
      stablehlo.return %i : tensor<i32>
    }, {
      %1 = stablehlo.constant dense<30> : tensor<i32>
      stablehlo.return %1 : tensor<i32>
    }) : (tensor<i32>) -> tensor<i32>
    return %0 : tensor<i32>"""
    assert [run(body, np.int32(i)).item() for i in (-1, 0, 1, 2, 9)] == [30, 10, 1, 30, 30]


def test_composites_without_a_rule_run_their_definition():
    text = """module {
      func.func public @main(%x: tensor<2xf64>) -> tensor<2xf64> {
        %0 = stablehlo.composite "mine.twice" %x {decomposition = @impl} : (tensor<2xf64>) -> tensor<2xf64>
        return %0 : tensor<2xf64>
      }
      func.func private @impl(%x: tensor<2xf64>) -> tensor<2xf64> {
        %0 = stablehlo.add %x, %x : tensor<2xf64>
        return %0 : tensor<2xf64>
      }
    }"""
    assert gc.from_stablehlo(text)(np.array([1.0, 2.0])).tolist() == [2, 4]


def test_shardings_have_no_effect():
    body = """(%x: tensor<2xf64>) -> tensor<2xf64>
    %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<2xf64>) -> tensor<2xf64>
    %1 = sdy.sharding_constraint %0 <@mesh, [{}]> : tensor<2xf64>
    return %1 : tensor<2xf64>"""
    assert run(body, [1.0, 2.0]).tolist() == [1, 2]
