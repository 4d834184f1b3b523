"""Records of nets that can be streamed, with the shapes of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from graphc.streams.stream import Stream

TIME = -1
"""The dimension of time in a shape."""


@dataclass(frozen=True)
class Case:
    """A net, the shapes of its inputs, and arguments of ``gc.stream``."""

    model: Any
    shapes: tuple[tuple[int, ...], ...]
    options: dict[str, Any] = field(default_factory=dict)
    symbols: int = 0
    """The inputs are integers below this number; 0 for floats."""
    length: int = 64
    """Samples of the example."""

    def inputs(self, length: int, seed: int = 0) -> list[np.ndarray]:
        """Return inputs of ``length`` samples."""
        rng = np.random.default_rng(seed)
        shapes = [[length if n == TIME else n for n in shape] for shape in self.shapes]
        if self.symbols:
            return [rng.integers(0, self.symbols, shape) for shape in shapes]
        return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]

    def stream(self, step: int | None = None) -> Stream:
        """Make the stream of the net."""
        examples = map(gc.from_numpy, self.inputs(self.length))
        axes = {shape.index(TIME) for shape in self.shapes if TIME in shape}
        if len(axes) == 1 and all(TIME in shape for shape in self.shapes):
            return gc.stream(self.model, *examples, dim=axes.pop(), step=step, **self.options)
        time = gc.Dim("time")
        dims = {i: tuple(time if n == TIME else None for n in shape) for i, shape in enumerate(self.shapes)}
        return gc.stream(self.model, *examples, dims=dims, step=step, **self.options)


NETS: dict[str, Callable[[], Case]] = {}


def net(build: Callable[[], Case]) -> Callable[[], Case]:
    """Register a function that makes a net; it begins with the same random numbers each time."""

    def seeded() -> Case:
        gc.manual_seed(7)
        case = build()
        if isinstance(case.model, nn.Module):
            case.model.eval()
        return case

    NETS[build.__name__] = seeded
    return seeded


class Lambda(nn.Module):
    """A function with modules that it uses."""

    def __init__(self, forward: Callable[..., Any], **modules: Any):
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)
        self.function = forward

    def forward(self, *inputs: Any) -> Any:
        return self.function(self, *inputs)


class CausalConv(nn.Module):
    """A convolution of present and earlier samples."""

    def __init__(self, inputs: int, outputs: int, kernel: int, dilation: int = 1, groups: int = 1, stride: int = 1):
        super().__init__()
        self.past = (kernel - 1) * dilation + 1 - stride
        self.conv = nn.Conv1d(inputs, outputs, kernel, dilation=dilation, groups=groups, stride=stride)

    def forward(self, x: Any) -> Any:
        return self.conv(F.pad(x, (self.past, 0)))


WAVE = ((1, 2, TIME),)
"""Two channels."""
FRAMES = ((2, TIME, 4),)
"""Batch of two, four features."""
IMAGE = ((1, 1, TIME, 8),)
"""A spectrogram of 8 bands."""
