"""The measured loops: each one trains, compiled as eagerly."""

import numpy as np
import pytest

import graphc
from benchmarks import loop


@pytest.mark.parametrize("name", ["perceptron", "tagger", "variational"])
def test_loops_train_alike(name):
    compiled, eager = loop.make(name, graphc, True), loop.make(name, graphc, False)
    losses = np.array([[compiled(), eager()] for _ in range(4)])
    np.testing.assert_allclose(losses[:, 0], losses[:, 1], rtol=2e-4)
    assert losses[-1, 0] < losses[0, 0]
