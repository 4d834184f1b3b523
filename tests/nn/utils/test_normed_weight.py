"""Weight norm and spectral norm under their old names, compared with PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import graphc
from graphc import nn
from graphc.errors import ArgumentError, AttributeValueError
from graphc.nn.utils import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
from tests.nn.compare import floats, modules_agree


@pytest.mark.parametrize("dim", [0, None])
def test_weight_norm_as_torch(torch, dim: int | None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        theirs = torch.nn.utils.weight_norm(torch.nn.Conv1d(2, 3, 3), dim=dim)
        theirs.double().double()
        modules_agree(weight_norm(nn.Conv1d(2, 3, 3), dim=dim), theirs, floats(1, 2, 6))


@pytest.mark.parametrize("training", [True, False])
def test_spectral_norm_as_torch(torch, training: bool):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        theirs = torch.nn.utils.spectral_norm(torch.nn.Linear(4, 3)).train(training)
        modules_agree(spectral_norm(nn.Linear(4, 3)).train(training), theirs, floats(2, 4))


@pytest.mark.parametrize(("norm", "remove"), [(weight_norm, remove_weight_norm), (spectral_norm, remove_spectral_norm)])
def test_removal_and_assignment(norm: Any, remove: Any):
    layer = norm(nn.Linear(4, 3)).eval()
    value = layer.weight.detach().clone()
    layer.weight = value
    remove(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"] and type(layer) is nn.Linear
    if norm is weight_norm:
        assert graphc.allclose(layer.weight, value)
    with pytest.raises(AttributeValueError, match=f"has no {'weight' if norm is weight_norm else 'spectral'} norm"):
        remove(layer)


def test_wrong_uses():
    with pytest.raises(ArgumentError, match="cannot have two norms"):
        weight_norm(weight_norm(nn.Linear(2, 2)))
    with pytest.raises(ArgumentError, match="cannot have further norms"):
        spectral_norm(weight_norm(nn.Linear(2, 2)))
    with pytest.raises(AttributeValueError, match="no parameter 'w'"):
        weight_norm(nn.Linear(2, 2), "w")
    with pytest.raises(AttributeValueError, match="n_power_iterations must be 1 or more, got 0"):
        spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
