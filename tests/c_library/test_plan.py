"""Plans of libraries: symbols, codes and sizes that all their files agree on."""

from __future__ import annotations

import graphc
from graphc.base.dtypes import ALL
from graphc.c_library.plan import C_TYPES, CODES, RESERVED, STATUSES, TYPE_NUMBERS, number_or, shape_text
from graphc.files.manifest import TensorSpec
from tests.c_library.conftest import Built


def test_codes_and_types_have_numbers_that_stay():
    assert CODES["OK"] == 0 and list(CODES.values()) == list(range(len(STATUSES)))
    first = {"f64": 1, "f32": 2, "i64": 3, "i32": 4, "i8": 5, "u8": 6, "bool": 7}
    assert first | {"i16": 8, "u16": 9, "u32": 10, "u64": 11, "f16": 12, "bf16": 13} == TYPE_NUMBERS
    assert set(C_TYPES) == {d.name for d in ALL if not d.is_complex}


def test_sizes_are_told_as_they_are_written():
    batch = graphc.Dim("batch")
    assert shape_text(TensorSpec("x", "f32", (batch, 2 * batch + 1, 3))) == "batch,2*batch + 1,3"
    assert (number_or(7, -1), number_or(batch, -1)) == (7, -1)


def test_no_function_of_an_entry_is_one_of_the_library(built: Built):
    header = built("decoder").files["h"].read_text()
    for name in RESERVED - {
        "t",
        "tensor",
        "tensor_t",
        "open_weights",
        "close_weights",
        "set_threads",
        "forget_threads",
    }:
        assert f"decoder_{name}(" in header, name
