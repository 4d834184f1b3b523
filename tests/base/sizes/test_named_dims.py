"""Named dimensions as users write them."""

import pytest

from graphc.base.errors import ArgumentError
from graphc.base.sizes.named_dims import Dim, chosen_sizes, dimensions, parse_size
from graphc.base.sizes.size import LARGEST, at, bounds, larger, smaller


def test_wrong_dimensions_are_refused():
    for name in ("", "a`b", "a\nb", 3):
        with pytest.raises(ArgumentError, match="printable text without a backquote"):
            Dim(name)
    with pytest.raises(ArgumentError, match=r"are 5\.\.4"):
        Dim("n", 5, 4)
    with pytest.raises(ArgumentError, match=r"must be in 1\.\.8"):
        Dim("n", 1, 8, hint=9)
    with pytest.raises(ArgumentError, match="two dimensions are named n"):
        dimensions([Dim("n", 1, 8), Dim("n", 1, 9)])
    assert bounds(Dim("n"))[1] == LARGEST


BATCH, TIME = Dim("batch", 1, 64), Dim("time", 2, 512)


def test_a_size_is_read_from_its_text():
    known = dimensions([BATCH, TIME])
    sizes = (7, -3, BATCH, 3 * BATCH * TIME - 5, (TIME - 9) // 4 * BATCH, -TIME, 2 * TIME // (BATCH + 1) - 16 * BATCH)
    sizes += (smaller(BATCH, 5), larger(TIME // 2, BATCH) * 3, smaller(TIME, 9) // 4)
    for size in sizes:
        assert parse_size(str(size), known) == size


def test_names_are_quoted_unless_they_are_words_that_name_no_loop():
    plain = ("n", "rows", "time_4", "i", "layer0", "class", "in", "größe")
    assert [str(Dim(name)) for name in plain] == list(plain)
    others = (
        "i0",
        "r_0",
        "o_12",
        "oc_3",
        "once_1",
        "l_2_some",
        "0_0",
        "batch size",
        "a, b]",
        "2*s + 1",
        "?",
        "élan",
        "max",
    )
    assert [str(Dim(name)) for name in others] == [f"`{name}`" for name in others]
    known = dimensions(map(Dim, (*plain, *others)))
    for name in (*plain, *others):
        size = 2 * Dim(name) * Dim("class") - 5 + (Dim(name) + 1) // 4
        assert parse_size(str(size), known) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        "class",
        "_0",
        "`batch`",
        "n",
        "batch*",
        "batch + 0",
        "2*(batch + 1)",
        "batch // 0",
        "batch ** 2",
        "f(batch)",
        "max(batch)",
        "max(batch, 70)",
        "max",
        "1.5",
        "(" * 3000,
    ],
)
def test_other_texts_are_no_sizes(text: str):
    with pytest.raises(ArgumentError, match="is not a size of the dimensions batch"):
        parse_size(text, dimensions([BATCH]))


def test_sizes_are_chosen_for_some_dimensions():
    batch, time = BATCH, TIME
    known = dimensions([BATCH, TIME])
    chosen = chosen_sizes(known, {"batch": 3})
    assert (at(batch * time + batch, chosen), at(batch, chosen_sizes(known, {"batch": time + 1}))) == (
        3 * time + 3,
        time + 1,
    )
    with pytest.raises(ArgumentError, match=r"dimension batch is 65, outside of 1\.\.64"):
        chosen_sizes(known, {"batch": 65})
    with pytest.raises(ArgumentError, match="no dimension bath"):
        chosen_sizes(known, {"bath": 1})
