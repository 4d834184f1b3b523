"""Element types and layouts by PyTorch's numbers."""

from __future__ import annotations

import pytest

from graphc.base import dtypes
from graphc.errors import ArtifactError, UnsupportedError
from graphc.interop.pt2.types import check_strided, element_type
from tests.interop.pt2.kept import field

NUMBERS = {
    **{1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64"},
    **{12: "bool_", 13: "bfloat16", 28: "uint16", 34: "uint32", 35: "uint64"},
}


@pytest.mark.parametrize(("number", "name"), NUMBERS.items())
def test_element_types_that_both_have_are_found(number: int, name: str):
    assert element_type(field(number)) is getattr(dtypes, name)


@pytest.mark.parametrize(("number", "name"), [(9, "complex32"), (29, "float8_e4m3fn")])
def test_others_are_named(number: int, name: str):
    with pytest.raises(UnsupportedError, match=name):
        element_type(field(number))


@pytest.mark.parametrize("number", [0, -1, 99, "7", None, 7.0, True])
def test_numbers_that_there_are_not_are_refused(number: object):
    with pytest.raises(ArtifactError):
        element_type(field(number))


def test_sparse_layouts_are_refused():
    check_strided(field(7))
    with pytest.raises(UnsupportedError, match="sparse"):
        check_strided(field(1))
