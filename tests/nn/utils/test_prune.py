"""Pruning: masks as those of PyTorch, what is trained, what compiled code sees, and the end of it."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError, AttributeValueError, ShapeError
from graphc.nn.utils import prune

WEIGHT = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)


def layer(library=gc):
    """A layer of graphc or PyTorch, of the same weight."""
    made = library.nn.Linear(4, 6)
    with library.no_grad():
        made.weight.copy_(library.tensor(WEIGHT))
    return made


STEPS = {
    "l1": [("l1_unstructured", {"amount": 0.3})],
    "l1 number": [("l1_unstructured", {"amount": 5})],
    "l1 twice": [("l1_unstructured", {"amount": 0.5}), ("l1_unstructured", {"amount": 0.5})],
    "rows": [("ln_structured", {"amount": 2, "n": 2, "dim": 0})],
    "columns": [("ln_structured", {"amount": 0.5, "n": 1, "dim": -1})],
    "rows twice": [
        ("ln_structured", {"amount": 2, "n": 2, "dim": 0}),
        ("ln_structured", {"amount": 0.5, "n": 2, "dim": 0}),
    ],
    "largest entry": [("ln_structured", {"amount": 1, "n": float("inf"), "dim": 1})],
    "elements, then rows": [("l1_unstructured", {"amount": 6}), ("ln_structured", {"amount": 1, "n": 2, "dim": 0})],
    "rows, then elements": [("ln_structured", {"amount": 1, "n": 2, "dim": 0}), ("l1_unstructured", {"amount": 0.25})],
    "nothing": [("identity", {})],
}


@pytest.mark.parametrize("name", STEPS)
def test_masks_are_those_of_pytorch(torch, name: str):
    theirs = pytest.importorskip("torch.nn.utils.prune")
    mine, other = layer(), layer(torch)
    for function, options in STEPS[name]:
        assert getattr(prune, function)(mine, "weight", **options) is mine
        getattr(theirs, function)(other, "weight", **options)
    np.testing.assert_array_equal(mine.weight_mask.numpy(), other.weight_mask.numpy())
    np.testing.assert_array_equal(mine.weight.detach().numpy(), other.weight.detach().numpy())
    assert [n for n, _ in mine.named_parameters()] == [n for n, _ in other.named_parameters()]
    assert list(mine.state_dict()) == list(other.state_dict())


def test_several_layers_at_once_are_those_of_pytorch(torch):
    theirs = pytest.importorskip("torch.nn.utils.prune")
    pairs = []
    for library, module in ((gc, prune), (torch, theirs)):
        first, second = layer(library), layer(library)
        with library.no_grad():
            second.weight.mul_(0.3)
        module.l1_unstructured(first, "weight", 4)
        module.global_unstructured([(first, "weight"), (second, "weight")], module.L1Unstructured, amount=0.4)
        pairs.append((first.weight_mask.numpy(), second.weight_mask.numpy()))
    for mine, other in zip(*pairs, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_random_masks_have_the_amount_and_follow_from_the_seed():
    def masks():
        gc.manual_seed(3)
        first, second = layer(), layer()
        prune.random_unstructured(first, "weight", 0.25)
        prune.random_structured(second, "weight", 2, 0)
        return first.weight_mask.numpy(), second.weight_mask.numpy()

    elements, rows = masks()
    assert (elements == 0).sum() == 6 and (rows.sum(1) == 0).sum() == 2 and rows.sum() == 16
    for again, before in zip(masks(), (elements, rows), strict=True):
        np.testing.assert_array_equal(again, before)


def test_what_is_pruned_stays_zero_in_training_and_gets_no_gradient():
    net = layer()
    prune.l1_unstructured(net, "weight", 0.5)
    before = net.weight_orig.detach().clone().numpy()
    optimizer = gc.optim.SGD(net.parameters(), lr=0.1)
    x = gc.randn(8, 4)
    net(x).square().mean().backward()
    optimizer.step()
    mask = net.weight_mask.numpy() == 0
    assert (net.weight.detach().numpy()[mask] == 0).all() and (net.weight_orig.grad.numpy()[mask] == 0).all()
    np.testing.assert_array_equal(net.weight_orig.detach().numpy()[mask], before[mask])
    assert (net.weight_orig.detach().numpy()[~mask] != before[~mask]).all()


def test_compiled_code_sees_pruning_and_its_end():
    net = nn.Sequential(layer(), nn.ReLU(), nn.Linear(6, 2))
    x = gc.randn(3, 4)
    fast = gc.compile(net)
    optimizer = gc.optim.SGD(net.parameters(), lr=0.1)

    @gc.compile
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    def check():
        np.testing.assert_allclose(fast(x).detach().numpy(), net(x).detach().numpy(), 1e-5, 1e-6)

    check()
    prune.l1_unstructured(net[0], "weight", 0.5)
    check()
    for _ in range(3):
        step(x)
    assert (net[0].weight.detach().numpy() == 0).sum() == 12
    check()
    prune.ln_structured(net[0], "weight", 1, 2, 0)
    check()
    prune.remove(net[0], "weight")
    check()


def test_masks_of_ones_own_and_scores():
    net = layer()
    prune.custom_from_mask(net, "weight", gc.tensor(WEIGHT > 0))
    np.testing.assert_array_equal(net.weight.detach().numpy(), np.where(WEIGHT > 0, WEIGHT, 0))
    other = layer()
    prune.l1_unstructured(other, "weight", 3, importance_scores=gc.arange(24).float().reshape(6, 4) - 1)
    assert np.flatnonzero(other.weight_mask.numpy() == 0).tolist() == [0, 1, 2]

    class EverySecond(prune.BasePruningMethod):
        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    third = layer()
    EverySecond.apply(third, "bias")
    assert third.bias_mask.tolist() == [0, 1] * 3
    EverySecond.apply(third, "bias")  # of those that are left
    assert third.bias_mask.tolist() == [0, 0, 0, 1, 0, 0]
    assert len(next(iter(third._forward_pre_hooks.values()))) == 2
    assert EverySecond().prune(gc.ones(4)).tolist() == [0, 1, 0, 1]


def test_the_end_leaves_an_ordinary_parameter():
    net = layer()
    names = [n for n, _ in net.named_parameters()]
    original = net.weight
    prune.l1_unstructured(net, "weight", 0.5)
    assert prune.is_pruned(net) and prune.is_pruned(nn.Sequential(net))
    pruned = net.weight.detach().numpy()
    prune.remove(net, "weight")
    assert not prune.is_pruned(net) and not net._forward_pre_hooks and type(net) is nn.Linear
    assert sorted(n for n, _ in net.named_parameters()) == sorted(names) and not list(net.buffers())
    assert net.weight is original
    np.testing.assert_array_equal(net.weight.detach().numpy(), pruned)


def test_copies_and_files_keep_masks():
    net = layer()
    prune.l1_unstructured(net, "weight", 0.5)
    x = gc.randn(2, 4)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        np.testing.assert_array_equal(other(x).detach().numpy(), net(x).detach().numpy())
        assert prune.is_pruned(other)
    fresh = layer()
    prune.identity(fresh, "weight")
    fresh.load_state_dict(net.state_dict())
    np.testing.assert_array_equal(fresh(x).detach().numpy(), net(x).detach().numpy())


@pytest.mark.parametrize(
    ("prune_it", "error", "message"),
    [
        (lambda m: prune.l1_unstructured(m, "wait", 0.5), AttributeValueError, "no parameter 'wait'"),
        (lambda m: prune.l1_unstructured(m, "weight", 1.5), AttributeValueError, "cannot prune the amount 1.5"),
        (lambda m: prune.l1_unstructured(m, "weight", -1), AttributeValueError, "cannot prune the amount -1"),
        (lambda m: prune.l1_unstructured(m, "weight", 25), AttributeValueError, "25 of 24"),
        (lambda m: prune.l1_unstructured(m, "weight", "all"), ArgumentError, "an int or a float"),
        (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), AttributeValueError, "cannot prune slices"),
        (lambda m: prune.ln_structured(m, "weight", 1, 2, 2), AttributeValueError, "dim 2"),
        (lambda m: prune.remove(m, "weight"), AttributeValueError, "is not pruned"),
        (lambda m: prune.custom_from_mask(m, "weight", gc.ones(2)), ShapeError, r"the mask has shape \[2\]"),
        (lambda m: prune.l1_unstructured(m, "weight", 1, gc.ones(2)), ShapeError, "importance_scores"),
        (lambda m: prune.global_unstructured([(m, "weight")], prune.LnStructured), ArgumentError, "single elements"),
        (lambda m: prune.PruningContainer(3), ArgumentError, "not a BasePruningMethod"),
    ],
)
def test_mistakes(prune_it, error, message):
    with pytest.raises(error, match=message):
        prune_it(layer())
