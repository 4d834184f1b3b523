"""Non-maximum suppression as a compiled loop."""

import numpy as np
import pytest

import graphc as gc
from graphc.ops.selection.suppression import LANES, suppress


def _data(batch: int, classes: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    corner, sides = random.random((batch, count, 2)) * 3, random.random((batch, count, 2)) + 0.2
    boxes = np.concatenate([corner, corner + sides], -1).astype(np.float32)
    return boxes, random.random((batch, classes, count)).astype(np.float32)


@pytest.mark.parametrize("count", [1, LANES - 1, LANES, 3 * LANES + 1])
@pytest.mark.parametrize("least", [-np.inf, 0.5, 0.97, 2.0])
def test_compiled_boxes_are_those_of_eager_mode(count: int, least: float) -> None:
    boxes, scores = map(gc.from_numpy, _data(2, 3, count, count))
    expected = suppress(boxes, scores, most=20, limit=0.3, least=least).numpy()
    compiled = gc.compile(lambda b, s: suppress(b, s, most=20, limit=0.3, least=least))
    np.testing.assert_array_equal(compiled(boxes, scores).numpy(), expected)
    assert (expected >= 0).any() == (least < 1 and (scores.numpy() > least).any())


def test_of_equal_scores_the_first_box_is_taken() -> None:
    boxes = gc.from_numpy(np.array([[[0, 0, 1, 1], [0, 0, 1, 1], [4, 4, 5, 5]]], np.float32))
    scores = gc.from_numpy(np.array([[[0.5, 0.5, 0.5]]], np.float32))
    compiled = gc.compile(lambda b, s: suppress(b, s, most=3, limit=0.5))
    assert compiled(boxes, scores).tolist() == [[[0, 2, -1]]]


def test_one_program_serves_all_numbers_of_boxes() -> None:
    n, classes = gc.Dim("n", 1, 200), gc.Dim("classes", 1, 9)

    def function(b, s):
        return suppress(b, s, most=10, limit=0.4, least=0.3)

    compiled = gc.compile(function, dims={"b": (1, n, 4), "s": (1, classes, n)})
    for count, kinds in ((40, 3), (7, 1), (16, 9), (100, 2), (2, 2)):
        boxes, scores = map(gc.from_numpy, _data(1, kinds, count, count))
        np.testing.assert_array_equal(compiled(boxes, scores).numpy(), function(boxes, scores).numpy())
    assert len(compiled.programs) == 1
