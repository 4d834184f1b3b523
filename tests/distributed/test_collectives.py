"""Collectives: what each process gets, for all element types and layouts, their gradients, and the errors."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import pytest

import graphc as gc
import graphc.distributed as dist
from graphc.distributed import threads
from graphc.errors import ArgumentError, DTypeError, GradientError, ShapeError

FLOATS = (gc.float64, gc.float32, gc.float16, gc.bfloat16, gc.complex64, gc.complex128)
WHOLE = (gc.int8, gc.uint8, gc.int16, gc.int32, gc.int64)
EVERY = (*FLOATS, *WHOLE, gc.bool)


def of_rank(rank: int, shape: tuple[int, ...] = (2, 3), dtype: Any = gc.float64) -> Any:
    """Small whole numbers, exact in every type."""
    values = np.random.default_rng(rank).integers(0, 4, shape)
    return gc.tensor(values.astype(bool) if dtype is gc.bool else values).to(dtype)


def run(size: int, function: Any) -> list[Any]:
    """Return the result of ``function(rank)`` in each process, as lists."""
    return threads.run(size, lambda rank: gc.tensor(function(rank)).tolist())


@pytest.mark.parametrize("dtype", EVERY, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 2), (3, 4)], ids=str)
def test_a_sum_is_that_of_all_in_each_process(dtype: Any, shape: tuple[int, ...]):
    def summed(rank: int) -> Any:
        x = of_rank(rank, shape, dtype)
        assert dist.all_reduce(x) is x and x.dtype is dtype and tuple(x.shape) == shape
        return x

    inputs = [of_rank(rank, shape, dtype) for rank in range(3)]
    expected = inputs[0] | inputs[1] | inputs[2] if dtype is gc.bool else inputs[0] + inputs[1] + inputs[2]
    assert run(3, summed) == [expected.tolist()] * 3


@pytest.mark.parametrize("dtype", EVERY, ids=str)
def test_all_types_are_gathered_sent_and_exchanged(dtype: Any):
    inputs = [of_rank(rank, (2, 3), dtype) for rank in range(2)]
    assert run(2, lambda r: dist.all_gather(inputs[r])) == [gc.cat(inputs).tolist()] * 2
    assert run(2, lambda r: dist.broadcast(inputs[r].clone(), src=1)) == [inputs[1].tolist()] * 2
    expected = [gc.stack([inputs[0][i], inputs[1][i]]).tolist() for i in range(2)]
    assert run(2, lambda r: dist.all_to_all(inputs[r])) == expected
    if dtype is not gc.bool:
        total = inputs[0] + inputs[1]
        assert run(2, lambda r: dist.reduce_scatter(inputs[r])) == [total[i : i + 1].tolist() for i in range(2)]


@pytest.mark.parametrize("op", ["sum", "mean", "prod", "min", "max"])
def test_reductions_are_those_of_numpy(op: str):
    expected = getattr(np, op)([of_rank(r).numpy() for r in range(3)], axis=0)
    for result in run(3, lambda r: dist.reduced(of_rank(r), op)):
        np.testing.assert_allclose(result, expected, rtol=1e-15)


def test_a_sum_of_narrow_numbers_is_rounded_once():
    numbers = [256.0, 1.0, 1.0]
    result = threads.run(3, lambda r: float(dist.reduced(gc.tensor([numbers[r]], dtype=gc.bfloat16))[0]))
    assert result == [258.0] * 3, "256 + 1 alone would be 256"


def test_reductions_have_the_names_of_pytorch():
    class RedOpType(Enum):  # as PyTorch's ReduceOp prints
        SUM, AVG, PRODUCT = 0, 1, 2

    for op, name in ((RedOpType.SUM, "sum"), (RedOpType.AVG, "mean"), (RedOpType.PRODUCT, "prod"), ("MAX", "max")):
        assert run(2, lambda r, op=op: dist.reduced(of_rank(r), op)) == run(
            2, lambda r, name=name: dist.reduced(of_rank(r), name)
        )
    assert [dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.PRODUCT] == ["sum", "mean", "prod"]


def test_other_layouts_are_taken():
    def both(rank: int) -> Any:
        x = of_rank(rank, (4, 6)).T[::2]
        return gc.cat([dist.reduced(x), dist.reduce_scatter(x, dim=-1).repeat(1, 2), dist.all_gather(x, dim=1)[:, :4]])

    inputs = [of_rank(r, (4, 6)).T[::2] for r in range(2)]
    total = inputs[0] + inputs[1]
    for rank, result in enumerate(run(2, both)):
        half = total[:, rank * 2 : rank * 2 + 2].repeat(1, 2)
        assert result == gc.cat([total, half, inputs[0]]).tolist()


def test_the_calls_of_pytorch_with_places_for_results():
    def calls(rank: int) -> Any:
        x = of_rank(rank, (2, 3))
        lists = [[gc.empty(2, 3).double() for _ in range(2)] for _ in range(2)]
        assert dist.all_gather(lists[0], x) is None
        assert dist.all_to_all(lists[1], [x, x + 10]) is None
        flat, shard, swapped = gc.empty(4, 3).double(), gc.empty(1, 3).double(), gc.empty(2, 3).double()
        dist.all_gather_into_tensor(flat, x)
        dist.reduce_scatter_tensor(shard, x, op=dist.ReduceOp.AVG)
        dist.all_to_all_single(swapped, x)
        summed = dist.reduce_scatter(gc.empty(2, 3).double(), [x, x + 1])
        objects: list[Any] = [None] * 2
        dist.all_gather_object(objects, {"rank": rank})
        assert objects == [{"rank": 0}, {"rank": 1}]
        sent = [rank, "x"]
        dist.broadcast_object_list(sent, src=1)
        assert sent == [1, "x"]
        work = dist.all_reduce(x, async_op=True)
        assert work.wait() and work.is_completed()
        return gc.cat([*lists[0], *lists[1], flat, shard, swapped, summed, x])

    a, b = (of_rank(r, (2, 3)) for r in range(2))
    for rank, result in enumerate(run(2, calls)):
        exchanged = [a + 10 * rank, b + 10 * rank]
        part, swapped = ((a + b) / 2)[rank : rank + 1], gc.stack([a[rank], b[rank]])
        assert result == gc.cat([a, b, *exchanged, a, b, part, swapped, a + b + 2 * rank, a + b]).tolist()


def gradient(rank: int, function: Any, shape: tuple[int, ...] = (2, 3)) -> Any:
    """The gradient of a weighted sum of what a process gets."""
    x = of_rank(rank, shape).requires_grad_()
    result = function(x)
    (result * weights(rank, tuple(result.shape))).sum().backward()
    return x.grad


def weights(rank: int, shape: tuple[int, ...]) -> Any:
    return gc.tensor(np.random.default_rng(100 + rank).normal(size=shape))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_gradients_are_sums_over_the_processes_that_used_a_value(compiled: bool):
    def of(function: Any) -> Any:
        return gc.compile(lambda x: function(x * 1.0)) if compiled else lambda x: function(x * 1.0)

    w = [weights(r, (2, 3)) for r in range(2)]
    gathered = [weights(r, (4, 3)) for r in range(2)]
    scattered = [weights(r, (1, 3)) for r in range(2)]
    total = (w[0] + w[1]).numpy()
    cases = [
        (dist.reduced, [total, total]),
        (lambda x: dist.reduced(x, "mean"), [total / 2, total / 2]),
        (dist.all_reduce, [total, total]),
        (dist.all_gather, [(gathered[0] + gathered[1])[2 * r : 2 * r + 2].numpy() for r in range(2)]),
        (dist.reduce_scatter, [gc.cat(scattered).numpy()] * 2),
        (lambda x: dist.broadcast(x, 1), [0 * total, total]),
        (dist.all_to_all, [gc.stack([w[0][r], w[1][r]]).numpy() for r in range(2)]),
    ]
    for function, expected in cases:
        result = threads.run(2, lambda r, function=function: gradient(r, of(function)).numpy())
        np.testing.assert_allclose(result, expected, rtol=1e-14, atol=1e-14)


def test_gradients_of_gradients():
    def second(rank: int) -> Any:
        x = of_rank(rank).requires_grad_()
        (first,) = gc.autograd.grad((dist.reduced(x) ** 3).sum(), x, create_graph=True)
        return gc.autograd.grad(first.sum(), x)[0].numpy()

    total = (of_rank(0) + of_rank(1)).numpy()
    np.testing.assert_allclose(threads.run(2, second), [24 * total] * 2)


def test_one_process_alone_gets_what_it_gave():
    x = of_rank(0, (2, 3))
    for result in (dist.reduced(x), dist.all_gather(x), dist.reduce_scatter(x), dist.all_to_all(x), dist.broadcast(x)):
        assert result.tolist() == x.tolist()
    assert dist.all_gather(gc.tensor(2.0)).tolist() == [2.0]


def test_what_cannot_be_is_said():
    x, z = gc.ones(3, 2), gc.ones(2, dtype=gc.complex64)
    with pytest.raises(ArgumentError, match="no reduction 'median'"):
        dist.all_reduce(x, "median")
    with pytest.raises(DTypeError, match="i64 has no mean"):
        dist.reduced(gc.tensor([1]), "mean")
    with pytest.raises(DTypeError, match="no order"):
        dist.reduced(z, "max")
    with pytest.raises(ArgumentError, match="takes a tensor, got ndarray"):
        dist.reduced(np.ones(3))
    with pytest.raises(ArgumentError, match="no rank 1 among 1 processes"):
        dist.broadcast(x, src=1)
    with pytest.raises(ShapeError, match="has no dimension 2"):
        dist.all_gather(x, dim=2)
    with pytest.raises(ArgumentError, match="must be a list of 1 tensors"):
        dist.all_gather([x, x], x)
    with pytest.raises(ArgumentError, match="parts of unequal sizes"):
        dist.all_to_all_single(x, x, [1, 2])
    with pytest.raises(ArgumentError, match="all processes are one group"):
        dist.all_reduce(x, group="another")
    with pytest.raises(GradientError, match="'max' has no gradient"):
        dist.reduced(gc.ones(2, requires_grad=True), "max").sum().backward()
    with pytest.raises(ShapeError, match=r"dimension 0 of \[3, 2\] is not a multiple of 2"):
        threads.run(2, lambda _: dist.reduce_scatter(x))
