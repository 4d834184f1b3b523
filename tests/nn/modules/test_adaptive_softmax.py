"""Adaptive softmax against PyTorch; probabilities, predictions, compiled as eager."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError, IndexRangeError, ShapeError
from tests.nn.compare import classes, floats, load, modules_agree, same, tensor

X, Y = floats(7, 8), np.array([0, 3, 4, 9, 10, 19, 5])


@pytest.mark.parametrize("head_bias", [False, True])
def test_as_torch(torch, head_bias: bool):
    ours, theirs = (t.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], 2.0, head_bias) for t in (graphc, torch))
    modules_agree(ours, theirs, X, Y)
    modules_agree(ours, theirs, X[3], Y[3])


def test_all_probabilities_as_torch(torch):
    ours, theirs = (t.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10, 15], 2.0).double() for t in (graphc, torch))
    load(ours, theirs)
    same(ours.log_prob(tensor(X)), theirs.log_prob(torch.tensor(X)))
    same(ours.predict(tensor(X)), theirs.predict(torch.tensor(X)))


def test_probabilities_sum_to_one_and_compile():
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], 2.0)
    x, y = tensor(X).float(), tensor(Y)
    assert layer.log_prob(x).exp().sum(1).tolist() == pytest.approx([1.0] * 7)
    found, expected = graphc.compile(layer)(x, y), layer(x, y)
    np.testing.assert_allclose(found.output.detach().numpy(), expected.output.detach().numpy(), rtol=1e-5)
    step = graphc.compile_step(layer, lambda o, y: o.loss, graphc.optim.SGD(layer.parameters(), lr=0.5))
    losses = [step((x, y), y).item() for _ in range(5)]
    assert losses[-1] < losses[0]
    before = layer.head.weight.detach().clone()
    layer.reset_parameters()
    assert not graphc.equal(before, layer.head.weight)


def test_wrong_uses():
    for cutoffs in ([], [4, 4], [0, 3], [3, 20], [5, 3], [2.5]):
        with pytest.raises(AttributeValueError, match="must be increasing integers from 1 to 19"):
            nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4])
    with pytest.raises(IndexRangeError, match=r"target 2\d .* is out of range[\s\S]*0 to 19"):
        layer(tensor(X).float(), tensor(classes(3, 7) + 18))
    with pytest.raises(ShapeError, match="do not fit"):
        layer(tensor(X).float(), tensor(Y[:3]))
