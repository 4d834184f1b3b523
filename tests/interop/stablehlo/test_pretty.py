"""Short forms of operations have the attributes of the generic form."""

import pytest

from graphc.base.errors import ParseError
from graphc.interop.stablehlo.parser import parse_program


def only(line, arguments="%x: tensor<4x6xf64>, %y: tensor<6x5xf64>"):
    text = f"func.func @main({arguments}) -> () {{\n{line}\nreturn\n}}"
    return parse_program(text).main.body.operations[0]


@pytest.mark.parametrize(
    ("line", "attributes"),
    [
        ("%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6xf64>) -> tensor<6x4xf64>", {"permutation": (1, 0)}),
        ("%0 = stablehlo.iota dim = 1 : tensor<2x3xi32>", {"iota_dimension": 1}),
        (
            "%0 = stablehlo.slice %x [0:4:2, 1:3] : (tensor<4x6xf64>) -> tensor<2x2xf64>",
            {"start_indices": (0, 1), "limit_indices": (4, 3), "strides": (2, 1)},
        ),
        (
            "%0 = stablehlo.compare LT, %x, %x, FLOAT : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>",
            {"comparison_direction": "LT", "compare_type": "FLOAT"},
        ),
        (
            "%0 = stablehlo.reduce_precision %x, format = e5m10 : tensor<4x6xf64>",
            {"format": "e5m10", "exponent_bits": 5, "mantissa_bits": 10},
        ),
        ("%0 = stablehlo.cholesky %x, lower = true : tensor<4x6xf64>", {"lower": True}),
    ],
)
def test_attributes_have_the_names_of_the_generic_form(line, attributes):
    assert only(line).attributes == attributes


def test_dimension_numbers_of_products():
    operation = only(
        "%0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT]"
        " : (tensor<4x6xf64>, tensor<6x5xf64>) -> tensor<4x5xf64>"
    )
    numbers = operation.attributes["dot_dimension_numbers"]
    assert numbers["lhs_contracting_dimensions"] == (1,) and numbers["rhs_batching_dimensions"] == ()


def test_types_of_results():
    select = only("%0 = stablehlo.select %p, %a, %a : tensor<i1>, tensor<2xf64>", "%p: tensor<i1>, %a: tensor<2xf64>")
    assert [str(t) for t in select.types] == ["f64[2]"]
    barrier = only(
        "%0:2 = stablehlo.optimization_barrier %p, %a : tensor<i1>, tensor<2xf64>", "%p: tensor<i1>, %a: tensor<2xf64>"
    )
    assert [str(t) for t in barrier.types] == ["bool[]", "f64[2]"] and barrier.results == ("%0#0", "%0#1")


@pytest.mark.parametrize(
    "line",
    [
        "%0 = stablehlo.slice %x [0:4, -1:3] : (tensor<4x6xf64>) -> tensor<2x2xf64>",
        "%0 = stablehlo.reduce_precision %x, format = e5 : tensor<4x6xf64>",
        "%0 = stablehlo.dot_general %x, %y, contracting_dims = [1] : (tensor<4x6xf64>) -> tensor<4x5xf64>",
        "%0 = stablehlo.constant 3 : tensor<i32>",
        "%0 = stablehlo.while(%i = %x) : tensor<4x6xf64>, tensor<f64> cond {",
        "%0:2 = stablehlo.negate %x : tensor<4x6xf64>",
    ],
)
def test_damaged_forms_are_errors_with_the_line(line):
    with pytest.raises(ParseError, match="line 2"):
        only(line)
