"""Arguments per spatial dimension and optional batch dimensions."""

from __future__ import annotations

import pytest

from graphc.errors import AttributeValueError, ShapeError
from graphc.nn.functional.spatial import batched, per_dimension, symmetric, unbatched
from tests.nn.compare import floats, tensor


def test_one_number_or_several():
    assert per_dimension(3, 2, "stride") == (3, 3)
    assert per_dimension([4], 2, "stride") == (4, 4)
    assert per_dimension((1, 2), 2, "stride") == (1, 2)
    with pytest.raises(AttributeValueError, match="stride must be one number or 2, got 3"):
        per_dimension((1, 2, 3), 2, "stride")


def test_symmetric():
    assert symmetric((1, 2)) == ((1, 1), (2, 2))


def test_batch_dimension_comes_and_goes():
    x = tensor(floats(3, 4, 5))
    with_batch, added = batched(x, 2, "conv2d")
    assert with_batch.shape == (1, 3, 4, 5) and added
    assert unbatched(with_batch, added).shape == (3, 4, 5)
    same, added = batched(with_batch, 2, "conv2d")
    assert same is with_batch and not added
    assert unbatched(same, added) is same


def test_wrong_number_of_dimensions():
    with pytest.raises(ShapeError, match=r"conv2d: the input has 2 dimensions \[3, 4\], expected 4"):
        batched(tensor(floats(3, 4)), 2, "conv2d")
