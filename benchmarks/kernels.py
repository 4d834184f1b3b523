"""Row and pointwise kernels against the copy floor and other libraries: ``python -m benchmarks.kernels``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

import graphc
from benchmarks.harness.results import Result
from benchmarks.harness.sweep import Sweep, copy_seconds, fill, limited_torch
from benchmarks.harness.timing import Call, Makers
from benchmarks.peers.onnx_calls import one_node_call
from graphc.compiler.profile import load_stamped
from graphc.compiler.stages import Stages
from graphc.runtime.profile import time_calls

ROWS, WIDTH = 4096, 1024
IMAGES = (32, 64, 56, 56)
VOCABULARY, FEATURES = 30000, 384
PARAMETERS = 10_000_000
Build = Callable[[ModuleType], Callable[..., Any]]
"""Function of a framework that returns a function of tensors or a module."""


@dataclass(frozen=True)
class Kernel:
    """One row of the table."""

    name: str
    build: Build
    draw: Callable[[], list[np.ndarray]]
    moved: int
    """Bytes that must be read and written, each once."""
    onnx: tuple[str, dict[str, Any]] | None = None
    """Op and attributes of the ONNX model of one node; ``_constants`` holds further inputs."""
    random: bool = False
    """Whether results differ from framework to framework."""
    step: Build | None = None
    """torch's replacement for ``build``, such as its own optimizer."""


def _bytes(*shapes: Sequence[int], itemsize: int = 4) -> int:
    return itemsize * sum(prod(s) for s in shapes)


def _gradient(forward: Build, inputs: int) -> Build:
    """Return a function that computes a result and its gradient for the first ``inputs`` tensors. The last tensor is
    the gradient of the result; it is absent when the result is a scalar."""

    def build(framework: ModuleType) -> Callable[..., Any]:
        function = forward(framework)

        def run(*tensors: Any) -> Any:
            rest = tensors[inputs:]
            scalar = forward is _cross_entropy or forward is _embedding_sum
            with framework.enable_grad():
                inputs_ = [t.detach().requires_grad_() for t in tensors[:inputs]]
                result = function(*inputs_, *(rest if scalar else rest[:-1]))
                gradients = framework.autograd.grad(result, inputs_, None if scalar else (rest[-1],))
            return result.detach(), *gradients

        return run

    return build


def _cross_entropy(framework: ModuleType) -> Callable[..., Any]:
    F = framework.nn.functional
    return lambda x, target: F.nll_loss(F.log_softmax(x, 1), target)


def _layer_norm(framework: ModuleType) -> Callable[..., Any]:
    return lambda x, w, b: framework.nn.functional.layer_norm(x, (WIDTH,), w, b)


def _rms_norm(framework: ModuleType) -> Callable[..., Any]:
    return lambda x, w: x * framework.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w


def _batch_norm(framework: ModuleType) -> Callable[..., Any]:
    return lambda x, w, b: framework.nn.functional.batch_norm(x, None, None, w, b, training=True)


def _gelu(framework: ModuleType) -> Callable[..., Any]:
    return framework.nn.functional.gelu


def _embedding_sum(framework: ModuleType) -> Callable[..., Any]:
    return lambda table, ids, weight: (framework.nn.functional.embedding(ids, table) * weight).sum()


