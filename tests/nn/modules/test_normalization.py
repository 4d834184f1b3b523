"""Normalisation layers: PyTorch's numbers in training and evaluation, running statistics, old files."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import floats, modules_agree

OPTIONS = [{}, {"affine": False}, {"momentum": None}, {"track_running_stats": False}, {"eps": 0.1, "momentum": 0.5}]


def in_both_modes(ours: nn.Module, theirs: object, *shape: int) -> None:
    """Three steps in training, then evaluation, each compared."""
    for step in range(3):
        modules_agree(ours, theirs, floats(*shape, seed=step), rtol=1e-7)
        ours.zero_grad()
        theirs.zero_grad()
    ours.eval()
    theirs.eval()
    modules_agree(ours, theirs, floats(*shape, seed=9), rtol=1e-7)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("name", "shape"), [("1d", (4, 3)), ("1d", (4, 3, 5)), ("2d", (2, 3, 4, 5))])
def test_batch_norm_as_torch(torch, options: dict, name: str, shape: tuple[int, ...]):
    ours, theirs = (getattr(m, f"BatchNorm{name}")(3, **options) for m in (nn, torch.nn))
    in_both_modes(ours, theirs, *shape)


@pytest.mark.parametrize("options", [{}, {"affine": True, "track_running_stats": True}])
@pytest.mark.parametrize(("name", "shape"), [("1d", (4, 3, 5)), ("2d", (2, 3, 4, 5)), ("2d", (3, 4, 5))])
def test_instance_norm_as_torch(torch, options: dict, name: str, shape: tuple[int, ...]):
    ours, theirs = (getattr(m, f"InstanceNorm{name}")(3, **options) for m in (nn, torch.nn))
    if options:
        # PyTorch counts no batches in instance normalisation either.
        assert ours.num_batches_tracked.item() == 0
    in_both_modes(ours, theirs, *shape)


def test_evaluation_leaves_running_statistics():
    layer = nn.BatchNorm2d(3).eval()
    layer(graphc.randn(2, 3, 4, 4))
    np.testing.assert_array_equal(layer.running_mean.numpy(), np.zeros(3))
    assert layer.num_batches_tracked.item() == 0


def test_reset():
    layer = nn.BatchNorm1d(3)
    layer(graphc.randn(8, 3) + 5)
    assert layer.num_batches_tracked.item() == 1 and (layer.running_mean.numpy() > 0.1).all()
    layer.reset_running_stats()
    np.testing.assert_array_equal(layer.running_mean.numpy(), np.zeros(3))
    np.testing.assert_array_equal(layer.running_var.numpy(), np.ones(3))
    assert layer.num_batches_tracked.item() == 0


def test_files_of_version_1_have_no_count():
    layer = nn.BatchNorm2d(3)
    state = {k: v for k, v in layer.state_dict().items() if k != "num_batches_tracked"}
    assert not layer.load_state_dict(state).missing_keys
    newer = layer.state_dict()
    del newer["num_batches_tracked"]
    assert newer._metadata[""] == {"version": 2}
    assert layer.load_state_dict(newer, strict=False).missing_keys == ["num_batches_tracked"]


def test_text():
    expected = "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"
    assert repr(nn.BatchNorm2d(3)) == expected
    assert repr(nn.LayerNorm(3)) == "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)"
    assert repr(nn.RMSNorm((2, 3))) == "RMSNorm((2, 3), eps=None, elementwise_affine=True)"
    assert repr(nn.GroupNorm(2, 4)) == "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)"


def test_errors():
    with pytest.raises(ShapeError, match=r"BatchNorm2d: the input \[2, 3\] has 2 dimensions, expected 4"):
        nn.BatchNorm2d(3)(graphc.zeros(2, 3))
    with pytest.raises(ShapeError, match="expected 2 or 3"):
        nn.BatchNorm1d(3)(graphc.zeros(2, 3, 4, 5))
    with pytest.raises(AttributeValueError, match="3 groups do not divide 4 channels"):
        nn.GroupNorm(3, 4)
    with pytest.raises(ShapeError, match="InstanceNorm2d"):
        nn.InstanceNorm2d(3)(graphc.zeros(2, 3))
