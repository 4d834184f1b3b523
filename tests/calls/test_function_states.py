"""Compiled functions that write parts of buffers: each way to do so as in eager mode, call after call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import IndexRangeError
from graphc.lowering.program import lower_graph
from graphc.passes.pipeline import optimize
from tests.lowering.test_in_place import stored
from tests.runtime.threaded import thread_count

LENGTH = 8
Write = Callable[["Cache", gc.Tensor, gc.Tensor], None]


class Cache(nn.Module):
    """Entries of a buffer [2,3,8,4] that are replaced, and what is read of it afterwards."""

    def __init__(self, write: Write):
        super().__init__()
        self.write = write
        self.register_buffer("content", gc.zeros(2, 3, LENGTH, 4))
        self.register_buffer("same", self.content)

    def forward(self, entries: gc.Tensor, position: gc.Tensor) -> gc.Tensor:
        self.write(self, entries, position)
        return self.content.sum(-1)


def by_index_copy(cache: Cache, entries: gc.Tensor, position: gc.Tensor) -> None:
    cache.content.index_copy_(2, position, entries)


def by_index_add(cache: Cache, entries: gc.Tensor, position: gc.Tensor) -> None:
    cache.content.index_add_(2, position, entries)


def by_tensor(cache: Cache, entries: gc.Tensor, position: gc.Tensor) -> None:
    cache.content[:, :, position] = entries


def by_number(cache: Cache, entries: gc.Tensor, position: gc.Tensor) -> None:
    cache.content[:, :, position[0]] = entries[:, :, 0]


def by_two_tensors(cache: Cache, entries: gc.Tensor, position: gc.Tensor) -> None:
    cache.content[gc.arange(2), :, position] = entries[:, :, 0]


def by_scatter(cache: Cache, entries: gc.Tensor, position: gc.Tensor) -> None:
    cache.content.scatter_(2, position.reshape(1, 1, 1, 1).expand(2, 3, 1, 4), entries)


def by_another_name(cache: Cache, entries: gc.Tensor, position: gc.Tensor) -> None:
    cache.same.index_copy_(2, position, entries)


def from_itself(cache: Cache, entries: gc.Tensor, position: gc.Tensor) -> None:
    cache.content.index_copy_(2, position, cache.content[:, :, 2:3] + entries)


WRITES = [
    by_index_copy,
    by_index_add,
    by_tensor,
    by_number,
    by_two_tensors,
    by_scatter,
    by_another_name,
    from_itself,
]
"""Ways to write at places that are known when the function runs."""


def by_slice(cache: Cache, entries: gc.Tensor, position: gc.Tensor) -> None:
    cache.content[:, :, 3:4] = entries


def by_part_of_a_view(cache: Cache, entries: gc.Tensor, position: gc.Tensor) -> None:
    cache.content[:, 1].index_copy_(1, position, entries[:, 1])


def entries_of(seed: int) -> gc.Tensor:
    return gc.tensor(np.random.default_rng(seed).standard_normal((2, 3, 1, 4)).astype(np.float32))


@pytest.mark.parametrize("write", [*WRITES, by_slice, by_part_of_a_view])
def test_calls_write_what_eager_mode_writes(write: Write):
    eager, module = Cache(write), Cache(write)
    compiled = gc.compile(module)
    for step in (0, 3, LENGTH - 1, 3):
        entries, position = entries_of(step), gc.tensor([step])
        with gc.no_grad(), thread_count(1 + step % 2):
            np.testing.assert_allclose(
                compiled(entries, position).numpy(), eager(entries, position).numpy(), 1e-5, 1e-6
            )
        np.testing.assert_array_equal(module.content.numpy(), eager.content.numpy())


@pytest.mark.parametrize("write", WRITES)
def test_an_index_out_of_range_leaves_the_state_as_it_was(write: Write):
    module = Cache(write)
    compiled = gc.compile(module)
    compiled(entries_of(0), gc.tensor([1]))
    before = module.content.numpy().copy()
    with pytest.raises(IndexRangeError, match="8"):
        compiled(entries_of(1), gc.tensor([LENGTH]))
    np.testing.assert_array_equal(module.content.numpy(), before)


@pytest.mark.parametrize("write", WRITES)
def test_a_call_stores_the_entries_and_no_more(write: Write):
    program = lower_graph(optimize(gc.trace(Cache(write), entries_of(0), gc.tensor([1]))))
    (state,) = [s.name for s in program.storages if s.cls == "state"]
    assert stored(program, state) == 2 * 3 * 4


def test_what_is_returned_of_a_cache_is_the_cache_or_a_copy():
    class Returned(Cache):
        def forward(self, entries: gc.Tensor, position: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
            self.write(self, entries, position)
            return self.content, self.content.clone()

    module = Returned(by_index_copy)
    compiled = gc.compile(module)
    first = compiled(entries_of(0), gc.tensor([1]))[1].numpy().copy()
    cache, kept = compiled(entries_of(0), gc.tensor([1]))
    compiled(entries_of(1), gc.tensor([2]))
    np.testing.assert_array_equal(kept.numpy(), first)
    assert cache is module.content and np.abs(cache.numpy()[:, :, 2]).sum() > 0


class Memory(nn.Module):
    """A layer that keeps a few of its results."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("memory", gc.zeros(6, 4))

    def forward(self, x: gc.Tensor) -> gc.Tensor:
        y = self.layer(x)
        place = (x.sum() * 100).long().remainder(6).reshape(1)
        self.memory.index_copy_(0, place, y.detach())
        return y * self.memory.mean(0)


def test_a_training_step_writes_a_row_of_a_memory():
    models = []
    for _ in range(2):
        gc.manual_seed(0)
        models.append(Memory())
    eager, compiled = models
    optimizer, other = (gc.optim.SGD(m.parameters(), lr=0.1) for m in models)
    step = gc.compile_step(compiled, nn.functional.mse_loss, other)
    for number in range(4):
        x, y = (gc.tensor(entries_of(i).numpy()[0, :1, 0]) for i in (number, number + 9))
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(eager(x), y)
        loss.backward()
        optimizer.step()
        np.testing.assert_allclose(step(x, y).item(), loss.item(), 1e-5, 1e-6)
        np.testing.assert_allclose(compiled.memory.numpy(), eager.memory.numpy(), 1e-5, 1e-6)
        np.testing.assert_allclose(*(m.layer.weight.detach().numpy() for m in models), 1e-5, 1e-6)
