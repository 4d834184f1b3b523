"""Descent of decision trees as a compiled loop."""

import numpy as np
import pytest

import graphc as gc
from graphc.ops.selection.descent import CHAINS, STEPS, WORDS, descend


def _chain(depth: int) -> np.ndarray:
    """Records of a tree that asks the same feature about 0, 1, 2, ...; leaves hold their numbers."""
    records = np.zeros((2 * depth + 1, WORDS), np.int32)
    for level in range(depth):
        records[2 * level] = [0, np.float32(level).view(np.int32), WORDS, 2 * WORDS]
        records[2 * level + 1] = [0, level, 0, 0]
    records[2 * depth, 1] = depth
    return records.reshape(-1)


@pytest.mark.parametrize("depth", [1, STEPS, STEPS + 1, 5 * STEPS + 3])
@pytest.mark.parametrize("trees", [1, CHAINS, 2 * CHAINS + 3])
def test_rows_descend_all_trees_for_any_number_of_rows(depth: int, trees: int) -> None:
    records, roots = gc.from_numpy(_chain(depth)), gc.zeros(trees, dtype=gc.int32)
    fast = gc.compile(lambda x: descend(x, records, roots, depth=depth, missing=False), dims=((gc.Dim("n"), None),))
    for rows in (1, 2, 9):
        x = np.random.default_rng(rows).uniform(-1, depth + 1, (rows, 1)).astype(np.float32)
        expected = np.clip(np.ceil(x[:, 0]), 0, depth).astype(np.int32)
        np.testing.assert_array_equal(fast(gc.from_numpy(x)).numpy(), np.tile(expected, (trees, 1)))


def test_positions_and_features_out_of_range_become_the_last() -> None:
    wrong = np.array([900, 0, 4, -40, 0, 7, 0, 0, 0, 9, 0, 0], np.int32)
    roots = gc.tensor([0, -5, 2**31 - 1], dtype=gc.int32)
    x = gc.tensor([[5.0, -1.0], [5.0, 1.0]])

    def reached(x: gc.Tensor) -> gc.Tensor:
        return descend(x, gc.from_numpy(wrong), roots, depth=3, missing=False)

    for call in (reached, gc.compile(reached)):
        assert call(x).tolist() == [[7, 9], [9, 9], [9, 9]]
