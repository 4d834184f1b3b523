"""Training public models through ``torch.compile(backend="graphc")``: ``python -m benchmarks.hub_training``."""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.harness.results import OWN, Result, cell, format_problems, format_table
from benchmarks.harness.sweep import limited_torch
from benchmarks.harness.timing import Call, measure
from benchmarks.hub import EAGER, INDUCTOR, PEERS, Command, double, hub_models, ratios, torch

DOUBLE_TOLERANCE = 1e-10
"""Largest relative difference of a loss in f64."""
FARTHEST = 3.0
"""Allowed distance of f32 weights from those of an f64 run, relative to eager PyTorch's distance."""
COLUMNS = ("model", "f64 losses", "f32 distance over eager's", OWN, *PEERS, "vs eager", "vs inductor")
Batch = tuple[tuple[Any, ...], dict[str, Any]]
IMAGES = 4
"""Images in a batch."""
STEPS, SEEDS = 10, 5
"""Steps of a training, and from how many beginnings it is taken in f32."""


def momentum(parameters: Any) -> Any:
    """Return SGD with momentum."""
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


def start(key: str, seed: int, steps: int) -> tuple[Any, list[Batch]]:
    """Return a module in training mode and without dropout, whose random numbers are not PyTorch's, and its batches."""
    model = hub_models.TRAINED[key]
    library = hub_models.load_collection(model.collection)
    torch.manual_seed(seed)
    module = without_dropout(model.make(library).train())
    if model.side:
        return module, [((torch.randn(IMAGES, 3, model.side, model.side),), {}) for _ in range(steps)]
    return module, [((), {name: make() for name, make in model.inputs.items()}) for _ in range(steps)]


def without_dropout(module: Any) -> Any:
    """Return the module with every probability of leaving something out at 0."""
    for layer in module.modules():
        for name, value in list(vars(layer).items()):
            if isinstance(value, float) and ("drop" in name or (name == "p" and isinstance(layer, torch.nn.Dropout))):
                setattr(layer, name, 0.0)
    return module


def loss_of(result: Any) -> Any:
    """Return the cross entropy of a result's first tensor with classes in its last dimension; the labels are 0, 1, 2
    ..."""
    scores = next(leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor))
    scores = scores.flatten(0, -2)
    return torch.nn.functional.cross_entropy(scores, torch.arange(len(scores)) % scores.shape[-1])


def step(call: Callable[..., Any], optimizer: Any, batch: Batch) -> Any:
    """Run the forward and backward pass and an update; return the loss before it."""
    args, kwargs = batch
    optimizer.zero_grad()
    loss = loss_of(call(*args, **kwargs))
    loss.backward()
    optimizer.step()
    return loss.detach()


def compiled(module: Any, name: str, weights: str) -> Callable[..., Any]:
    """Return the module, or its compiled form by ``torch.compile``; the row fails if graphc does not compile all of
    it."""
    if name == EAGER:
        return module
    options = {"weights": weights, "fallback": "error"} if name == OWN else None
    return torch.compile(module, backend=name, dynamic=False, fullgraph=name == OWN, options=options)


def double_losses(key: str, weights: str) -> float:
    """Return the largest relative difference of a loss from eager's in f64, of either optimizer: AdamW hides gradients
    that are wrong by a factor."""
    differences = []
    for make in (functools.partial(torch.optim.AdamW, lr=1e-4), momentum):
        module, batches = start(key, 0, STEPS)
        module, batches = module.double(), [_double(batch) for batch in batches]
        losses = []
        for name in (EAGER, OWN):
            trained = copy.deepcopy(module)
            call, optimizer = compiled(trained, name, weights), make(trained.parameters())
            losses.append([step(call, optimizer, batch).item() for batch in batches])
        differences += [abs(own - eager) / abs(eager) for eager, own in zip(*losses, strict=True)]
    return float(np.max(differences))  # nan where there is one


def single_distances(key: str, weights: str) -> Iterator[float]:
    """Yield for each initialization the distance of f32 parameters and buffers after steps of SGD from those of an f64
    run, relative to eager's distance."""
    for seed in range(SEEDS):
        torch.compiler.reset()
        module, batches = start(key, seed, STEPS)
        states = []
        for name, convert in ((EAGER, _double), (EAGER, _same), (OWN, _same)):
            trained = convert(copy.deepcopy(module))
            call, optimizer = compiled(trained, name, weights), momentum(trained.parameters())
            for batch in batches:
                step(call, optimizer, convert(batch))
            states.append([v for v in trained.state_dict().values() if v.is_floating_point()])
        exact, eager, own = states
        yield _distance(own, exact) / _distance(eager, exact)


def _double(value: Any) -> Any:
    """Return a module, or a batch, in f64."""
    return value.double() if isinstance(value, torch.nn.Module) else double(value)


def _same(value: Any) -> Any:
    return value


def _distance(weights: Sequence[Any], exact: Sequence[Any]) -> float:
    return sum(float((a.double() - b).square().sum()) for a, b in zip(weights, exact, strict=True)) ** 0.5


def measure_model(key: str, peers: Sequence[str], rounds: int, seconds: float, weights: str = "live") -> dict[str, Any]:
    """Return a model's row; times are those of a whole step with SGD on one batch."""
    limited_torch()
    result = Result(key, {"f64_losses": double_losses(key, weights)})
    result.facts["f32_distances"] = list(single_distances(key, weights))
    if rounds:
        torch.compiler.reset()
        module, (batch,) = start(key, 0, 1)

        def make(name: str) -> Call:
            trained = copy.deepcopy(module)
            call, optimizer = compiled(trained, name, weights), torch.optim.SGD(trained.parameters(), 0.001)
            return lambda: step(call, optimizer, batch)

        names = [EAGER, OWN, *([INDUCTOR] if INDUCTOR in peers else [])]
        measure(result, {name: functools.partial(make, name) for name in names}, rounds, seconds)
    return vars(result)


def agrees(result: Result) -> bool:
    """Return whether losses in f64 are eager's, and weights in f32 about as far from f64 as eager's.

    The median of the beginnings counts: where a value is within a rounding of a ReLU's corner, a run in f32, eager's as
    well as any, is a thousand times as far from that in f64 as others.
    """
    facts = result.facts
    if OWN in result.problems or "f32_distances" not in facts:
        return False
    far = [distance for distance in facts["f32_distances"] if not distance <= FARTHEST]
    return facts["f64_losses"] <= DOUBLE_TOLERANCE and 2 * len(far) < len(facts["f32_distances"])


def format_row(result: Result) -> list[str]:
    distances = result.facts.get("f32_distances")
    losses = result.facts.get("f64_losses")
    return [
        result.name,
        "-" if losses is None else f"{losses:.1e}{'' if agrees(result) else '!'}",
        ", ".join(f"{distance:.2f}" for distance in distances) if distances else "-",
        *(cell(result.ms(name), ".3g") for name in (OWN, *PEERS)),
        *(cell(result.over(peer), ".2f") for peer in PEERS),
    ]


def format_rows(results: Sequence[Result]) -> str:
    agreed = f"{sum(map(agrees, results))} of {len(results)} agree"
    lines = [format_table(COLUMNS, map(format_row, results)), "", agreed, *ratios(results), *format_problems(results)]
    return "\n".join(lines)


TRAINING = Command(
    "benchmarks.hub_training", __doc__, "TRAINED", "benchmarks.hub_training:measure_model", agrees, format_rows
)

if __name__ == "__main__":
    sys.exit(TRAINING.main())
