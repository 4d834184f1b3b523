"""Attributes in checked form."""

import pytest

from graphc.base.errors import ParseError, UnsupportedError
from graphc.interop.stablehlo.call import OperationCall, integers
from graphc.interop.stablehlo.graph import Symbol
from graphc.interop.stablehlo.parser import parse_program
from graphc.interop.stablehlo.run import ProgramRunner

TEXT = """func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
  %0 = stablehlo.negate %x : tensor<2xf64>
  return %0 : tensor<2xf64>
}"""


@pytest.fixture
def call():
    program = parse_program(TEXT)
    operation = program.main.body.operations[0]
    operation.attributes = {
        "axes": (0, 1),
        "k": 3,
        "name": Symbol("f"),
        "numbers": {"a": 1},
        "flag": True,
        "word": "LT",
    }
    return OperationCall(operation, ProgramRunner(program), {})


def test_attributes_are_read_by_their_types(call):
    assert call.ints("axes") == (0, 1) and call.ints("absent", (4,)) == (4,) and call.int("k") == 3
    assert call.symbol("name") == "f" and call.numbers("numbers") == {"a": 1} and call.flag("flag")
    assert call.word("word") == "LT" and not call.flag("absent") and str(call.type) == "f64[2]"


@pytest.mark.parametrize(
    "read",
    [
        lambda c: c.ints("word"),
        lambda c: c.ints("absent"),
        lambda c: c.int("axes"),
        lambda c: c.symbol("k"),
        lambda c: c.numbers("k"),
        lambda c: c.block(),
    ],
)
def test_attributes_of_other_types_are_errors_with_the_line(call, read):
    with pytest.raises(ParseError, match="line 2"):
        read(call)


def test_what_graphc_lacks_is_named(call):
    error = call.unsupported("this")
    assert isinstance(error, UnsupportedError) and "stablehlo.negate" in str(error) and "line 2" in str(error)
    with pytest.raises(ParseError, match="place is not a list"):
        integers("x", None, "place")
