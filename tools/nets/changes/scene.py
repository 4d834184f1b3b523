"""A model with its surroundings, created for each case and changed between calls, and the record of its results."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import graphc as gc
from graphc import optim

FOLDER = Path(__file__).parent
SEED = 11
"""Seed of the weights, and of random numbers in the calls."""
BATCH = 5
LEARNING_RATE = 0.05


class Scene:
    """A model, its optimizer, and the inputs of its calls."""

    def __init__(self, kind: str):
        gc.manual_seed(SEED)
        self.kind = kind
        self.world = _load(kind)
        self.model = self.world.make()
        self.make_optimizer: Callable[[Any], Any] = _plain_optimizer
        self.optimizer: Any = None
        self.scheduler: Any = None
        self.loss: Callable[..., Any] = _loss
        self.extra: tuple[Any, ...] = ()
        """Arguments of the model's calls behind the input."""
        self.change_input: Callable[[Any], Any] = lambda x: x
        self.stack = ExitStack()
        """Contexts and registrations to undo at the end of the case."""
        self.calls = 0

    @property
    def body(self) -> Any:
        """Return the part of the model that some modes compile by itself."""
        return self.model.body

    @property
    def layer(self) -> Any:
        """Return the first linear layer."""
        return self.body.first if self.kind == "rich" else self.body[0]

    @property
    def last(self) -> Any:
        """Return the last linear layer of the body."""
        return self.body.second if self.kind == "rich" else self.body[2]

    def next_input(self) -> Any:
        """Return another batch for each call, with gradients."""
        self.calls += 1
        values = np.random.default_rng([SEED, self.calls]).uniform(-1, 1, (BATCH, 4)).astype(np.float32)
        return self.change_input(gc.tensor(values, requires_grad=True))

    def target(self) -> Any:
        """Return the target of the loss."""
        return gc.tensor(np.random.default_rng([SEED, 99]).uniform(-1, 1, (BATCH, 3)).astype(np.float32))

    def prepare(self) -> None:
        """Make the optimizer of the model as it is now."""
        self.optimizer = self.make_optimizer(self.model)


def _plain_optimizer(model: Any) -> Any:
    return optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)


def _loss(output: Any, target: Any) -> Any:
    return ((output - target) ** 2).mean()


def _load(kind: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"scene_{kind}", FOLDER / f"scene_{kind}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def staged(kind: str) -> Iterator[Scene]:
    """Yield a scene; restore switches and defaults of the process afterwards."""
    dtype, grad_enabled = gc.get_default_dtype(), gc.is_grad_enabled()
    state = gc.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scene = Scene(kind)
        try:
            yield scene
        finally:
            scene.stack.close()
            gc.set_default_dtype(dtype)
            gc.set_grad_enabled(grad_enabled)
            gc.set_rng_state(state)


Arrays = dict[str, Any]
"""Arrays by name."""


def tensors_of(prefix: str, container: Any, record: Arrays) -> None:
    """Put the tensors of nested containers into ``record``."""
    if isinstance(container, dict):
        for key, value in container.items():
            tensors_of(f"{prefix}.{key}", value, record)
    elif isinstance(container, (tuple, list)):
        for number, value in enumerate(container):
            tensors_of(f"{prefix}.{number}", value, record)
    elif hasattr(container, "numpy"):
        record[prefix] = np.array(container.numpy(force=True))
    elif isinstance(container, (bool, int, float, np.ndarray)):
        record[prefix] = np.array(container)


def state_of(prefix: str, model: Any, gradients: bool, record: Arrays) -> None:
    """Record parameters and buffers of the model, with gradients on request."""
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        record[f"{prefix} {name}"] = np.array(tensor.numpy(force=True))
        if gradients and tensor.grad is not None:
            record[f"{prefix} gradient of {name}"] = np.array(tensor.grad.numpy(force=True))
