"""Averaged models and SWALR against PyTorch, and running statistics over a loader."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import ArgumentError, AttributeValueError
from graphc.optim import swa_utils
from tests.nn.compare import floats


def averaged(library: Any, how: str, use_buffers: bool) -> dict[str, np.ndarray]:
    """State of an average over four sets of weights."""
    tools = library.optim.swa_utils
    options = {
        "mean": {},
        "ema": {"avg_fn": tools.get_ema_avg_fn(0.7)},
        "swa": {"avg_fn": tools.get_swa_avg_fn()},
        "multi": {"multi_avg_fn": tools.get_ema_multi_avg_fn(0.7)},
        "multi swa": {"multi_avg_fn": tools.get_swa_multi_avg_fn()},
    }[how]
    model = library.nn.Sequential(library.nn.Linear(2, 3), library.nn.BatchNorm1d(3)).double()
    average = tools.AveragedModel(model, use_buffers=use_buffers, **options)
    for step in range(4):
        with library.no_grad():
            for i, tensor in enumerate([*model.parameters(), model[1].running_mean]):
                tensor.copy_(library.from_numpy(floats(*tensor.shape, seed=10 * step + i)))
        average.update_parameters(model)
    average.eval()
    state = {name: tensor.detach().numpy() for name, tensor in average.state_dict().items()}
    return state | {"output": average(library.from_numpy(floats(4, 2))).detach().numpy()}


@pytest.mark.parametrize("how", ["mean", "swa", "ema", "multi"])
@pytest.mark.parametrize("use_buffers", [False, True])
def test_as_torch(torch, how: str, use_buffers: bool):
    ours, theirs = averaged(graphc, how, use_buffers), averaged(torch, how, use_buffers)
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-9, err_msg=name)


def test_lists_are_averaged_as_single_tensors():
    single, several = averaged(graphc, "swa", True), averaged(graphc, "multi swa", True)
    assert all(np.array_equal(single[name], several[name]) for name in single)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 1, 5])
def test_rates_as_torch(torch, strategy: str, epochs: int):
    found = []
    for library in (graphc, torch):
        p = [library.nn.Parameter(library.ones(1)) for _ in range(2)]
        optimizer = library.optim.SGD([{"params": p[:1]}, {"params": p[1:], "lr": 0.5}], lr=0.1)
        schedule = library.optim.swa_utils.SWALR(optimizer, [0.05, 0.2], epochs, strategy)
        rates = []
        for _ in range(8):
            optimizer.step()
            schedule.step()
            rates.append([g["lr"] for g in optimizer.param_groups])
        found.append(rates)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_running_statistics_over_a_loader():
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1)).eval()
    batches = [graphc.tensor(floats(6, 2, seed=i)).float() for i in range(3)]
    swa_utils.update_bn([(b, None) for b in batches], net, device="cpu")
    mean = np.mean([b.numpy().mean(0) for b in batches], 0)
    np.testing.assert_allclose(net[0].running_mean.numpy(), mean, rtol=1e-5, atol=1e-7)
    assert net[0].momentum == 0.1 and not net.training and net[0].num_batches_tracked.item() == 3
    swa_utils.update_bn(batches, nn.Linear(2, 1))


def test_wrong_uses():
    net = nn.Linear(1, 1)
    one = swa_utils.get_swa_avg_fn()
    with pytest.raises(ArgumentError, match="only one of avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(net, avg_fn=one, multi_avg_fn=swa_utils.get_swa_multi_avg_fn())
    with pytest.raises(AttributeValueError, match="decay must be between 0 and 1, got 2"):
        swa_utils.get_ema_avg_fn(2)
    optimizer = graphc.optim.SGD(net.parameters(), lr=0.1)
    for options in ({"anneal_strategy": "square"}, {"anneal_epochs": -1}, {"swa_lr": [0.1, 0.2]}):
        with pytest.raises(AttributeValueError, match="SWALR"):
            swa_utils.SWALR(optimizer, **{"swa_lr": 0.1} | options)


def test_a_model_that_got_other_parameters_is_an_error():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    average = swa_utils.AveragedModel(net)
    net[1].weight = net[0].weight
    with pytest.raises(ArgumentError, match="the model has 3 parameters, its averaged copy 4"):
        average.update_parameters(net)
