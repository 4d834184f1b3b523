"""Sizes as text; what these texts are is tested with the normal form of sizes, too."""

from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size_text import as_operand, text_of

TIME = Dim("time", 1, 512)


def test_a_size_is_a_sum_of_products():
    assert text_of((3 * TIME * TIME - TIME - 2).terms) == "3*time*time - time - 2"


def test_what_is_more_than_an_atom_stands_in_parentheses():
    assert [as_operand(s) for s in (7, TIME, TIME // 2, 2 * TIME, TIME + 1)] == [
        "7",
        "time",
        "(time // 2)",
        "(2*time)",
        "(time + 1)",
    ]
