"""Limits on gradients, and parameters as one vector."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import GradientError, ShapeError
from graphc.nn.clip_grad import (
    clip_grad_norm_,
    clip_grad_value_,
    get_total_norm,
    parameters_to_vector,
    vector_to_parameters,
)
from tests.nn.compare import floats


def parameters() -> list[nn.Parameter]:
    """Two parameters with gradients and one without."""
    made = []
    for i, shape in enumerate([(2, 3), (4,)]):
        p = nn.Parameter(graphc.tensor(floats(*shape, seed=i)))
        p.grad = graphc.tensor(floats(*shape, seed=10 + i))
        made.append(p)
    return [*made, nn.Parameter(graphc.zeros(2))]


def gradients(held: list[nn.Parameter]) -> list[np.ndarray]:
    return [p.grad.numpy().copy() for p in held if p.grad is not None]


@pytest.mark.parametrize("max_norm", [0.5, 100.0])
@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, math.inf])
def test_norm_as_torch(torch, max_norm: float, norm_type: float):
    ours = parameters()
    theirs = [torch.nn.Parameter(torch.tensor(p.detach().numpy())) for p in ours]
    for p, q in zip(ours, theirs, strict=True):
        q.grad = None if p.grad is None else torch.tensor(p.grad.numpy())
    norm = clip_grad_norm_(ours, max_norm, norm_type)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    np.testing.assert_allclose(norm.numpy(), expected.numpy(), rtol=1e-10)
    for a, b in zip(gradients(ours), [q.grad.numpy() for q in theirs if q.grad is not None], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_norm_of_all_gradients_together():
    held = parameters()
    expected = np.sqrt(sum((g**2).sum() for g in gradients(held)))
    assert clip_grad_norm_(iter(held), 0.1).item() == pytest.approx(expected)
    assert np.sqrt(sum((g**2).sum() for g in gradients(held))) == pytest.approx(0.1, rel=1e-4)


def test_gradients_are_changed_in_place():
    held = parameters()
    before = held[0].grad
    clip_grad_norm_(held[0], 0.1)
    assert held[0].grad is before


def test_no_gradients():
    assert clip_grad_norm_([nn.Parameter(graphc.zeros(2))], 1.0).item() == 0
    assert get_total_norm([]).shape == ()


def test_norm_that_is_not_finite():
    p = nn.Parameter(graphc.zeros(2))
    p.grad = graphc.tensor([1.0, math.inf])
    with pytest.raises(GradientError, match="the norm of the gradients is not finite: inf"):
        clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
    assert clip_grad_norm_([p], 1.0).item() == math.inf


def test_values():
    held = parameters()
    expected = [np.clip(g, -0.5, 0.5) for g in gradients(held)]
    clip_grad_value_(held, 0.5)
    for a, b in zip(gradients(held), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_vector_and_back():
    net = nn.Linear(3, 2)
    vector = parameters_to_vector(net.parameters())
    assert vector.shape == (8,) and vector.requires_grad
    vector_to_parameters(graphc.arange(8.0), net.parameters())
    assert net.weight.tolist() == [[0, 1, 2], [3, 4, 5]] and net.bias.tolist() == [6, 7]
    with pytest.raises(ShapeError, match=r"have 8 elements, the vector has shape \[7\]"):
        vector_to_parameters(graphc.zeros(7), net.parameters())


def test_the_import_path_that_users_know():
    assert nn.utils.clip_grad_norm_ is clip_grad_norm_ and nn.utils.vector_to_parameters is vector_to_parameters
    assert all(hasattr(nn.utils, name) for name in nn.utils.__all__)


def test_norm_of_several_element_types():
    held = parameters()
    held[1] = nn.Parameter(graphc.zeros(4, dtype=graphc.float64))
    held[1].grad = graphc.full((4,), 2.0, dtype=graphc.float64)
    norm = clip_grad_norm_(held, 100.0)
    expected = math.sqrt(float((held[0].grad.double() ** 2).sum().item()) + 16)
    assert norm.dtype is graphc.float64
    np.testing.assert_allclose(norm.item(), expected, rtol=1e-6)
