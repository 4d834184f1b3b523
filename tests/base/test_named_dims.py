"""Named dimensions as users write them."""

import pytest

from graphc.base.errors import ArgumentError, GraphcError
from graphc.base.named_dims import Dim, dimensions, parse_size, solve
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


BATCH, TIME = Dim("batch", 1, 64), Dim("time", 2, 512)


def test_dimensions_are_solved_from_the_shapes_of_a_call():
    batch, time = dimensions([BATCH, TIME]).values()
    assert solve([("x", (8 * TIME, BATCH * TIME), (40, 15)), ("y", (BATCH,), (3,))]) == {batch: 3, time: 5}
    assert solve([("x", (3 * BATCH - 1, 4), (11, 4))]) == {batch: 4}
    for shape, given, message in (
        ((BATCH, TIME), (65, 2), r"dimension batch is 65, it lies in 1\.\.64"),
        ((BATCH, BATCH + 1), (3, 5), r"x: dim 1 is 5, it must be batch \+ 1 with batch = 3"),
        ((3 * BATCH,), (4,), r"x: dim 0 is 4, which is not 3\*batch for any batch"),
        ((BATCH * TIME,), (4,), "x: no shape gives dimension batch"),
        ((BATCH, 4), (3, 5), "x: dim 1 is 5, it must be 4"),
    ):
        with pytest.raises(GraphcError, match=message):
            solve([("x", shape, given)])


def test_a_size_is_read_from_its_text():
    known = dimensions([BATCH, TIME])
    sizes = (7, -3, BATCH, 3 * BATCH * TIME - 5, (TIME - 9) // 4 * BATCH, -TIME, 2 * TIME // (BATCH + 1) - 16 * BATCH)
    for size in sizes:
        assert parse_size(str(size), known) == size


@pytest.mark.parametrize(
    "text", ["", "n", "batch*", "batch + 0", "2*(batch + 1)", "batch // 0", "batch ** 2", "f(batch)", "1.5", "(" * 3000]
)
def test_other_texts_are_no_sizes(text: str):
    with pytest.raises(ArgumentError, match="is no size of the dimensions batch"):
        parse_size(text, dimensions([BATCH]))
