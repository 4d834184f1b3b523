"""Names of values and functions."""

import pytest

from graphc.base.errors import ParseError
from graphc.interop.stablehlo.graph import Symbol
from graphc.interop.stablehlo.parser import parse_program
from graphc.interop.stablehlo.scopes import called

LOOP = """func.func @main(%n: tensor<i32>, %step: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.while(%i = %n) : tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %step : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }
  return %0 : tensor<i32>
}"""


def test_regions_say_which_values_they_capture():
    loop = parse_program(LOOP).main.body.operations[0]
    assert [block.captured for block in loop.blocks] == [("%n",), ("%step",)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("return %0", "return %1", "end of a region: %1 is used before"),
        ("%1 = stablehlo.add %i, %step", "%n = stablehlo.add %i, %step", "line 7: there are two values %n"),
        ("-> tensor<i32> {", "-> (tensor<i32>, tensor<i32>) {", "line 1: main returns 1 values, its type has 2"),
        ("%step: tensor<i32>)", "%n: tensor<i32>)", "there are two values %n"),
    ],
)
def test_wrong_names_are_errors(old, new, message):
    with pytest.raises(ParseError, match=message):
        parse_program(LOOP.replace(old, new))


def test_functions_must_not_call_themselves():
    text = "func.func @main(%x: tensor<f64>) -> tensor<f64> {\n%0 = call @main(%x) : (tensor<f64>) -> tensor<f64>\n"
    with pytest.raises(ParseError, match="'main' calls itself"):
        parse_program(text + "return %0 : tensor<f64>\n}")
    operation = parse_program(LOOP).main.body.operations[0]
    operation.attributes = {"callee": Symbol("f")}
    assert called(operation) == ["f"]
