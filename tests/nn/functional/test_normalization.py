"""Normalisation against PyTorch: results, gradients, running statistics."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import agree, floats, positive, same, tensor


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_as_torch(torch, shape: tuple[int, ...], affine: bool, training: bool):
    x, parameters = floats(*shape), ([floats(3, seed=1), floats(3, seed=2)] if affine else [])
    mean, var = floats(3, seed=3), positive(3)
    ours, theirs = [tensor(mean), tensor(var)], [torch.tensor(mean), torch.tensor(var)]
    agree(
        lambda x, *p: F.batch_norm(x, *ours, *p, training=training, momentum=0.3, eps=1e-3),
        lambda x, *p: torch.nn.functional.batch_norm(x, *theirs, *p, training=training, momentum=0.3, eps=1e-3),
        x,
        *parameters,
        rtol=1e-7,
    )
    for a, b in zip(ours, theirs, strict=True):
        same(a, b)
    assert (np.asarray(ours[0]) != mean).any() == training


def test_batch_norm_in_training_normalises():
    x = tensor(floats(16, 3, 4))
    y = F.batch_norm(x, None, None, training=True).numpy()
    np.testing.assert_allclose(y.mean((0, 2)), 0, atol=1e-10)
    np.testing.assert_allclose(y.var((0, 2)), 1, rtol=1e-4)


def test_running_statistics_have_no_gradient():
    mean, var = graphc.zeros(3), graphc.ones(3)
    x = graphc.randn(4, 3).requires_grad_()
    F.batch_norm(x, mean, var, training=True).sum().backward()
    assert mean.grad_fn is None and not mean.requires_grad and not var.requires_grad


def test_batch_norm_errors():
    x = graphc.zeros(1, 3)
    with pytest.raises(AttributeValueError, match="one value per channel"):
        F.batch_norm(x, None, None, training=True)
    with pytest.raises(AttributeValueError, match="needs running_mean and running_var"):
        F.batch_norm(x, None, None)
    with pytest.raises(ShapeError, match="no channel dimension"):
        F.batch_norm(graphc.zeros(3), None, None, training=True)


@pytest.mark.parametrize("shape", [(5,), (4, 5), (3, 4, 5)])
@pytest.mark.parametrize("parameters", [0, 1, 2])
def test_layer_norm_as_torch(torch, shape: tuple[int, ...], parameters: int):
    arrays = [floats(*shape, seed=i) for i in range(1, 1 + parameters)]
    agree(
        lambda x, *p: F.layer_norm(x, shape, *p),
        lambda x, *p: torch.nn.functional.layer_norm(x, shape, *p),
        floats(2, 3, *shape),
        *arrays,
        rtol=1e-7,
    )


def test_layer_norm_errors():
    with pytest.raises(ShapeError, match=r"does not end with \[4\]"):
        F.layer_norm(graphc.zeros(2, 3), (4,))
    with pytest.raises(ShapeError, match=r"shape \[2\], expected \[3\]"):
        F.layer_norm(graphc.zeros(2, 3), (3,), graphc.zeros(2))


@pytest.mark.parametrize("eps", [None, 1e-3])
@pytest.mark.parametrize("shape", [(5,), (4, 5)])
def test_rms_norm_as_torch(torch, shape: tuple[int, ...], eps: float | None):
    agree(
        lambda x, w: F.rms_norm(x, shape, w, eps),
        lambda x, w: torch.nn.functional.rms_norm(x, shape, w, eps),
        floats(2, 3, *shape),
        floats(*shape, seed=1),
        rtol=1e-7,
    )


@pytest.mark.parametrize(
    ("groups", "shape"),
    [(1, (3, 6)), (2, (3, 6)), *[(g, s) for g in (1, 2, 6) for s in ((3, 6, 5), (2, 6, 4, 5))]],
)
def test_group_norm_as_torch(torch, groups: int, shape: tuple[int, ...]):
    agree(
        lambda x, *p: F.group_norm(x, groups, *p),
        lambda x, *p: torch.nn.functional.group_norm(x, groups, *p),
        floats(*shape),
        floats(6, seed=1),
        floats(6, seed=2),
        rtol=1e-7,
    )


def test_group_norm_needs_whole_groups():
    with pytest.raises(ShapeError, match="4 groups do not divide"):
        F.group_norm(graphc.zeros(2, 6, 3), 4)


@pytest.mark.parametrize("use_input_stats", [True, False])
def test_instance_norm_as_torch(torch, use_input_stats: bool):
    mean, var = floats(3, seed=3), positive(3)
    ours, theirs = [tensor(mean), tensor(var)], [torch.tensor(mean), torch.tensor(var)]
    agree(
        lambda x, *p: F.instance_norm(x, *ours, *p, use_input_stats=use_input_stats),
        lambda x, *p: torch.nn.functional.instance_norm(x, *theirs, *p, use_input_stats=use_input_stats),
        floats(2, 3, 4, 5),
        floats(3, seed=1),
        floats(3, seed=2),
        rtol=1e-7,
    )
    for a, b in zip(ours, theirs, strict=True):
        same(a, b)


def test_instance_norm_errors():
    with pytest.raises(ShapeError, match="no spatial dimensions"):
        F.instance_norm(graphc.zeros(2, 3))
    with pytest.raises(AttributeValueError, match="one value per channel"):
        F.instance_norm(graphc.zeros(2, 3, 1))


def test_an_input_of_no_channels_is_its_own_result():
    assert F.batch_norm(graphc.ones(0), graphc.ones(0), graphc.ones(0)).shape == (0,)


def test_local_response_norm_of_whole_numbers_has_whole_means():
    x = graphc.tensor([[[3], [4], [5]]])
    means = np.array([9 // 2, (9 + 16) // 2, (16 + 25) // 2])
    wanted = np.array([3, 4, 5]) / (1 + 0.5 * means) ** 0.75
    np.testing.assert_allclose(F.local_response_norm(x, 2, alpha=0.5).numpy()[0, :, 0], wanted, rtol=1e-6)
    assert F.local_response_norm(x[:0], 2).dtype is graphc.int64
