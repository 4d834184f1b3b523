"""Slices assigned in a state: which become updates, and that numbers stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from graphc import Dim, arange, nn, rand, tensor, trace, zeros
from graphc.ir.graph.interpret import bind, copy
from graphc.ir.graph.text import print_graph
from graphc.ir.kernel.verify import verify_program
from graphc.lowering.program import lower_graph
from graphc.passes.pipeline import optimize
from graphc.passes.slice_updates import UpdateSlices
from graphc.tensors.tensor import Tensor
from tests.lowering.test_in_place import stored, temporaries
from tests.passes.check_pass import check_equal
from tests.passes.graph_text import graph_of


class Assigned(nn.Module):
    """Parts of a buffer [4,6,3] that are assigned."""

    def __init__(self, index: Any, again: Any = None):
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


def test_all_of_a_state_is_computed_along_with_what_reads_it():
    graph = trace(Assigned((slice(0, 4), slice(0, 6))), zeros(4, 6, 3))
    assert UpdateSlices().run(copy(graph)).changed == 0


ALL = slice(None)


@pytest.mark.parametrize(
    ("index", "again", "size"),
    [
        ((slice(1, 3), slice(2, 4)), None, 12),
        ((slice(1, 3), slice(0, 6, 2), slice(1, 3)), None, 12),
        ((3, slice(2, 5)), None, 9),
        ((ALL, ALL, 1), None, 24),
        ((slice(0, 3), slice(0, 5)), (slice(1, 4), slice(2, 4)), 45 + 18),
    ],
)
def test_only_the_slice_along_several_dimensions_is_written(index: tuple, again: tuple | None, size: int):
    module = Assigned(index)
    inputs = [zeros(*module.content[i].shape) for i in (index, again) if i is not None]

    def assign(content: Tensor, *parts: Tensor) -> None:
        for at, part in zip((index, again), parts, strict=False):
            content[at] = part

    written_to(assign, inputs, size)


class Changed(nn.Module):
    """A buffer [4,6,3] that is changed in some way, and read."""

    def __init__(self, change: Callable[..., None]):
        super().__init__()
        self.change = change
        self.register_buffer("content", zeros(4, 6, 3))

    def forward(self, *given: Tensor) -> Tensor:
        self.change(self.content, *given)
        return self.content.sum(-1)


def written_to(change: Callable[..., None], given: Sequence[Tensor], size: int) -> None:
    """A change stores so many elements in the state, and only such as are parts elsewhere; it means the same."""
    graph = trace(Changed(change), *given)
    before = copy(graph)
    result = optimize(graph)
    check_equal(before, result)
    program = lower_graph(result)
    verify_program(program)
    assert stored(program, "content") == size
    assert all(stored(program, name) <= size for name in temporaries(program))


def add(content: Tensor, x: Tensor) -> None:
    content[:2, 3:5] += x


def fill(content: Tensor) -> None:
    content[:2, 3:5] = 0.5


def move(content: Tensor) -> None:
    content[:2, 1:3] = content[1:3, :2].clone()


def entries(content: Tensor, x: Tensor) -> None:
    content[1:3, :, 1:].index_copy_(1, tensor([5, 0]), x)


def entries_of_entries(content: Tensor, x: Tensor) -> None:
    content[1:4].index_add_(1, tensor([5, 0, 5]), x)
    content[1:4][1:, 2:4] = 1.0


def several_indices(content: Tensor, x: Tensor, places: Tensor) -> None:
    content[arange(4), places % 6] = x


def indices_apart(content: Tensor, x: Tensor, places: Tensor) -> None:
    content[arange(4), :, places % 3] = x


def steps_of_entries(content: Tensor, x: Tensor) -> None:
    content[::2, 1::2].index_copy_(1, tensor([2, 0]), x)


def turned(content: Tensor, x: Tensor) -> None:
    content.transpose(0, 1)[2:4] = x


def turned_entries(content: Tensor, x: Tensor) -> None:
    view = content.permute(2, 0, 1)
    view.index_copy_(2, tensor([1, 4]), x)
    view[:, 1] = 2.0


def looked_at(content: Tensor, x: Tensor) -> None:
    view = content[:2]
    view[:, 1:3] = x
    view[:, 4:] = view.sum()


@pytest.mark.parametrize(
    ("change", "shapes", "size"),
    [
        (add, [(2, 2, 3)], 12),
        (fill, [], 12),
        (move, [], 12),
        (entries, [(2, 2, 2)], 8),
        (entries_of_entries, [(3, 3, 3)], 27 + 12),
        (steps_of_entries, [(2, 2, 3)], 12),
        (turned, [(2, 4, 3)], 24),
        (turned_entries, [(3, 4, 2)], 24 + 18),
        (looked_at, [(2, 2, 3)], 12 + 12),
    ],
)
def test_only_what_changes_is_written(change: Callable[..., None], shapes: list, size: int):
    written_to(change, [rand(*shape) for shape in shapes], size)


@pytest.mark.parametrize(("change", "width"), [(several_indices, 3), (indices_apart, 6)])
def test_a_place_for_each_row(change: Callable[..., None], width: int):
    places = tensor([2, 0, 1, 1])
    written_to(change, [rand(4, width), places], 4 * width)


def test_a_slice_of_a_carry_is_all_that_a_step_writes():
    graph = graph_of(
        """
        graph @g(%s: f32[12,4] state "s", %x: f32[6,2,2]) -> (f32[6,12]) {
          %c.0, %c.1 = scan(%s, %x) {body=graph @step(%h: f32[12,4], %x: f32[2,2]) -> (f32[12,4], f32[12]) {
            %d = tanh(%x) : f32[2,2]
            %p = pad(%d) {low=[3, 1], high=[7, 1], interior=[0, 0]} : f32[12,4]
            %t = broadcast_to(bool(true)) {shape=[2,2]} : bool[2,2]
            %m = pad(%t) {low=[3, 1], high=[7, 1], interior=[0, 0], value=false} : bool[12,4]
            %n = where(%m, %p, %h) : f32[12,4]
            %m = sum(%n) {axes=[1], keepdims=false} : f32[12]
            return %n, %m
          }, carries=1, sequences=1, length=6, reverse=false} : f32[12,4], f32[6,12]
          %w = state_write(%s, %c.0) : f32[12,4]
          return %c.1
        }""".replace("%m = sum", "%y = sum").replace("%n, %m", "%n, %y")
    )
    result = optimize(graph)
    check_equal(graph, result)
    assert stored(lower_graph(result), "s") == 6 * 4


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
    assert [n.op.name for n in result.nodes() if n.result.shape == (4, 6, 3)] == ["update_slice", "state_write"]
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


def test_a_block_of_named_sizes_is_all_that_is_written():
    class Block(nn.Module):
        """Rows and places from a number on that the call's sizes give, every second one."""

        def __init__(self):
            super().__init__()
            self.register_buffer("content", zeros(4, 12, 3))

        def forward(self, x: Tensor) -> Tensor:
            rows, time = x.shape[:2]
            self.content[:rows, rows : rows + 2 * time : 2] = x
            return self.content.sum(-1)

    rows, time = Dim("rows", 1, 4, hint=2), Dim("time", 1, 4, hint=2)
    graph = trace(Block(), zeros(2, 2, 3), dims={"x": (rows, time)})
    assert not graph.assumptions
    result = optimize(graph)
    assert [n.op.name for n in result.nodes() if n.result.shape == (4, 12, 3)] == ["update_slice", "state_write"]
    for sizes in ({"rows": a, "time": b} for a in range(1, 5) for b in range(1, 5)):
        fixed, bound = bind(graph, sizes), bind(result, sizes)
        check_equal(fixed, bound)
        assert stored(lower_graph(bound), "content") == 3 * sizes["rows"] * sizes["time"]
