"""Orthogonal weights against numpy and, where installed, PyTorch: values, gradients, starts, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.autograd import gradcheck
from graphc.nn.utils.orthogonal import MAPS, reflected
from graphc.nn.utils.parametrizations import orthogonal

SHAPES = [(4, 4), (5, 3), (3, 5)]


def numbers(*shape: int, scale: float = 1.0) -> graphc.Tensor:
    return graphc.from_numpy(np.random.default_rng(len(shape)).standard_normal(shape) * scale)


def unit(weight: graphc.Tensor) -> bool:
    tall = weight if weight.shape[-2] >= weight.shape[-1] else weight.mT
    return graphc.allclose(
        tall.mT @ tall, graphc.eye(tall.shape[-1]).to(tall.dtype).expand(*tall.mT.shape[:-1], -1), atol=1e-5
    )


def test_reflections():
    assert unit(reflected(numbers(2, 5, 3)))
    assert gradcheck(reflected, numbers(3, 2).requires_grad_())


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_weight_stays_orthogonal_in_training(name: str, shape: tuple[int, int]):
    graphc.manual_seed(0)
    layer = orthogonal(nn.Linear(shape[1], shape[0]), orthogonal_map=name)
    before = layer.weight.detach().clone()
    assert unit(before)
    optimizer = graphc.optim.SGD(layer.parameters(), lr=0.02)
    for _ in range(3):
        optimizer.zero_grad()
        layer(numbers(4, shape[1]).float()).square().sum().backward()
        optimizer.step()
    assert unit(layer.weight) and not graphc.allclose(layer.weight, before, atol=1e-3)
    compiled = graphc.compile(layer)(graphc.ones(2, shape[1]))
    assert graphc.allclose(compiled, layer(graphc.ones(2, shape[1])), atol=1e-5)


def test_an_orthogonal_weight_is_where_it_starts():
    for name in MAPS:
        graphc.manual_seed(1)
        layer = nn.Linear(4, 4)
        nn.init.orthogonal_(layer.weight)
        start = layer.weight.detach().clone()
        assert graphc.allclose(orthogonal(layer, orthogonal_map=name).weight, start, atol=1e-5)
        layer.weight = start.flip(0)
        assert graphc.allclose(layer.weight, start.flip(0), atol=1e-5)


def test_what_is_refused():
    with pytest.raises(TypeError, match="is not known"):
        orthogonal(nn.Linear(2, 2), orthogonal_map="lie")
    with pytest.raises(ValueError, match="expected 2 or more dimensions"):
        orthogonal(nn.Linear(2, 2), "bias")
    with pytest.raises(ValueError, match="no parameter"):
        orthogonal(nn.Linear(2, 2), "scale")
    layer = nn.Linear(2, 2)
    with pytest.raises(NotImplementedError, match="use_trivialization"):
        orthogonal(layer, orthogonal_map="cayley", use_trivialization=False)
    with pytest.raises(RuntimeError, match="expected a matrix of shape"):
        orthogonal(layer).weight = graphc.ones(3, 2)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("shape", SHAPES)
def test_as_torch(torch, name: str, shape: tuple[int, int]):
    theirs = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(shape[1], shape[0]).double(), "weight", name)
    ours = orthogonal(nn.Linear(shape[1], shape[0], dtype=graphc.float64), "weight", name)
    state = {k: v.numpy().copy() for k, v in theirs.state_dict().items()}
    state["parametrizations.weight.original"] += np.random.default_rng(0).standard_normal(shape) * 0.3
    if name == "householder":
        state["parametrizations.weight.original"] = np.sign(state["parametrizations.weight.original"]) * 1.0 + 0.0
    ours.load_state_dict(state)
    theirs.load_state_dict({k: torch.from_numpy(v) for k, v in state.items()})
    x = np.random.default_rng(1).standard_normal((4, shape[1]))
    found, expected = ours(graphc.from_numpy(x)), theirs(torch.from_numpy(x))
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=1e-10)
    found.square().sum().backward()
    expected.square().sum().backward()
    mine, other = (m.parametrizations.weight.original.grad.numpy() for m in (ours, theirs))
    np.testing.assert_allclose(mine, other, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_reflections_of_a_given_weight_as_torch(torch, shape: tuple[int, int]):
    theirs = torch.nn.Linear(shape[1], shape[0]).double()
    ours = nn.Linear(shape[1], shape[0], dtype=graphc.float64)
    ours.load_state_dict({k: v.detach().numpy() for k, v in theirs.state_dict().items()})
    torch.nn.utils.parametrizations.orthogonal(theirs, "weight", "householder", use_trivialization=False)
    orthogonal(ours, "weight", "householder", use_trivialization=False)
    np.testing.assert_allclose(ours.weight.detach().numpy(), theirs.weight.detach().numpy(), atol=1e-10)
