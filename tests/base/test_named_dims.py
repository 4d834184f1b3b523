"""Named dimensions as users write them."""

import pytest

from graphc.base.errors import ArgumentError
from graphc.base.named_dims import Dim, dimensions
from graphc.base.size import LARGEST, bounds


def test_wrong_dimensions_are_refused():
    with pytest.raises(ArgumentError, match="identifier"):
        Dim("two words")
    with pytest.raises(ArgumentError, match=r"are 5\.\.4"):
        Dim("n", 5, 4)
    with pytest.raises(ArgumentError, match=r"lie in 1\.\.8"):
        Dim("n", 1, 8, hint=9)
    with pytest.raises(ArgumentError, match="two dimensions are named n"):
        dimensions([Dim("n", 1, 8), Dim("n", 1, 9)])
    assert bounds(Dim("n"))[1] == LARGEST
