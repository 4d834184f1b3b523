"""Row and pointwise kernels against the copy floor and other libraries: ``python -m benchmarks.kernels``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

import graphc
from benchmarks.harness.sweep import (
    OWN,
    Call,
    Result,
    copy_seconds,
    fill,
    find_library,
    make_onnx_session,
    measure,
    parse,
    report,
    restart_on_one_thread,
    tell,
    torch_on_one_thread,
)
from graphc.compiler.profile import load_stamped
from graphc.compiler.stages import Stages
from graphc.runtime.profile import time_calls

PEERS = ("torch", "compile", "onnxruntime")
ROWS, WIDTH = 4096, 1024
IMAGES = (32, 64, 56, 56)
VOCABULARY, FEATURES = 30000, 384
PARAMETERS = 10_000_000


@dataclass(frozen=True)
class Kernel:
    """One row of the table."""

    name: str
    build: Callable[[ModuleType], Callable[..., Any]]
    """Function of a framework that returns a function of tensors or a module."""
    draw: Callable[[], list[np.ndarray]]
    moved: int
    """Bytes that must be read and written, each once."""
    onnx: tuple[str, dict[str, Any]] | None = None
    """Op and attributes of the ONNX model of one node; ``_constants`` holds further inputs."""
    random: bool = False
    """Whether results differ from framework to framework."""
    step: Callable[[ModuleType], Callable[..., Any]] | None = None
    """torch's replacement for ``build``, such as its own optimizer."""


def _bytes(*shapes: Sequence[int], itemsize: int = 4) -> int:
    return itemsize * sum(prod(s) for s in shapes)


def _gradient(
    forward: Callable[[ModuleType], Callable[..., Any]], inputs: int
) -> Callable[[ModuleType], Callable[..., Any]]:
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


def _functional(name: str, *arguments: Any, **options: Any) -> Callable[[ModuleType], Callable[..., Any]]:
    return lambda framework: lambda x: getattr(framework.nn.functional, name)(x, *arguments, **options)


def _method(name: str, *arguments: Any, **options: Any) -> Callable[[ModuleType], Callable[..., Any]]:
    return lambda framework: lambda x: getattr(x, name)(*arguments, **options)


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


def _embedding(framework: ModuleType) -> Callable[..., Any]:
    return lambda table, ids: framework.nn.functional.embedding(ids, table)


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


X, W, C = (ROWS, WIDTH), (WIDTH,), (IMAGES[1],)
TOKENS = (8, 512, FEATURES)
HEADS = (8, 512, 12, 64)
_LIST = (
    Kernel("softmax", _functional("softmax", -1), _x(X), _bytes(X, X), ("Softmax", {"axis": -1})),
    Kernel("log_softmax nll grad", _gradient(_cross_entropy, 1), _with_classes, _bytes(X, X)),
    Kernel("layer_norm", _layer_norm, _x(X, W, W), _bytes(X, X), ("LayerNormalization", {"axis": -1, "epsilon": 1e-5})),
    Kernel("layer_norm grad", _gradient(_layer_norm, 3), _x(X, W, W, X), _bytes(X, X, X, X)),
    Kernel(
        "rms_norm", _rms_norm, _x(X, W), _bytes(X, X), ("RMSNormalization", {"axis": -1, "epsilon": 1e-6, "_opset": 23})
    ),
    Kernel("batch_norm train", _batch_norm, _x(IMAGES, C, C), _bytes(IMAGES, IMAGES)),
    Kernel(
        "batch_norm train grad",
        _gradient(_batch_norm, 3),
        _x(IMAGES, C, C, IMAGES),
        _bytes(IMAGES, IMAGES, IMAGES, IMAGES),
    ),
    Kernel("gelu", _gelu, _x(X), _bytes(X, X), ("Gelu", {"_opset": 20})),
    Kernel("gelu grad", _gradient(_gelu, 1), _x(X, X), _bytes(X, X, X, X)),
    Kernel("dropout", _functional("dropout", 0.5, True), _x(X), _bytes(X, X), random=True),
    Kernel("adam 10M", _adam, _x((PARAMETERS,)), 7 * _bytes((PARAMETERS,)), step=_torch_adam),
    Kernel("sum last", _method("sum", -1), _x(X), _bytes(X), ("ReduceSum", {"keepdims": 0, "_constants": [[1]]})),
    Kernel("sum first", _method("sum", 0), _x(X), _bytes(X), ("ReduceSum", {"keepdims": 0, "_constants": [[0]]})),
    Kernel(
        "sum middle",
        _method("sum", 1),
        _x((64, 256, 256)),
        _bytes(X),
        ("ReduceSum", {"keepdims": 0, "_constants": [[1]]}),
    ),
    Kernel("sum all", _method("sum"), _x(X), _bytes(X), ("ReduceSum", {"keepdims": 0})),
    Kernel("cumsum last", _method("cumsum", -1), _x(X), _bytes(X, X), ("CumSum", {"_constants": [1]})),
    Kernel("cumsum first", _method("cumsum", 0), _x(X), _bytes(X, X), ("CumSum", {"_constants": [0]})),
    Kernel(
        "argmax", _method("argmax", -1), _x(X), _bytes(X), ("ArgMax", {"axis": -1, "keepdims": 0, "_result": "i64"})
    ),
    Kernel("embedding", _embedding, _ids, _bytes(TOKENS, TOKENS), ("Gather", {"axis": 0})),
    Kernel(
        "embedding grad",
        _gradient(_embedding_sum, 1),
        lambda: [*_ids(), fill(TOKENS, 2)],
        _bytes(TOKENS, TOKENS, (VOCABULARY, FEATURES)),
    ),
    Kernel(
        "concat",
        lambda framework: lambda x, y, z: framework.cat((x, y, z), 1),
        _x((ROWS, 256), (ROWS, 512), (ROWS, 256)),
        _bytes(X, X),
        ("Concat", {"axis": 1}),
    ),
    Kernel(
        "transpose",
        lambda framework: lambda x: x.t().contiguous(),
        _x((2048, 2048)),
        2 * _bytes((2048, 2048)),
        ("Transpose", {"perm": [1, 0]}),
    ),
    Kernel(
        "transpose heads",
        lambda framework: lambda x: x.permute(0, 2, 1, 3).contiguous(),
        _x(HEADS),
        2 * _bytes(HEADS),
        ("Transpose", {"perm": [0, 2, 1, 3]}),
    ),
    Kernel(
        "transpose images",
        lambda framework: lambda x: x.permute(0, 2, 3, 1).contiguous(),
        _x(IMAGES),
        2 * _bytes(IMAGES),
        ("Transpose", {"perm": [0, 2, 3, 1]}),
    ),
)
CASES = {kernel.name: kernel for kernel in _LIST}


