"""Types and attributes of MLIR text."""

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ParseError, UnsupportedError
from graphc.interop.stablehlo.attributes import AttributeReader, tensor_type, unquoted
from graphc.interop.stablehlo.graph import Symbol
from graphc.interop.stablehlo.lexer import Cursor


def read(text):
    cursor = Cursor(text)
    value = AttributeReader(cursor).attribute()
    assert cursor.peek().kind == "end"
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3 : i64", 3),
        ("-1.5", -1.5),
        ('"a\\22\\n"', 'a"\n'),
        ("[1, [2, 3], true]", (1, (2, 3), True)),
        ("array<i64: 1, -2>", (1, -2)),
        ("array<i64>", ()),
        ("{a = 1 : i32, b}", {"a": 1, "b": True}),
        ("@main", Symbol("main")),
        ("#stablehlo<comparison_direction LT>", "LT"),
        ("#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1]>", None),
        ("[b, 0, f]x[0, i, o]->[b, f, 0]", (("b", 0, "f"), (0, "i", "o"), ("b", "f", 0))),
    ],
)
def test_values_of_attributes(text, value):
    expected = {"lhs_batching_dimensions": (0,), "rhs_batching_dimensions": (1,)} if value is None else value
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "array"),
    [
        ("dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>", np.array([[1, 2], [3, 4]], np.int32)),
        ("dense<-1.5> : tensor<3xf64>", np.full(3, -1.5)),
        ("dense<0x7FF0000000000000> : tensor<f64>", np.array(np.inf)),
        ("dense<[true, false]> : tensor<2xi1>", np.array([True, False])),
        ("dense<(1.0, -2.0)> : tensor<complex<f64>>", np.array(1 - 2j)),
        ("dense<> : tensor<0x3xf32>", np.zeros((0, 3), np.float32)),
        ('dense<"0x0000803F000000C0"> : tensor<2xf32>', np.array([1, -2], np.float32)),
        ('dense<"0x010001"> : tensor<3xi1>', np.array([True, False, True])),
        ('dense<"0xFF01"> : tensor<9xi1>', np.full(9, True)),
        ("dense<0x3FC0> : tensor<bf16>", np.array(1.5, np.float32)),
        ('dense<"0xC03F0040"> : tensor<2xbf16>', np.array([1.5, 2], np.float32)),
        ("dense<4294967295> : tensor<ui32>", np.array(2**32 - 1, np.uint32)),
    ],
)
def test_elements_of_constants(text, array):
    found = read(text).array
    assert found.dtype == array.dtype and found.shape == array.shape and np.array_equal(found, array)


@pytest.mark.parametrize(
    "text",
    [
        "dense<[1, 2]> : tensor<3xi32>",
        "dense<300> : tensor<ui8>",
        "dense<1.5> : tensor<i32>",
        'dense<"0x00"> : tensor<2xf32>',
        "dense<1> : tensor<complex<f32>>",
        "dense<maybe> : tensor<i1>",
        "[" * 80,
        "#unknown",
        "}",
    ],
)
def test_damaged_attributes_are_errors_with_the_line(text):
    with pytest.raises(ParseError, match="line 1"):
        read(text)


def test_types_that_graphc_lacks_are_refused_by_name():
    assert tensor_type("2x3xbf16", 1).dtype is gc.bfloat16 and tensor_type("f64, #x", 1).shape == ()
    for text, message in (("?x3xf32", "does not fix"), ("3xi4", "element type i4"), ("2xf8E4M3FN", "f8E4M3FN")):
        with pytest.raises(UnsupportedError, match=message):
            tensor_type(text, 1)
    with pytest.raises(ParseError, match="too large"):
        tensor_type("9999999x9999999xf64", 1)


def test_quotes_and_escapes_are_taken_off():
    assert unquoted('"a\\\\b\\0A"') == "a\\b\n"
