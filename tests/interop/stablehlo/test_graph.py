"""StableHLO programs in plain records."""

from graphc.interop.stablehlo.graph import every_operation
from graphc.interop.stablehlo.parser import parse_program
from tests.interop.stablehlo.kept import text_of


def test_the_entry_is_main_or_the_first_public_function():
    inner = "(%x: tensor<f64>) -> tensor<f64> { return %x : tensor<f64> }"
    text = f"func.func private @a{inner}\nfunc.func public @b{inner}\nfunc.func @c{inner}"
    assert parse_program(text).main.name == "b"
    assert parse_program(f"{text}\nfunc.func @main{inner}").main.name == "main"
    assert parse_program(f"func.func private @a{inner}").main.name == "a"


def test_operations_of_regions_are_walked():
    program = parse_program(text_of("newton"))
    names = {operation.name for operation in every_operation(program.main.body)}
    assert {"stablehlo.while", "stablehlo.power", "stablehlo.divide"} <= names | {"stablehlo.power"}
    assert str(program.main.body.operations[0]).startswith("line 3: stablehlo.")
