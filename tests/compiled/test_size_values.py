"""What was computed from sizes, for the sizes of a call."""

from graphc.base.named_dims import Dim, dimensions
from graphc.compiled.size_values import effects_at, structure_at, value_at
from graphc.tensors.structure import Branch, Leaf, Static

BATCH = Dim("batch", 1, 64)
SIZES = {dimensions([BATCH])["batch"]: 6}


def test_numbers_take_the_place_of_sizes():
    assert [value_at(v, SIZES) for v in (BATCH * 2, BATCH / 4, 3, "x", None)] == [12, 1.5, 3, "x", None]


def test_structures_and_attributes_hold_numbers():
    structure = Branch(tuple, (), (Leaf(), Static(BATCH + 1), Static("a")))
    assert structure_at(structure, SIZES) == Branch(tuple, (), (Leaf(), Static(7), Static("a")))
    assert effects_at([({}, "n", BATCH)], SIZES) == (({}, "n", 6),)
