"""Convolutions of many networks against torch and onnxruntime, as a part of the machine's peak."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

import graphc
from benchmarks.harness.results import Result
from benchmarks.harness.sweep import Sweep, add_floor, fill, limited_torch, native_call
from benchmarks.harness.timing import Call, no_grad
from benchmarks.peers.onnx_calls import one_node_call
from graphc.compiler.freeze import freeze
from graphc.compiler.stages import Stages
from graphc.models.model_trace import snapshot


@dataclass(frozen=True)
class ConvCase:
    """One convolution of square images with a bias."""

    title: str
    batch: int
    channels: int
    side: int
    filters: int
    kernel: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1
    transposed: bool = False

    @property
    def name(self) -> str:
        """Return a name such as ``resnet 1x64x56 3x3 64``."""
        marks = (("s", self.stride), ("d", self.dilation), ("g", self.groups))
        extra = "".join(f" {mark}{value}" for mark, value in marks if value > 1) + (" t" if self.transposed else "")
        size = f"{self.batch}x{self.channels}x{self.side}"
        return f"{self.title} {size} {self.kernel}x{self.kernel} {self.filters}{extra}"

    @property
    def out_side(self) -> int:
        reach = self.dilation * (self.kernel - 1)
        if self.transposed:
            return (self.side - 1) * self.stride - 2 * self.padding + reach + 1
        return (self.side + 2 * self.padding - reach - 1) // self.stride + 1

    @property
    def taps(self) -> int:
        return self.kernel**2 * self.channels * self.filters // self.groups

    def module(self, framework: ModuleType) -> Any:
        options = dict(stride=self.stride, padding=self.padding, dilation=self.dilation, groups=self.groups)
        kind = framework.nn.ConvTranspose2d if self.transposed else framework.nn.Conv2d
        layer = kind(self.channels, self.filters, self.kernel, **options).eval()
        layer.load_state_dict({name: framework.tensor(a) for name, a in self.weights().items()})
        return layer

    def weights(self) -> dict[str, np.ndarray]:
        """Return weight and bias in the layout of both frameworks and ONNX."""
        first, second = (self.channels, self.filters) if self.transposed else (self.filters, self.channels)
        scale = np.float32((self.kernel**2 * self.channels / self.groups) ** -0.5)
        shape = (first, second // self.groups, self.kernel, self.kernel)
        return {"weight": fill(shape, 1) * scale, "bias": fill((self.filters,), 2)}

    def image(self) -> np.ndarray:
        return fill((self.batch, self.channels, self.side, self.side), 3)

    def graphc(self) -> Call:
        traced = snapshot(self.module(graphc), [graphc.tensor(self.image())])
        return native_call(Stages(freeze(traced.graph, traced.state())), [self.image()])

    def torch(self) -> Call:
        torch = limited_torch()
        return no_grad(torch, self.module(torch), torch.from_numpy(self.image()))

    def onnxruntime(self) -> Call:
        sizes = {"strides": [self.stride] * 2, "pads": [self.padding] * 4, "dilations": [self.dilation] * 2}
        op = "ConvTranspose" if self.transposed else "Conv"
        return one_node_call(op, {**sizes, "group": self.groups}, {"x": self.image()}, self.weights(), 17)


_RESNET = [
    ConvCase("stem", 1, 3, 224, 64, 7, 2, 3),
    *(
        ConvCase("resnet", 1, *numbers)  # type: ignore[arg-type]
        for numbers in (
            (64, 56, 64, 1), (64, 56, 64, 3, 1, 1), (64, 56, 256, 1), (256, 56, 64, 1), (256, 56, 128, 1),
            (128, 56, 128, 3, 2, 1), (128, 28, 128, 3, 1, 1), (128, 28, 512, 1), (512, 28, 128, 1),
            (256, 56, 512, 1, 2), (256, 14, 256, 3, 1, 1), (256, 14, 1024, 1), (1024, 14, 256, 1),
            (512, 7, 512, 3, 1, 1), (512, 7, 2048, 1), (2048, 7, 512, 1),
        )
    ),
    ConvCase("resnet", 8, 64, 56, 64, 3, 1, 1),
    ConvCase("resnet", 8, 256, 14, 256, 3, 1, 1),
]  # fmt: skip
_MOBILE = [
    ConvCase("mobile", 1, c, side, c, 3, s, 1, 1, c)
    for c, side, s in ((32, 112, 1), (96, 112, 2), (144, 56, 1), (384, 14, 1), (960, 7, 1))
] + [ConvCase("mobile", 1, *sizes) for sizes in ((3, 224, 32, 3, 2, 1), (144, 56, 24, 1), (384, 14, 64, 1))]
_UNET = [ConvCase("unet", 1, *sizes, 3, 1, 1) for sizes in ((1, 128, 32), (32, 128, 32), (64, 64, 64))]
_OTHERS = [
    ConvCase("unet", 1, 64, 32, 32, 2, 2, transposed=True),
    ConvCase("gan", 1, 128, 16, 64, 4, 2, 1, transposed=True),
    ConvCase("dilated", 1, 64, 56, 64, 3, 1, 2, 2),
    ConvCase("dilated", 1, 256, 28, 256, 3, 1, 4, 4),
    ConvCase("grouped", 1, 128, 28, 128, 3, 1, 1, 1, 32),
    ConvCase("grouped", 1, 240, 28, 240, 1, 1, 0, 1, 3),
    ConvCase("odd", 1, 13, 31, 17, 5, 1, 2),
    ConvCase("odd", 3, 7, 37, 11, 3, 2, 1),
    ConvCase("odd", 1, 33, 29, 35, 3, 1, 0),
    ConvCase("digits", 64, 1, 28, 10, 5),
    ConvCase("digits", 64, 10, 12, 20, 5),
]


def _finish(layer: ConvCase, result: Result) -> None:
    images = layer.channels * layer.side**2 + layer.filters * layer.out_side**2
    positions = layer.side if layer.transposed else layer.out_side
    nbytes = 4 * (layer.batch * images + layer.taps + layer.filters)
    add_floor(result, nbytes, 2 * layer.batch * positions**2 * layer.taps)


SWEEP = Sweep(
    "benchmarks.conv",
    __doc__,
    {layer.name: layer for layer in (*_RESNET, *_MOBILE, *_UNET, *_OTHERS)},
    ("torch", "onnxruntime"),
    columns=("GFLOP/s", "of floor", "bound"),
    finish=_finish,
)

if __name__ == "__main__":
    sys.exit(SWEEP.main())