def own(kernel: Kernel, result: Result) -> Callable[[], Call]:
    """Return graphc's contender, as compiled code on tensors; add the time of the kernels alone to the result's
    facts."""

    def make() -> Call:
        tensors = [graphc.tensor(a) for a in kernel.draw()]
        function = kernel.build(graphc)
        with graphc.no_grad():
            graph = graphc.trace(function, *tensors)
        _time_kernels(kernel, graph, function, result)
        compiled = graphc.compile(function)

        def call() -> Any:
            with graphc.no_grad():
                return compiled(*tensors)

        return call

    return make


def _time_kernels(kernel: Kernel, graph: Any, function: Any, result: Result) -> None:
    stages = Stages(graph)
    program = load_stamped(stages)
    state = function.state_dict() if hasattr(function, "state_dict") else {}
    arrays = {name: tensor.numpy() for name, tensor in state.items()}
    arrays["graphc.random"] = np.array([1, 2], np.int64)
    times = time_calls(program, kernel.draw(), [np.array(arrays[b.path]) for b in program.bound], 0.2, 100)
    floor = copy_seconds(kernel.moved)
    result.facts |= {
        "kernels": len(times.calls),
        "GB/s": f"{kernel.moved / times.total / 1e9:.1f}",
        "of floor": f"{floor / times.total:.0%}",
        "floor ms": f"{1e3 * floor:.3f}",
        "kernel ms": f"{1e3 * times.total:.3f}",
    }


def torch_call(kernel: Kernel, compiled: bool) -> Call:
    """Return torch's contender, eager or compiled."""
    torch = torch_on_one_thread()
    if torch is None:
        raise ImportError("torch is not installed")
    tensors = [torch.from_numpy(a) for a in kernel.draw()]
    function = (kernel.step or kernel.build)(torch)
    if compiled:
        torch._dynamo.reset()
        # NOTE: a gradient taken inside breaks the compiled graph in two; what torch compiles is the forward pass with
        # the backward pass that belongs to it, so that is what is compiled there.
        function = torch.compile(function)

    def call() -> Any:
        with torch.no_grad():
            return function(*tensors)

    return call


def onnx_call(kernel: Kernel) -> Call:
    """Return onnxruntime's contender, on a model of one node."""
    onnxruntime, onnx = find_library("onnxruntime"), find_library("onnx")
    if onnxruntime is None or onnx is None:
        raise ImportError("onnx or onnxruntime is not installed")
    if kernel.onnx is None:
        raise ValueError("no ONNX op computes this")
    op, options = kernel.onnx
    helper, types = onnx.helper, onnx.TensorProto
    attributes = {name: value for name, value in options.items() if not name.startswith("_")}
    arrays = kernel.draw()
    constants = [
        onnx.numpy_helper.from_array(np.array(value, np.int64), f"c{i}")
        for i, value in enumerate(options.get("_constants", ()))
    ]
    names = [f"x{i}" for i in range(len(arrays))]
    node = helper.make_node(op, [*names, *(c.name for c in constants)], ["y"], **attributes)
    kinds = {np.dtype(np.float32): types.FLOAT, np.dtype(np.int64): types.INT64}
    inputs = [helper.make_tensor_value_info(n, kinds[a.dtype], a.shape) for n, a in zip(names, arrays, strict=True)]
    kind = types.INT64 if options.get("_result") == "i64" else types.FLOAT
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", kind, None)], constants)
    opset = helper.make_opsetid("", options.get("_opset", 18))
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    session = make_onnx_session(onnxruntime, model.SerializeToString())
    feeds = dict(zip(names, arrays, strict=True))
    return lambda: session.run(None, feeds)


def run_case(kernel: Kernel, peers: Sequence[str], rounds: int, seconds: float) -> Result:
    """Return one kernel, measured."""
    result = Result(kernel.name, {"bytes": kernel.moved})
    contenders: dict[str, Callable[[], Call]] = {
        "torch": lambda: torch_call(kernel, compiled=False),
        "compile": lambda: torch_call(kernel, compiled=True),
        "onnxruntime": lambda: onnx_call(kernel),
    }
    measure(result, {OWN: own(kernel, result), **{p: contenders[p] for p in peers}}, rounds, seconds)
    if kernel.random:
        result.errors.clear()
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = parse(argv, __doc__ or "", list(CASES), PEERS)
    results = []
    for name in options.cases:
        tell(name)
        results.append(run_case(CASES[name], options.peers, options.rounds, options.seconds))
    report(options, results, ("kernels", "floor ms", "kernel ms", "GB/s", "of floor"))
    return 0


if __name__ == "__main__":
    restart_on_one_thread("benchmarks.kernels")
    sys.exit(main())
