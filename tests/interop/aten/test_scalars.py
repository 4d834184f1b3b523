"""Operators on sizes and numbers."""

from __future__ import annotations

from typing import Any

import pytest

import graphc
from graphc.errors import UnsupportedError
from graphc.interop.aten.table import TABLE


def test_sizes_are_those_of_the_tensor():
    x = graphc.zeros(2, 3)
    assert TABLE["aten.sym_size.int"](x, 1) == 3 and TABLE["aten.sym_numel.default"](x) == 6


def test_numbers_are_computed_as_python_does():
    assert TABLE["operator.floordiv"](7, 2) == 3 and TABLE["torch.sym_max"](2, 5) == 5
    assert TABLE["torch.sym_sum"]([2, 5, -1]) == 6


def test_assertions_on_values_hold_or_are_errors_and_are_refused_compiled():
    check = TABLE["aten._assert_async.msg"]
    for target, given in (("aten._assert_async.msg", graphc.tensor(False)), ("aten._assert_scalar.default", False)):
        with pytest.raises(RuntimeError, match="an assertion of the model fails: all are positive"):
            TABLE[target](given, "all are positive")
    with pytest.raises(UnsupportedError, match="an assertion on values in compiled code"):
        graphc.compile(lambda x: check(x.any(), ""))(graphc.ones(2))


X = graphc.zeros(2, 3)
NUMBERS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("aten.sym_size.int", (X, 1), 3),
    ("aten.sym_numel.default", (X,), 6),
    ("aten.sym_stride.int", (X, 0), 3),
    ("aten.sym_storage_offset.default", (X,), 0),
    ("aten._assert_async.default", (graphc.tensor(True),), None),
    ("aten._assert_async.msg", (graphc.tensor(2), "text"), None),
    ("aten._assert_scalar.default", (True, "text"), None),
    ("aten.sym_constrain_range_for_size.default", (3,), None),
    ("aten.sym_constrain_range.default", (3,), None),
    ("aten._assert_tensor_metadata.default", (X,), None),
    ("operator.getitem", ((4, 5), 1), 5),
    ("operator.add", (7, 2), 9),
    ("operator.sub", (7, 2), 5),
    ("operator.mul", (7, 2), 14),
    ("operator.truediv", (7, 2), 3.5),
    ("operator.floordiv", (-7, 2), -4),
    ("operator.mod", (-7, 2), 1),
    ("operator.neg", (7,), -7),
    ("operator.pow", (7, 2), 49),
    ("operator.eq", (7, 2), False),
    ("operator.ne", (7, 2), True),
    ("operator.lt", (7, 2), False),
    ("operator.le", (2, 2), True),
    ("operator.gt", (2, 2), False),
    ("operator.ge", (2, 2), True),
    ("operator.and_", (True, False), False),
    ("operator.or_", (True, False), True),
    ("operator.abs", (-7,), 7),
    ("math.ceil", (2.5,), 3),
    ("math.floor", (-2.5,), -3),
    ("math.trunc", (-2.5,), -2),
    ("math.sqrt", (9,), 3.0),
    ("torch._sym_sqrt", (9,), 3.0),
    ("builtins.round", (2.5, None), 2),
    ("torch.sym_not", (True,), False),
    ("torch.sym_float", (2,), 2.0),
    ("torch.sym_int", (-2.5,), -2),
    ("torch.sym_max", (2, 5), 5),
    ("torch.sym_min", (2, 5), 2),
    ("torch.sym_sum", ([2, 5, -1],), 6),
    ("torch.sym_ite", (False, 2, 5), 5),
]


@pytest.mark.parametrize(("target", "args", "expected"), NUMBERS, ids=[n[0] for n in NUMBERS])
def test_an_operator_on_numbers_gives_what_pytorch_gives(target: str, args: tuple[Any, ...], expected: Any):
    found = TABLE[target](*args)
    assert found == expected and type(found) is type(expected)
