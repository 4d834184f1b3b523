"""Rules of sort and top_k."""

import numpy as np
import pytest

import graphc as gc
from graphc.interop.stablehlo.ops.sorting import Comparator
from graphc.interop.stablehlo.parser import parse_program
from tests.interop.stablehlo.kept import check_kept, run


@pytest.mark.parametrize("name", ["sorts", "largest"])
def test_kept_programs_give_what_jax_gives(name):
    check_kept(name)


def text(region):
    return f"""(%x: tensor<6xi32>, %y: tensor<6xf64>) -> (tensor<6xi32>, tensor<6xf64>)
    %0:2 = "stablehlo.sort"(%x, %y) <{{dimension = 0 : i64, is_stable = true}}> ({{
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<f64>, %d: tensor<f64>):
      {region}
      stablehlo.return %r : tensor<i1>
    }}) : (tensor<6xi32>, tensor<6xf64>) -> (tensor<6xi32>, tensor<6xf64>)
    return %0#0, %0#1 : tensor<6xi32>, tensor<6xf64>"""


LEXICOGRAPHIC = """%1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %2 = stablehlo.compare EQ, %b, %a : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %3 = stablehlo.compare GT, %c, %d : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %4 = stablehlo.and %3, %2 : tensor<i1>
      %r = stablehlo.or %4, %1 : tensor<i1>"""
UNKNOWN = """%1 = stablehlo.add %a, %b : tensor<i32>
      %r = stablehlo.compare LT, %1, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>"""


def test_a_later_key_decides_between_equal_elements():
    x, y = np.array([2, 1, 2, 1, 0, 2], np.int32), np.array([1.0, 5.0, 3.0, 7.0, 0.0, 2.0])
    order = sorted(range(6), key=lambda i: (x[i], -y[i]))
    first, second = run(text(LEXICOGRAPHIC), x, y)
    assert first.tolist() == x[order].tolist() and second.tolist() == y[order].tolist()


def test_keys_are_computed_before_elements_are_sorted():
    region = """%1 = stablehlo.negate %c : tensor<f64>
      %2 = stablehlo.negate %d : tensor<f64>
      %r = stablehlo.compare LT, %1, %2 : (tensor<f64>, tensor<f64>) -> tensor<i1>"""
    x, y = np.arange(6, dtype=np.int32), np.array([1.0, 5.0, 3.0, 7.0, 0.0, 2.0])
    assert run(text(region), x, y)[0].tolist() == np.argsort(-y).tolist()


def test_other_comparators_are_refused():
    first, *lines = text(UNKNOWN).splitlines()
    source = "\n".join([f"func.func @main{first} {{", *lines, "}"])
    operation = parse_program(source).main.body.operations[0]
    assert Comparator(operation.blocks[0]).keys() is None
    with pytest.raises(gc.errors.UnsupportedError, match=r"stablehlo\.sort: graphc has no form for this comparator"):
        gc.from_stablehlo(source)(np.zeros(6, np.int32), np.zeros(6))