def _adam(framework: ModuleType) -> Callable[..., Any]:
    """Return Adam's update as a module with its state in buffers."""

    class Adam(framework.nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("parameter", "first", "second"):
                self.register_buffer(name, framework.zeros(PARAMETERS))

        def forward(self, gradient: Any) -> Any:
            self.first.mul_(0.9).add_(gradient * 0.1)
            self.second.mul_(0.999).add_(gradient * gradient * 0.001)
            self.parameter.sub_(self.first * 0.01 / (self.second.sqrt() * 30.0 + 1e-8))
            return gradient[:1] * 1.0

    return Adam()


def _torch_adam(torch: ModuleType) -> Callable[..., Any]:
    """Return torch's own fused update."""
    parameter = torch.nn.Parameter(torch.zeros(PARAMETERS))
    optimizer = torch.optim.Adam([parameter], lr=0.001, fused=True)

    def step(gradient: Any) -> Any:
        parameter.grad = gradient
        with torch.enable_grad():
            optimizer.step()
        return gradient[:1] * 1.0

    return step


def _x(*shapes: Sequence[int]) -> Callable[[], list[np.ndarray]]:
    return lambda: [fill(shape, i) for i, shape in enumerate(shapes)]


def _with_classes() -> list[np.ndarray]:
    return [fill((ROWS, WIDTH), 0), np.random.default_rng(1).integers(0, WIDTH, ROWS)]


def _ids() -> list[np.ndarray]:
    return [fill((VOCABULARY, FEATURES), 0), np.random.default_rng(1).integers(0, VOCABULARY, (8, 512))]


def _of(name: str, function: Callable[[Any], Any], shape: Sequence[int], *more: Any, **options: Any) -> Kernel:
    """Return a kernel of one tensor, by a function that is the same in all frameworks."""
    return Kernel(name, lambda framework: function, _x(shape), *more, **options)


X, W, C, SQUARE = (ROWS, WIDTH), (WIDTH,), (IMAGES[1],), (2048, 2048)
TOKENS, HEADS = (8, 512, FEATURES), (8, 512, 12, 64)
MOVED = _bytes(X, X)
_TABLE_GRAD = _bytes(TOKENS, TOKENS, (VOCABULARY, FEATURES))


def _sum(*axes: int) -> tuple[str, dict[str, Any]]:
    return "ReduceSum", {"keepdims": 0, **({"_constants": [list(axes)]} if axes else {})}


def _softmax(framework: ModuleType) -> Callable[..., Any]:
    return lambda x: framework.nn.functional.softmax(x, -1)


def _dropout(framework: ModuleType) -> Callable[..., Any]:
    return lambda x: framework.nn.functional.dropout(x, 0.5, True)


def _embedding(framework: ModuleType) -> Callable[..., Any]:
    return lambda table, ids: framework.nn.functional.embedding(ids, table)


def _concat(framework: ModuleType) -> Callable[..., Any]:
    return lambda x, y, z: framework.cat((x, y, z), 1)


_NORM = ("LayerNormalization", {"axis": -1, "epsilon": 1e-5})
_RMS = ("RMSNormalization", {"axis": -1, "epsilon": 1e-6, "_opset": 23})
_LIST = (
    Kernel("softmax", _softmax, _x(X), MOVED, ("Softmax", {"axis": -1})),
    Kernel("log_softmax nll grad", _gradient(_cross_entropy, 1), _with_classes, MOVED),
    Kernel("layer_norm", _layer_norm, _x(X, W, W), MOVED, _NORM),
    Kernel("layer_norm grad", _gradient(_layer_norm, 3), _x(X, W, W, X), 2 * MOVED),
    Kernel("rms_norm", _rms_norm, _x(X, W), MOVED, _RMS),
    Kernel("batch_norm train", _batch_norm, _x(IMAGES, C, C), 2 * _bytes(IMAGES)),
    Kernel("batch_norm train grad", _gradient(_batch_norm, 3), _x(IMAGES, C, C, IMAGES), 4 * _bytes(IMAGES)),
    Kernel("gelu", _gelu, _x(X), MOVED, ("Gelu", {"_opset": 20})),
    Kernel("gelu grad", _gradient(_gelu, 1), _x(X, X), 2 * MOVED),
    Kernel("dropout", _dropout, _x(X), MOVED, random=True),
    Kernel("adam 10M", _adam, _x((PARAMETERS,)), 7 * _bytes((PARAMETERS,)), step=_torch_adam),
    _of("sum last", lambda x: x.sum(-1), X, _bytes(X), _sum(1)),
    _of("sum first", lambda x: x.sum(0), X, _bytes(X), _sum(0)),
    _of("sum middle", lambda x: x.sum(1), (64, 256, 256), _bytes(X), _sum(1)),
    _of("sum all", lambda x: x.sum(), X, _bytes(X), _sum()),
    _of("cumsum last", lambda x: x.cumsum(-1), X, MOVED, ("CumSum", {"_constants": [1]})),
    _of("cumsum first", lambda x: x.cumsum(0), X, MOVED, ("CumSum", {"_constants": [0]})),
    _of("argmax", lambda x: x.argmax(-1), X, _bytes(X), ("ArgMax", {"axis": -1, "keepdims": 0, "_result": "INT64"})),
    Kernel("embedding", _embedding, _ids, 2 * _bytes(TOKENS), ("Gather", {"axis": 0})),
    Kernel("embedding grad", _gradient(_embedding_sum, 1), lambda: [*_ids(), fill(TOKENS, 2)], _TABLE_GRAD),
    Kernel("concat", _concat, _x((ROWS, 256), (ROWS, 512), (ROWS, 256)), MOVED, ("Concat", {"axis": 1})),
    *(
        _of(name, lambda x, axes=axes: x.permute(*axes).contiguous(), s, 2 * _bytes(s), ("Transpose", {"perm": axes}))
        for name, axes, s in (
            ("transpose", [1, 0], SQUARE),
            ("transpose heads", [0, 2, 1, 3], HEADS),
            ("transpose images", [0, 2, 3, 1], IMAGES),
        )
    ),
)


def _own(kernel: Kernel, result: Result) -> Call:
    """Return graphc's contender, as compiled code on tensors; add the time of the kernels alone to the facts."""
    tensors = [graphc.tensor(a) for a in kernel.draw()]
    function = kernel.build(graphc)
    with graphc.no_grad():
        graph = graphc.trace(function, *tensors)
    _time_kernels(kernel, graph, function, result)
    return _without_gradients(graphc, graphc.compile(function), tensors)


def _without_gradients(framework: ModuleType, function: Callable[..., Any], tensors: Sequence[Any]) -> Call:
    """Return a call in ``no_grad``, in which gradients may be asked for, as they may not in inference mode."""

    def call() -> Any:
        with framework.no_grad():
            return function(*tensors)

    return call


def _time_kernels(kernel: Kernel, graph: Any, function: Any, result: Result) -> None:
    program = load_stamped(Stages(graph))
    state = function.state_dict() if hasattr(function, "state_dict") else {}
    arrays = {name: tensor.numpy() for name, tensor in state.items()}
    arrays["graphc.random"] = np.array([1, 2], np.int64)
    times = time_calls(program, kernel.draw(), [np.array(arrays[b.path]) for b in program.bound], 0.2, 100)
    floor = copy_seconds(kernel.moved)
    result.facts |= {
        "bytes": kernel.moved,
        "kernels": str(len(times.calls)),
        "GB/s": f"{kernel.moved / times.total / 1e9:.1f}",
        "of floor": f"{floor / times.total:.0%}",
        "floor ms": f"{1e3 * floor:.3f}",
        "kernel ms": f"{1e3 * times.total:.3f}",
    }


def _torch(kernel: Kernel, compiled: bool) -> Call:
    """Return torch's contender, eager or compiled."""
    torch = limited_torch()
    tensors = [torch.from_numpy(a) for a in kernel.draw()]
    function = (kernel.step or kernel.build)(torch)
    if compiled:
        torch._dynamo.reset()
        # NOTE: a gradient taken inside breaks the compiled graph in two; what torch compiles is the forward pass with
        # the backward pass that belongs to it, so that is what is compiled there.
        function = torch.compile(function)
    return _without_gradients(torch, function, tensors)


def _onnx(kernel: Kernel) -> Call:
    if kernel.onnx is None:
        raise ValueError("no ONNX op computes this")
    op, options = kernel.onnx
    attributes = {name: value for name, value in options.items() if not name.startswith("_")}
    constants = {f"c{i}": np.array(value, np.int64) for i, value in enumerate(options.get("_constants", ()))}
    inputs = {f"x{i}": a for i, a in enumerate(kernel.draw())}
    return one_node_call(op, attributes, inputs, constants, options.get("_opset", 18), options.get("_result", "FLOAT"))


def _makers(kernel: Kernel, result: Result) -> Makers:
    torch = {"torch": partial(_torch, kernel, False), "compile": partial(_torch, kernel, True)}
    return {"graphc": partial(_own, kernel, result), **torch, "onnxruntime": partial(_onnx, kernel)}


def _finish(kernel: Kernel, result: Result) -> None:
    if kernel.random:
        result.errors.clear()


SWEEP = Sweep(
    "benchmarks.kernels",
    __doc__,
    {kernel.name: kernel for kernel in _LIST},
    ("torch", "compile", "onnxruntime"),
    _makers,
    ("kernels", "floor ms", "kernel ms", "GB/s", "of floor"),
    _finish,
)

if __name__ == "__main__":
    sys.exit(SWEEP.main())
