"""A layer and settings with numbers in attributes, and comparisons, for the tests of numbers that calls give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import graphc as gc
from graphc import nn


def floats(*shape: int, seed: int = 0) -> gc.Tensor:
    return gc.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def same(found: Any, expected: Any, exact: bool = True) -> None:
    found, expected = np.asarray(found.detach()), np.asarray(expected.detach())
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if exact:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


class Scaled(nn.Module):
    """A layer whose result is scaled and shifted by numbers in attributes."""

    def __init__(self, scale: float = 0.5, shift: int = 2):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.scale, self.shift = scale, shift

    def forward(self, x: Any) -> Any:
        return self.fc(x) * self.scale + self.shift


@dataclass
class Options:
    """Settings of a function, as users keep them."""

    scale: float = 0.5
    shift: int = 2
