"""Every op applied to a batch at once against the same op applied to one entry after the other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import graphc.ops.registry
from graphc.base.dtypes import dtype_of
from graphc.errors import IndexRangeError
from graphc.ir.graph.graph import CONSTANT, Graph
from graphc.ir.graph.interpret import Evaluator, evaluate
from graphc.ir.op import REGISTRY, Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.batch import BatchedOperand, spread
from graphc.ops.batching import apply_batched, batched_graph, constant, run_batched
from graphc.ops.dispatch import GraphDispatcher

assert graphc.ops.registry.FAMILIES
SIZE = 3
WITHOUT_RULE = {"winograd_input", "winograd_output", "winograd_weight"}
WITHOUT_RULE |= {"masked_matmul", "bf16_pairs", "i8_quads", "quad_matmul", "pair_matmul"}
WITHOUT_RULE |= {"nibble_matmul", "nibble_quad_matmul", "group_matmul"}
WITHOUT_RULE |= {"descend", "suppress"}  # rows and images are a batch already
WITHOUT_RULE |= {"byte_quads", "quad_conv", "byte_pairs", "pair_conv", "byte_matmul", "byte_conv", "real_byte_conv"}
WITHOUT_RULE |= {"statistics", "gradient_slots", "gradient_tap"}
"""Applied to one entry after the other: passes make them and no trace has them, or traces of batches refuse them."""
EFFECTS = {"state_read", "state_write", "random_bits"}
CASES = [
    pytest.param(op, sample, id=f"{op.name}-{i}")
    for op in REGISTRY.values()
    if op.samples and op.operands and op.name not in EFFECTS and not op.has(Trait.WHILE)
    for i, sample in enumerate(op.samples())
    if sum(a.size for a in sample.operands) < 20_000
]


def batch_of(array: np.ndarray) -> np.ndarray:
    """Entries like ``array`` that differ from each other; whole numbers stay in their range."""
    rows = [np.roll(array.reshape(-1), i).reshape(array.shape) for i in range(SIZE)]
    return np.stack(rows)


class Batch:
    """The arrays of one application, and its graph."""

    def __init__(self, op, arrays, attrs, flags):
        self.arrays = [batch_of(a) if f else a for a, f in zip(arrays, flags, strict=True)]
        self.graph = Graph("batched")
        entries = []
        for array, flag in zip(self.arrays, flags, strict=True):
            value = self.graph.add_input(TensorType(dtype_of(array.dtype), array.shape), "x")
            entries.append(BatchedOperand(value, flag))
        with dispatch.use(GraphDispatcher(self.graph)):
            self.graph.set_outputs(apply_batched(op, SIZE, entries, op.normalize(attrs)))

    def run(self):
        return evaluate(self.graph, self.arrays)


def flags_of(count: int):
    """Return flags of batched operands: each alone, and all together."""
    every = [f for f in itertools.product((False, True), repeat=count) if any(f)]
    return every if count <= 3 else [f for f in every if sum(f) in (1, count)]


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_at_once_is_one_by_one(op, sample):
    for flags in flags_of(len(sample.operands)):
        batch = Batch(op, sample.operands, sample.attrs, flags)
        with np.errstate(all="ignore"):
            result = batch.run()
            rows = [
                op.evaluate(
                    [a[i] if f else a for a, f in zip(batch.arrays, flags, strict=True)], op.normalize(sample.attrs)
                )
                for i in range(SIZE)
            ]
        for got, *want in zip(result, *rows, strict=True):
            # What tells of a mistake tells of one in any example.
            expected = np.any(want) if op.has(Trait.CHECK) else np.stack(want)
            assert got.dtype == expected.dtype and got.shape == expected.shape
            if got.dtype.kind == "f":
                with np.errstate(invalid="ignore", over="ignore"):
                    np.testing.assert_allclose(got, expected, 1e-5 if got.dtype == np.float32 else 1e-11, 1e-5)
            else:
                np.testing.assert_array_equal(got, expected)


def test_every_op_has_a_rule():
    missing = {
        name for name, op in REGISTRY.items() if op.operands and op.batch is None and not op.has(Trait.ELEMENTWISE)
    }
    assert missing == WITHOUT_RULE | {"state_read", "state_write"}


def test_gradients_of_custom_calls_are_batched_too():
    """An operand that all entries share gets the sum of their gradients."""
    sample = REGISTRY["call"].samples()[0]
    forward = sample.attrs["forward"]
    flags = [True, False]
    backward = batched_graph(sample.attrs["backward"], SIZE, [True] * 3, flags)
    rng = np.random.default_rng(0)
    given = [rng.standard_normal((SIZE, *v.shape)).astype(v.dtype.numpy) for v in sample.attrs["backward"].inputs]
    result = evaluate(backward, given)
    rows = [evaluate(sample.attrs["backward"], [g[i] for g in given]) for i in range(SIZE)]
    np.testing.assert_allclose(result[0], np.stack([r[0] for r in rows]), 1e-6)
    np.testing.assert_allclose(result[1], sum(r[1] for r in rows), 1e-6)
    assert [v.shape[0] for v in batched_graph(forward, SIZE, flags).outputs] == [SIZE] * len(forward.outputs)


def test_positions_out_of_range_are_found_where_they_are_checked():
    op = REGISTRY["gather"]
    batch = Batch(op, [np.arange(4.0), np.array([0, 1, 9])], {"axis": 0}, (True, True))
    with pytest.raises(IndexRangeError, match="index 9"):
        batch.run()


def test_random_numbers_differ_or_not():
    graph = Graph("draws")
    state = graph.add_input(TensorType(graphc.int64, (2,)), "state")
    with dispatch.use(GraphDispatcher(graph)):
        graph.set_outputs([dispatch.apply(REGISTRY["random_bits"], (state,), {"shape": (4,), "stream": 1})])
    seed = graphc.tensor([1, 2])
    (same,) = run_batched(graph, SIZE, [BatchedOperand(seed, False)])
    (other,) = run_batched(graph, SIZE, [BatchedOperand(seed, False)], draws=True)
    assert same.shape == (4,) and not same.batched
    assert other.value.shape == (SIZE, 4) and len(np.unique(other.value.numpy())) == 12


def test_what_no_output_needs_is_left_out():
    graph = Graph("dead")
    x = graph.add_input(TensorType(graphc.float32, (2,)), "x")
    with dispatch.use(GraphDispatcher(graph)):
        dispatch.apply(REGISTRY["exp"], (x,), {})
        graph.set_outputs([dispatch.apply(REGISTRY["neg"], (x,), {})])
    made = batched_graph(graph, SIZE, [True])
    assert [n.op.name for n in made.nodes()] == ["neg"]


def test_constants_of_every_rank():
    graph = Graph("constants")
    with dispatch.use(GraphDispatcher(graph)):
        graph.set_outputs([constant(np.array(2.0)), constant(np.arange(3))])
    two, three = Evaluator().run(graph, [])
    assert two == 2.0 and three.tolist() == [0, 1, 2]
    assert all(v.node.op is CONSTANT for v in graph.outputs)
    assert spread(BatchedOperand(graphc.ones(2), False), SIZE).shape == (SIZE, 2)
