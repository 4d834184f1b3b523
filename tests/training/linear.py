"""A step in Python and data for it, for the tests of the loop."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from graphc.base.errors import ArtifactError
from graphc.cli.trainer.conversion import Scaling
from graphc.cli.trainer.named_arrays import NamedArrays
from graphc.files.manifest import TensorSpec

INPUTS = (TensorSpec("x", "f32", (4, 3)), TensorSpec("y", "f32", (4,)))


def data(count: int = 20) -> NamedArrays:
    """Points of a plane."""
    x = np.random.default_rng(0).standard_normal((count, 3)).astype(np.float32)
    found = NamedArrays({"x": x, "y": x @ np.array([1, -2, 3], np.float32)}, "points.npz")
    assert not found.fit(INPUTS, Scaling())
    return found


class Linear:
    """Least squares by gradient descent with momentum, and with noise that its own random state makes."""

    names = ("loss", "error")

    def __init__(self, rate: float = 0.05):
        self.rate = rate
        self.weight = np.zeros(3, np.float32)
        self.speed = np.zeros(3, np.float32)
        self.random = np.array([7, 0], np.int64)

    def __call__(self, batch: Mapping[str, np.ndarray]) -> tuple[float, ...]:
        self.random[1] += 1
        noise = np.random.default_rng(self.random.tolist()).standard_normal(3).astype(np.float32)
        left = batch["x"] @ self.weight - batch["y"]
        self.speed = 0.5 * self.speed + batch["x"].T @ left / len(left) + 0.01 * noise
        self.weight = self.weight - self.rate * self.speed
        return float((left**2).mean()), float(np.abs(left).max())

    def state(self) -> dict[str, np.ndarray]:
        return {"weight": self.weight.copy(), "speed": self.speed.copy(), "graphc.random": self.random.copy()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        if set(state) != {"weight", "speed", "graphc.random"}:
            raise ArtifactError(f"the state has {', '.join(state)}")
        self.weight, self.speed = state["weight"].copy(), state["speed"].copy()
        self.random = state["graphc.random"].copy()
