"""Convolutions of many networks against torch and onnxruntime, as a part of the machine's peak."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

import graphc
from benchmarks.harness.sweep import (
    Call,
    Result,
    copy_seconds,
    fill,
    find_library,
    floor_seconds,
    make_onnx_session,
    measure,
    native_call,
    parse,
    report,
    restart_on_one_thread,
    tell,
    torch_on_one_thread,
)
from graphc.compiler.freeze import freeze
from graphc.compiler.stages import Stages
from graphc.models.model_trace import snapshot

PEERS = ("torch", "onnxruntime")


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
        return (
            f"{self.title} {self.batch}x{self.channels}x{self.side} {self.kernel}x{self.kernel} {self.filters}{extra}"
        )

    @property
    def out_side(self) -> int:
        """Return height and width of the result."""
        reach = self.dilation * (self.kernel - 1)
        if self.transposed:
            return (self.side - 1) * self.stride - 2 * self.padding + reach + 1
        return (self.side + 2 * self.padding - reach - 1) // self.stride + 1

    @property
    def flops(self) -> int:
        """Return multiplications and additions."""
        positions = self.side if self.transposed else self.out_side
        taps = self.kernel**2 * self.channels * self.filters // self.groups
        return 2 * self.batch * positions**2 * taps

    @property
    def nbytes(self) -> int:
        """Return the bytes of image, weights and result, each once."""
        weights = self.kernel**2 * self.channels * self.filters // self.groups + self.filters
        return 4 * (self.batch * (self.channels * self.side**2 + self.filters * self.out_side**2) + weights)

    def module(self, nn: ModuleType) -> Any:
        """Return the layer of a framework."""
        options = dict(stride=self.stride, padding=self.padding, dilation=self.dilation, groups=self.groups)
        kind = nn.ConvTranspose2d if self.transposed else nn.Conv2d
        return kind(self.channels, self.filters, self.kernel, **options)

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Return weight and bias in the layout of both frameworks and ONNX."""
        first, second = (self.channels, self.filters) if self.transposed else (self.filters, self.channels)
        scale = (self.kernel**2 * self.channels / self.groups) ** -0.5
        shape = (first, second // self.groups, self.kernel, self.kernel)
        return fill(shape, 1) * np.float32(scale), fill((self.filters,), 2)

    def image(self) -> np.ndarray:
        """Return a random batch of images."""
        return fill((self.batch, self.channels, self.side, self.side), 3)


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
] + [
    ConvCase("mobile", 1, 3, 224, 32, 3, 2, 1),
    ConvCase("mobile", 1, 144, 56, 24, 1),
    ConvCase("mobile", 1, 384, 14, 64, 1),
]
_UNET = [
    ConvCase("unet", 1, 1, 128, 32, 3, 1, 1),
    ConvCase("unet", 1, 32, 128, 32, 3, 1, 1),
    ConvCase("unet", 1, 64, 64, 64, 3, 1, 1),
    ConvCase("unet", 1, 64, 32, 32, 2, 2, transposed=True),
    ConvCase("gan", 1, 128, 16, 64, 4, 2, 1, transposed=True),
]
_OTHERS = [
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
CASES = {layer.name: layer for layer in (*_RESNET, *_MOBILE, *_UNET, *_OTHERS)}


def own(layer: ConvCase) -> Callable[[], Call]:
    """Return graphc's contender, as a loaded model."""

    def make() -> Call:
        module = layer.module(graphc.nn).eval()
        weight, bias = layer.weights()
        module.load_state_dict({"weight": graphc.tensor(weight), "bias": graphc.tensor(bias)})
        traced = snapshot(module, [graphc.tensor(layer.image())])
        return native_call(Stages(freeze(traced.graph, traced.state())), [layer.image()])

    return make


def torch_eager(layer: ConvCase) -> Call:
    """Return torch's contender, in inference mode."""
    torch = torch_on_one_thread()
    if torch is None:
        raise ImportError("torch is not installed")
    module = layer.module(torch.nn).eval()
    weight, bias = layer.weights()
    module.load_state_dict({"weight": torch.from_numpy(weight), "bias": torch.from_numpy(bias)})
    x = torch.from_numpy(layer.image())

    def call() -> Any:
        with torch.inference_mode():
            return module(x)

    return call


def onnx_session(layer: ConvCase) -> Call:
    """Return onnxruntime's contender, on a model of one node."""
    onnxruntime, onnx = find_library("onnxruntime"), find_library("onnx")
    if onnxruntime is None or onnx is None:
        raise ImportError("onnx or onnxruntime is not installed")
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    weight, bias = layer.weights()
    node = helper.make_node(
        "ConvTranspose" if layer.transposed else "Conv",
        ["x", "w", "b"],
        ["y"],
        strides=[layer.stride] * 2,
        pads=[layer.padding] * 4,
        dilations=[layer.dilation] * 2,
        group=layer.groups,
    )
    constants = [onnx.numpy_helper.from_array(a, n) for a, n in ((weight, "w"), (bias, "b"))]
    x = helper.make_tensor_value_info("x", float32, layer.image().shape)
    y = helper.make_tensor_value_info("y", float32, None)
    graph = helper.make_graph([node], "g", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = make_onnx_session(onnxruntime, model.SerializeToString())
    feeds = {"x": layer.image()}
    return lambda: session.run(None, feeds)


def run_case(layer: ConvCase, peers: Sequence[str], rounds: int, seconds: float) -> Result:
    """Return one layer, measured."""
    result = Result(layer.name, {"flops": layer.flops, "bytes": layer.nbytes})
    contenders = {"torch": lambda: torch_eager(layer), "onnxruntime": lambda: onnx_session(layer)}
    measure(result, {"graphc": own(layer), **{p: contenders[p] for p in peers}}, rounds, seconds)
    ms = result.ms("graphc")
    if ms is not None:
        floor = floor_seconds(layer.nbytes, layer.flops)
        bound = "memory" if copy_seconds(layer.nbytes) >= floor else "peak"
        speed = f"{layer.flops / ms / 1e6:.1f}"
        result.facts |= {"GFLOP/s": speed, "of floor": f"{1e3 * floor / ms:.0%}", "bound": bound}
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = parse(argv, __doc__ or "", list(CASES), PEERS)
    results = []
    for name in options.cases:
        tell(name)
        results.append(run_case(CASES[name], options.peers, options.rounds, options.seconds))
    report(options, results, ("GFLOP/s", "of floor", "bound"))
    return 0


if __name__ == "__main__":
    restart_on_one_thread("benchmarks.conv")
    sys.exit(main())
