"""Slices assigned in a state: which become updates, and that numbers stay."""

from __future__ import annotations

import pytest

from graphc import Dim, nn, trace, zeros
from graphc.ir.graph.interpret import bind, copy
from graphc.ir.graph.text import print_graph
from graphc.lowering.program import lower_graph
from graphc.passes.pipeline import optimize
from graphc.passes.slice_updates import UpdateSlices
from graphc.tensors.tensor import Tensor
from tests.lowering.test_in_place import stored
from tests.passes.check_pass import check_equal
from tests.passes.graph_text import graph_of


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


TIME = Dim("time", 1, 3, hint=2)
PARTS = {
    "the first": lambda n: (slice(None), slice(0, n)),
    "the last": lambda n: (slice(None), slice(6 - n, 6)),
    "every second": lambda n: (slice(None), slice(1, 2 * n, 2)),
}


class OfEachCall(Assigned):
    """A part of which each call gives the size."""

    def forward(self, x: Tensor) -> Tensor:
        self.content[PARTS[self.index](x.shape[1])] = x
        return self.content.sum(-1)


@pytest.mark.parametrize("part", PARTS)
def test_a_slice_of_a_named_size_is_all_that_is_written(part: str):
    graph = trace(OfEachCall(part), zeros(4, 2, 3), dims={"x": (None, TIME)})
    assert not graph.assumptions
    result = optimize(graph)
    assert [n.op.name for n in result.nodes() if n.result.shape == (4, 6, 3)] == ["scatter", "state_write"]
    for time in (1, 2, 3):
        fixed, bound = bind(graph, {"time": time}), bind(result, {"time": time})
        check_equal(fixed, bound)
        assert stored(lower_graph(bound), "content") == 12 * time
        check_equal(fixed, trace(OfEachCall(part), zeros(4, time, 3)))


def test_what_a_mask_of_other_places_selects_is_computed_as_a_whole():
    graph = graph_of("""
        dim n = 1..6 hint 2
        graph @g(%x: f32[n], %s: f32[7] state "s") -> () {
          %p = pad(%x) {low=[0], high=[7 - n], interior=[0], value=0} : f32[7]
          %t = broadcast_to(bool(true)) {shape=[n]} : bool[n]
          %m = pad(%t) {low=[1], high=[6 - n], interior=[0], value=false} : bool[7]
          %y = where(%m, %p, %s) : f32[7]
          %w = state_write(%s, %y) : f32[7]
          return
        }""")
    assert UpdateSlices().run(copy(graph)).changed == 0
    assert UpdateSlices().run(graph_of(print_graph(graph).replace("[1], high=[-n + 6]", "[0], high=[-n + 7]"))).changed
