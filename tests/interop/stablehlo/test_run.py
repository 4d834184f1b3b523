"""Interpreter of programs."""

from itertools import islice

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ParseError, UnsupportedError
from graphc.interop.stablehlo.parser import parse_program
from graphc.interop.stablehlo.run import ProgramRunner, custom_target
from tests.interop.stablehlo.kept import check_kept
from tools.damage.stablehlo_texts import NET
from tools.nets.run import BAD, EQUAL

TEXT = """func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
  %0 = stablehlo.add %x, %x : tensor<2xf64>
  return %0 : tensor<2xf64>
}"""


def test_kept_programs_give_what_jax_gives():
    check_kept("mlp_outputs", "training_step", "jacobians", "vmapped")


def test_random_numbers_of_jax_are_the_same_bits():
    check_kept("random_numbers", "random_gamma")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("stablehlo.no_such %x, %x : tensor<2xf64>", r"no rule for these operations: stablehlo\.no_such \(line 2\)"),
        (
            "stablehlo.custom_call @lapack_dnone_ffi(%x) : (tensor<2xf64>) -> tensor<2xf64>",
            r"custom_call @lapack_dnone_ffi \(line 2\)",
        ),
        ("vhlo.add_v1 %x, %x : tensor<2xf64>", r"vhlo\.add_v1 \(line 2\)\n  try    pass the text of exported"),
        ("stablehlo.after_all %x : !stablehlo.token", r"after_all"),
    ],
)
def test_operations_without_a_rule_are_refused_by_name(line, message):
    with pytest.raises(UnsupportedError, match=message):
        ProgramRunner(parse_program(TEXT.replace("stablehlo.add %x, %x : tensor<2xf64>", line)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "%x, %x : tensor<2xf64>",
            "%x, %x : tensor<3xf64>",
            r"line 2: stablehlo\.add gives f64\[2\], .* f64\[3\]",
        ),
        ("-> tensor<2xf64>", "-> tensor<2xf32>", r"line 1: main gives f64\[2\], the text says f32\[2\]"),
        ("%x, %x : tensor<2xf64>", "%x, %x : tensor<2xf32>", r"the text says f32\[2\]"),
    ],
)
def test_types_of_the_text_must_be_those_of_the_values(old, new, message):
    with pytest.raises(ParseError, match=message):
        ProgramRunner(parse_program(TEXT.replace(old, new)))([gc.ones(2, dtype=gc.float64)])


def test_operations_that_do_not_fit_their_operands_are_typed_errors():
    runner = ProgramRunner(parse_program(TEXT.replace("add %x, %x", "transpose %x, dims = [1]")))
    with pytest.raises(gc.errors.GraphcError, match=r"line 2: stablehlo\.transpose"):
        runner([gc.ones(2, dtype=gc.float64)])


def test_targets_have_names():
    text = TEXT.replace("add %x, %x : tensor<2xf64>", "custom_call @Sharding(%x) : (tensor<2xf64>) -> tensor<2xf64>")
    assert custom_target(parse_program(text).main.body.operations[0]) == "Sharding"


def test_damaged_texts_are_read_or_are_typed_errors():
    outcomes = [NET.judge(case) for case in islice(NET.cases(5), 80)]
    assert [outcome.detail for outcome in outcomes if outcome.kind in BAD] == []
    assert any(outcome.kind == EQUAL for outcome in outcomes)


def test_results_may_be_arguments():
    module = gc.from_stablehlo(TEXT.replace("return %0", "return %x"))
    assert module(np.array([1.0, 2.0])).tolist() == [1, 2]
