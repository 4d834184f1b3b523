"""Facts about shape ops: padding of every kind, slices with steps, and that views share memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graphc.base.dtypes import float32, int32
from graphc.base.sizes.assumptions import Assumptions, assuming
from graphc.base.sizes.named_dims import Dim
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.op import REGISTRY
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.movement import shape as s
from tests.ops.apply import run, traced


def pad_by_definition(x, low, high, interior, value):
    """Interior padding first, then the outside; negative amounts cut off."""
    for dim in range(x.ndim):
        x = np.moveaxis(x, dim, 0)
        spread = [np.full_like(x[:1], value)] * 0
        for i in range(len(x)):
            spread += [x[i : i + 1]] + [np.full_like(x[:1], value)] * (interior[dim] if i < len(x) - 1 else 0)
        rows = [np.full(x.shape[1:], value)[None]] * max(low[dim], 0) + spread[max(-low[dim], 0) :]
        rows = rows[: len(rows) + min(high[dim], 0)] + [np.full(x.shape[1:], value)[None]] * max(high[dim], 0)
        x = np.moveaxis(np.concatenate(rows), 0, dim) if rows else np.moveaxis(x[:0], 0, dim)
    return x


PADDINGS = [p for p in itertools.product((-3, -1, 0, 2), (-3, -2, 0, 1), (0, 1, 2)) if p[0] + p[1] + 4 + 3 * p[2] >= 0]


@pytest.mark.parametrize("low,high,interior", PADDINGS)
def test_pad_by_definition(low, high, interior):
    x = np.arange(1.0, 9).reshape(4, 2)
    attrs = {"low": (low, 1), "high": (high, 0), "interior": (interior, 0), "value": -1.0}
    np.testing.assert_array_equal(run(lambda v: s.pad(v, **attrs), x), pad_by_definition(x, **attrs))


def test_slice_is_numpy():
    x = np.arange(60).reshape(5, 12)
    found = run(lambda v: s.slice(v, starts=(1, 2), stops=(5, 12), steps=(2, 5)), x)
    np.testing.assert_array_equal(found, x[1:5:2, 2:12:5])


def test_references_of_views_share_memory():
    x = np.zeros((2, 3))
    for name, attrs in {
        "reshape": {"shape": (3, 2)},
        "transpose": {"permutation": (1, 0)},
        "slice": {"starts": (0, 1), "stops": (2, 3), "steps": (1, 1)},
        "flip": {"axes": (0,)},
        "broadcast_to": {"shape": (4, 2, 3)},
    }.items():
        assert np.shares_memory(REGISTRY[name].evaluate((x,), attrs)[0], x)


def test_inverse_undoes_a_permutation():
    permutation = (2, 0, 3, 1)
    assert [permutation[i] for i in s.inverse(permutation)] == [0, 1, 2, 3]


def test_filled():
    graph, (value,) = traced(lambda x: s.filled(3, int32, (2, 2)), np.zeros(1))
    assert value.dtype is int32 and [n.op.name for n in graph.nodes()] == ["constant", "broadcast_to"]
    np.testing.assert_array_equal(run(lambda x: s.filled(3, int32, (2, 2)), np.zeros(1)), [[3, 3], [3, 3]])
    assert traced(lambda x: s.filled(3, float32, ()), np.zeros(1))[1][0].is_scalar_constant
    np.testing.assert_array_equal(run(s.zeros_like, np.ones((2, 1), "float32")), np.zeros((2, 1), "float32"))


def test_concat_of_one_part_and_of_empty_parts():
    x = np.ones((2, 2))
    np.testing.assert_array_equal(run(lambda v: s.concat(v, axis=1), x), x)
    assert run(lambda a, b: s.concat(a, b, axis=0), np.ones((0, 2)), x).shape == (2, 2)


@pytest.mark.parametrize("step", [1, 3])
def test_a_slice_is_assigned_whatever_its_size_is(step):
    batch, time = Dim("batch", 1, 8), Dim("time", 8, 40)
    last = 2 + step * ((time - 3) // step)
    place = {"starts": (0, 2), "stops": (batch, last + 1), "steps": (1, step)}
    graph = Graph()
    x = graph.add_input(TensorType(float32, (batch, time)), "x")
    y = graph.add_input(TensorType(float32, (batch, (time - 3) // step + 1)), "y")
    with dispatch.use(dispatch.GraphDispatcher(graph)), assuming(Assumptions()) as assumptions:
        graph.set_outputs([REGISTRY["slice"].put_back(x, y, **place)])
    assert not assumptions.found
    for batches, times in ((1, 8), (3, 17), (8, 40)):
        old, new = np.zeros((batches, times), np.float32), np.ones((batches, (times - 3) // step + 1), np.float32)
        wanted = old.copy()
        wanted[:, 2 : 3 + step * ((times - 3) // step) : step] = 1
        np.testing.assert_array_equal(evaluate(graph, [old, new])[0], wanted)
