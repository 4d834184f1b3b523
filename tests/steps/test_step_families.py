"""Twelve families of models, trained by compiled steps and by eager loops.

20 calls with micro-batches, clipping, moving averages, a schedule, dropout, and batch norm where the model has it.
``python -m tests.steps.test_step_families`` runs all of them and prints the largest figures; the tests take some,
others each day."""

from __future__ import annotations

import copy
import datetime
import random
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphc
from graphc import nn, optim
from graphc.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tests.families.test_families import FAMILIES

CALLS = 20
ACCUMULATE = 2
CLIP = 1.0
DECAY = 0.9
TOLERANCE = 1e-10
FARTHER = 3.0
"""How much farther from the run in f64 a compiled one in f32 may be than an eager one."""
SAMPLE = 3


class Figures(NamedTuple):
    """Figures of one family."""

    f64: float
    """Largest difference of the two runs in f64, of losses, norms, weights, buffers and averages."""
    eager: float
    """Distance of the weights of the eager run in f32 from those in f64, relative to the length of the latter."""
    compiled: float


class Run(NamedTuple):
    """Results of a training run."""

    scalars: list[float]
    model: dict[str, np.ndarray]
    average: dict[str, np.ndarray]


def _drop(model: nn.Module) -> nn.Module:
    """The model with dropout where it has some that does nothing, and behind its first linear layer or convolution."""
    for module in model.modules():
        if isinstance(module, (nn.Dropout, nn.Dropout2d)):
            module.p = 0.1
    for module in model.modules():
        for name, child in module._modules.items():
            if isinstance(child, (nn.Linear, nn.Conv2d)):
                setattr(module, name, nn.Sequential(child, nn.Dropout(0.2)))
                return model
    return model


def _batch(name: str, number: int, dtype: Any) -> tuple[tuple[Any, ...], Any]:
    """Batch ``number`` of a family: its floats with other noise each time."""
    family, rng = FAMILIES[name], np.random.default_rng(number)

    def tensor(array: np.ndarray, noise: float) -> Any:
        if array.dtype.kind != "f":
            return graphc.from_numpy(array.copy())
        return graphc.from_numpy((array + noise * rng.standard_normal(array.shape)).astype(dtype))

    return tuple(tensor(a, 0.1) for a in family.inputs), tensor(family.target, 0.0)


def _optimizer(name: str, model: nn.Module) -> tuple[Any, Any]:
    """Groups with and without decay, and a schedule."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    if list(FAMILIES).index(name) % 2:
        # NOTE: a bias before a norm has gradient 0 but for rounding, which a small eps makes steps of.
        optimizer: Any = optim.AdamW(groups, lr=1e-3, eps=1e-6)
    else:
        optimizer = optim.SGD(groups, lr=0.01, momentum=0.9, nesterov=True)
    return optimizer, optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=CALLS)


def _numpy(module: nn.Module) -> dict[str, np.ndarray]:
    return {k: v.numpy().astype(np.float64) for k, v in module.state_dict().items()}


def eager(name: str, start: nn.Module, dtype: Any) -> Run:
    """Trains a copy as a loop does."""
    model, loss = copy.deepcopy(start), FAMILIES[name].loss(graphc)
    optimizer, schedule = _optimizer(name, model)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(DECAY))
    scalars = []
    for i in range(CALLS):
        inputs, target = _batch(name, i, dtype)
        graphc.manual_seed(i)
        result = loss(model(*inputs), target)
        (result / ACCUMULATE).backward()
        scalars.append(result.item())
        if (i + 1) % ACCUMULATE == 0:
            scalars.append(nn.utils.clip_grad_norm_(model.parameters(), CLIP).item())
            optimizer.step()
            optimizer.zero_grad()
            average.update_parameters(model)
            schedule.step()
    return Run(scalars, _numpy(model), _numpy(average))


def compiled(name: str, start: nn.Module, dtype: Any) -> Run:
    """Trains a copy by a compiled step."""
    model, loss = copy.deepcopy(start), FAMILIES[name].loss(graphc)
    optimizer, schedule = _optimizer(name, model)
    step = graphc.compile_step(model, loss, optimizer, accumulate=ACCUMULATE, clip_norm=CLIP, ema=DECAY)
    scalars = []
    for i in range(CALLS):
        inputs, target = _batch(name, i, dtype)
        graphc.manual_seed(i)
        scalars.append(step(inputs, target).item())
        if step.last_grad_norm is not None:
            scalars.append(step.last_grad_norm.item())
            schedule.step()
    assert len(step.graphs) == 2
    return Run(scalars, _numpy(model), _numpy(step.ema))


def _largest(a: Run, b: Run) -> float:
    """The largest difference, relative for numbers above 1."""
    results = [np.abs(np.subtract(a.scalars, b.scalars)) / np.maximum(1, np.abs(a.scalars))]
    for first, second in ((a.model, b.model), (a.average, b.average)):
        results += [np.abs(second[k] - v) / np.maximum(1, np.abs(v)) for k, v in first.items()]
    return max(float(f.max(initial=0)) for f in results)


def _distance(a: Run, b: Run) -> float:
    squares = sum(float(((b.model[k] - v) ** 2).sum()) for k, v in a.model.items())
    return float(np.sqrt(squares / sum(float((v**2).sum()) for v in a.model.values())))


def figures(name: str) -> Figures:
    """All four runs of a family."""
    graphc.manual_seed(0)
    start = _drop(FAMILIES[name].build(graphc))
    wide = copy.deepcopy(start).double()
    exact, again = eager(name, wide, np.float64), compiled(name, wide, np.float64)
    narrow = eager(name, start, np.float32), compiled(name, start, np.float32)
    return Figures(_largest(exact, again), *(_distance(exact, run) for run in narrow))


def chosen() -> list[str]:
    """Some of the families, others each day."""
    return random.Random(datetime.date.today().toordinal()).sample(list(FAMILIES), SAMPLE)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", chosen())
def test_compiled_training_is_eager_training(name):
    result = figures(name)
    assert result.f64 < TOLERANCE
    assert result.compiled < FARTHER * result.eager + 1e-7


def main(names: list[str]) -> None:
    """Prints the figures of these families, or of all."""
    for name in names or FAMILIES:
        result = figures(name)
        ratio = result.compiled / result.eager
        print(
            f"{name:12} f64 {result.f64:.1e}  f32 eager {result.eager:.2e} compiled {result.compiled:.2e} {ratio:.2f}x"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
