"""Descriptors of products: what they are made of, and what is wrong with some."""

from __future__ import annotations

import json

import pytest

from graphc.base.errors import ArtifactError
from graphc.files.product_descriptor import Matrix, ProductDescriptor, as_descriptor

GIVEN = ProductDescriptor(
    "f32", Matrix("f32", 4, 5, 7), Matrix("f32", 4, 3, 4), Matrix("f32", 5, 3, 6), True, epilogue="gelu_aux_bias"
)


def test_sizes_and_operands() -> None:
    assert (GIVEN.m, GIVEN.n, GIVEN.k) == (5, 3, 4)
    assert GIVEN.operands == ("a", "b", "d", "bias", "aux")
    assert GIVEN.written == ("d", "aux")
    assert GIVEN.a.extent == 4 * 7 + 4


def test_plain_fields_and_back() -> None:
    fields = GIVEN.fields()
    assert fields["a.leading"] == 7 and "c.rows" not in fields
    assert as_descriptor(json.loads(json.dumps(fields))) == GIVEN
    assert as_descriptor(GIVEN) is GIVEN


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(ArtifactError, match="product"):
        as_descriptor({**GIVEN.fields(), "a.pitch": 3})
