"""Regions that are one of a few known functions."""

import pytest

from graphc.interop.stablehlo.ops.regions import kinds_of
from graphc.interop.stablehlo.parser import parse_program


def kinds(lines, returned):
    text = f"""func.func @main(%a: tensor<f64>, %b: tensor<f64>) -> tensor<f64> {{
      {lines}
      return {returned} : tensor<f64>
    }}"""
    return kinds_of(parse_program(text).main.body)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum"])
def test_binary_operations_are_known_in_both_orders(name):
    for pair in ("%a, %b", "%b, %a"):
        assert kinds(f"%0 = stablehlo.{name} {pair} : tensor<f64>", "%0") == [name]


def test_arguments_themselves_are_known():
    assert kinds("", "%a") == ["first"] and kinds("", "%b") == ["second"]


def test_other_regions_are_not():
    assert kinds("%0 = stablehlo.add %a, %a : tensor<f64>", "%0") is None
    assert kinds("%0 = stablehlo.subtract %a, %b : tensor<f64>", "%0") is None
