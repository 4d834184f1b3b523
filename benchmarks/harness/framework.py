"""Build and run workloads with torch or graphc, by the names that both share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import cycle
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness.prepared import CHECKED_STEPS, Prepared
from benchmarks.harness.timing import no_grad
from benchmarks.workloads import Array, LoopWorkload, Workload

WEIGHTS = "weights.npz"
NUMBERS = "numbers.npy"
ONNX = "model.onnx"

Step = Callable[[Any, Any], Any]


def build_model(framework: ModuleType, workload: Workload, folder: Path | None = None) -> Any:
    """Return the workload's module in evaluation mode, with the weights that `folder` holds."""
    framework.manual_seed(0)
    model = workload.build(framework.nn)
    if folder is not None:
        load_weights(framework, model, folder)
    return model.eval()


def load_weights(framework: ModuleType, model: Any, folder: Path) -> None:
    """Copy the weights that `folder` holds into `model`."""
    with np.load(folder / WEIGHTS) as arrays:
        model.load_state_dict({name: framework.tensor(arrays[name]) for name in arrays.files})


def read_weights(model: Any) -> dict[str, Array]:
    """Return a copy of the model's parameters and buffers by name."""
    state: Mapping[str, Any] = model.state_dict()
    return {name: np.array(tensor.detach().numpy()) for name, tensor in state.items()}


def convert_inputs(framework: ModuleType, workload: Workload) -> list[Any]:
    """Return the workload's inputs (and target) as the framework's tensors."""
    return [framework.tensor(array) for array in workload.draw_inputs()]


def make_loss(framework: ModuleType, workload: Workload) -> Step:
    """Return ``loss(output, target)``: the mean over every row of classes."""
    F = framework.nn.functional
    rows = F.nll_loss if workload.log_probabilities else F.cross_entropy
    return lambda output, target: rows(output.reshape(-1, output.shape[-1]), target.reshape(-1))


def make_optimizer(framework: ModuleType, workload: Workload, model: Any, **options: Any) -> Any:
    """Return the workload's optimizer over the model's parameters; `options` are the framework's own."""
    if workload.optimizer == "sgd":
        return framework.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, **options)
    return framework.optim.Adam(model.parameters(), lr=0.001, **options)


def make_eager_step(
    framework: ModuleType,
    workload: Workload,
    model: Any,
    transform: Callable[[Step], Step] = lambda step: step,
    **options: Any,
) -> Step:
    """Return ``step(x, y) -> loss``: forward and loss as `transform` makes them, backward, the optimizer."""
    loss = make_loss(framework, workload)
    optimizer = make_optimizer(framework, workload, model, **options)
    forward = transform(lambda x, y: loss(model(x), y))

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        value = forward(x, y)
        value.backward()
        optimizer.step()
        return value

    return step


def prepare_steps(
    framework: ModuleType, workload: Workload, folder: Path, make_step: Callable[[Any], Step]
) -> Prepared:
    """Return the training workload as ``make_step(model)`` runs it, with the losses of its first steps."""
    model = build_model(framework, workload, folder).train(not workload.dropout)
    x, y = convert_inputs(framework, workload)
    start = time.perf_counter()
    step = make_step(model)
    losses = [float(step(x, y).item())]
    first_call_s = time.perf_counter() - start
    losses.extend(float(step(x, y).item()) for _ in range(CHECKED_STEPS - 1))
    if workload.dropout:
        step = make_step(build_model(framework, workload, folder).train())
        step(x, y)
    return Prepared(lambda: step(x, y), np.array(losses), first_call_s)


def prepare_calls(framework: ModuleType, workload: Workload, folder: Path, transform: Callable[[Any], Any]) -> Prepared:
    """Return calls of the model as `transform` makes it, without gradients."""
    model = build_model(framework, workload, folder)
    inputs = convert_inputs(framework, workload)
    start = time.perf_counter()
    call = no_grad(framework, transform(model), *inputs)
    numbers = call().numpy()
    return Prepared(call, numbers, time.perf_counter() - start)


class LoopRun:
    """A training loop of a framework, with the weights that `folder` holds."""

    def __init__(
        self,
        framework: ModuleType,
        workload: LoopWorkload,
        folder: Path | None = None,
        wrap: Callable[[Any], Any] = lambda model: model,
        transform: Callable[[Any], Any] = lambda step: step,
    ):
        framework.manual_seed(0)
        self.loop = workload.make(framework, wrap)
        if folder is not None:
            with np.load(folder / WEIGHTS) as arrays:
                for number, module in enumerate(self.loop.modules):
                    named = {n.partition("/"): arrays[n] for n in arrays.files}
                    own = {path: framework.tensor(a) for (i, _, path), a in named.items() if i == str(number)}
                    module.load_state_dict(own)
        self.call = transform(self.loop.micro_step)
        self.batches = cycle([tuple(map(framework.tensor, batch)) for batch in self.loop.batches()])

    def weights(self) -> dict[str, Array]:
        """Return copies of the models' weights, by the model's number and their path."""
        modules = enumerate(self.loop.modules)
        return {f"{number}/{path}": a for number, module in modules for path, a in read_weights(module).items()}

    def step(self) -> float:
        """Make one update; return the loss of its last micro-batch."""
        count = self.loop.micro_batches
        for index in range(count):
            loss = self.call(*next(self.batches), *([index == count - 1] if count > 1 else []))
        self.loop.rest()
        return loss.item()


def prepare_loop(framework: ModuleType, workload: LoopWorkload, folder: Path, **options: Any) -> Prepared:
    """Return a loop that ``LoopRun`` makes with these options, and the losses of its first steps."""
    start = time.perf_counter()
    run = LoopRun(framework, workload, folder, **options)
    losses = [run.step()]
    first_call_s = time.perf_counter() - start
    losses.extend(run.step() for _ in range(CHECKED_STEPS - 1))
    return Prepared(run.step, np.array(losses), first_call_s)


def write_reference(framework: ModuleType, workload: Workload | LoopWorkload, folder: Path) -> None:
    """Write the weights for all peers, and the eager numbers to compare with, into `folder`."""
    if isinstance(workload, LoopWorkload):
        np.savez(folder / WEIGHTS, **LoopRun(framework, workload).weights())  # type: ignore[arg-type]
        np.save(folder / NUMBERS, prepare_loop(framework, workload, folder).numbers)
        return
    model = build_model(framework, workload)
    np.savez(folder / WEIGHTS, **read_weights(model))  # type: ignore[arg-type]
    if workload.train:
        numbers = prepare_steps(framework, workload, folder, partial(make_eager_step, framework, workload)).numbers
    else:
        numbers = no_grad(framework, model, *convert_inputs(framework, workload))().numpy()
    np.save(folder / NUMBERS, numbers)
