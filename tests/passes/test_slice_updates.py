"""Slices assigned in a state: which become updates, and that numbers stay."""

from __future__ import annotations

import pytest

from graphc import nn, trace, zeros
from graphc.ir.graph.interpret import copy
from graphc.lowering.program import lower_graph
from graphc.passes.pipeline import optimize
from graphc.passes.slice_updates import UpdateSlices
from graphc.tensors.tensor import Tensor
from tests.lowering.test_in_place import stored
from tests.passes.check_pass import check_equal


class Assigned(nn.Module):
    """Parts of a buffer [4,6,3] that are assigned."""

    def __init__(self, index: tuple, again: tuple | None = None):
        super().__init__()
        self.index, self.again = index, again
        self.register_buffer("content", zeros(4, 6, 3))

    def forward(self, x: Tensor) -> Tensor:
        self.content[self.index] = x
        if self.again is not None:
            self.content[self.again] = x * 2
        return self.content.sum(-1)


@pytest.mark.parametrize(
    ("index", "again", "size"),
    [
        ((slice(None), slice(2, 3)), None, 12),
        ((slice(None), slice(0, 4)), None, 48),
        ((slice(None), slice(1, 6, 2)), None, 36),
        ((slice(None), slice(2, 4)), (slice(None), slice(3, 5)), 48),
        ((2,), None, 18),
    ],
)
def test_only_the_slice_is_written(index: tuple, again: tuple | None, size: int):
    module = Assigned(index, again)
    graph = trace(module, zeros(*module.content[index].shape))
    before = copy(graph)
    result = optimize(graph)
    check_equal(before, result)
    assert stored(lower_graph(result), "content") == size


@pytest.mark.parametrize("index", [(slice(1, 3), slice(2, 4)), (slice(0, 4), slice(0, 6))])
def test_slices_along_several_dimensions_or_none_stay(index: tuple):
    module = Assigned(index)
    graph = trace(module, zeros(*module.content[index].shape))
    assert UpdateSlices().run(copy(graph)).changed == 0
