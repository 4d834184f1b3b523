"""Parser of StableHLO text."""

import pytest

from graphc.base.errors import ParseError, UnsupportedError
from graphc.interop.stablehlo.parser import parse_program

SHORT = """module @m attributes {a = 1 : i32} {
  sdy.mesh @mesh = <["x"=1]>
  func.func public @main(%arg0: tensor<2xf64> {jax.arg = "x"} loc("x")) -> (tensor<2xf64> {jax.result = ""}) {
    %0 = call @f(%arg0) : (tensor<2xf64>) -> tensor<2xf64> loc(#loc1)
    return %0 : tensor<2xf64>
  }
  func.func private @f(%arg0: tensor<2xf64>) -> tensor<2xf64> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2xf64>
    return %0 : tensor<2xf64>
  }
}
#loc1 = loc("x.py":1:1)
"""
GENERIC = """"builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{function_type = (tensor<2xf64>) -> tensor<2xf64>, sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%1: tensor<2xf64>):
    %2 = "func.call"(%1) <{callee = @f}> : (tensor<2xf64>) -> tensor<2xf64>
    "func.return"(%2) : (tensor<2xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2xf64>) -> tensor<2xf64>, sym_name = "f", sym_visibility = "private"}> ({
  ^bb0(%1: tensor<2xf64>):
    %2 = "stablehlo.add"(%1, %1) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
    "func.return"(%2) : (tensor<2xf64>) -> ()
  }) : () -> ()
}) {a = 1 : i32} : () -> ()
"""


def outline(text):
    program = parse_program(text)
    return {
        name: (
            [str(t) for t in f.body.types],
            [(o.name, [str(t) for t in o.types]) for o in f.body.operations],
            f.public,
        )
        for name, f in program.functions.items()
    }


def test_both_forms_give_the_same_program():
    assert outline(SHORT) == outline(GENERIC)
    assert parse_program(SHORT).name == parse_program(GENERIC).name == "m"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no function"),
        ("ML\xefR\x01", "binary form"),
        ("module {\n", "expected a function"),
        (SHORT.replace("%arg0, %arg0", "%arg0, %9"), "line 8: %9 is used before it is computed"),
        (SHORT.replace("@f(%arg0) :", "@g(%arg0) :"), "line 4: there is no function 'g'"),
        (SHORT.replace("private @f", "private @main"), "line 7: there are two functions 'main'"),
        (SHORT.replace("-> tensor<2xf64> loc(#loc1)", "-> (tensor<2xf64>, tensor<2xf64>)"), "2 results, 1 have a name"),
        (SHORT.replace("    return %0 : tensor<2xf64>\n  }\n}", "  "), "found the end of the text"),
    ],
)
def test_damaged_texts_are_errors(text, message):
    with pytest.raises(ParseError, match=message):
        parse_program(text)


def test_jumps_and_declarations_are_refused():
    with pytest.raises(UnsupportedError, match="only declared"):
        parse_program("func.func private @f(%x: tensor<f64>) -> tensor<f64>")
    jump = SHORT.replace("    return %0 : tensor<2xf64>\n  }\n}", "  ^bb1:\n    return %0 : tensor<2xf64>\n  }\n}")
    with pytest.raises(UnsupportedError, match="several blocks"):
        parse_program(jump)


def test_nesting_is_limited():
    line = '"stablehlo.if"(%p) ({\n'
    with pytest.raises(ParseError, match="more than 64 levels"):
        parse_program("func.func @main(%p: tensor<i1>) {\n" + line * 80)
