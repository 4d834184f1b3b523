"""Cost of a call through torch.compile: beside Dynamo and AOTAutograd alone, and with live or frozen weights.

The case ``tiny`` is a model of 72 numbers, whose time is that of the call: ``guards`` is a backend that returns tensors
created earlier, so that graphc's share is the difference to it; ``nothing`` is the same after AOTAutograd. ``resnet``
is ResNet-50 for one image: from a model file of graphc, with frozen weights, and with live ones, with the megabytes of
its weights and of their prepacked copies. Inductor needs a C++ compiler.
"""

from __future__ import annotations

import gc
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd

import graphc
from benchmarks.harness.results import Result
from benchmarks.harness.sweep import Sweep, limited_torch
from benchmarks.harness.timing import Call, Makers
from benchmarks.models.standard import build_resnet50
from graphc.interop.torch.weights import Weights


def compiled(model: Any, backend: Any, **options: Any) -> Any:
    """Return a model that torch.compile has taken afresh; several of them may be in use."""
    return torch.compile(model, backend=backend, dynamic=False, options=options or None)


def _outputs(module: Any, key: str) -> tuple[Any, ...]:
    output = next(node for node in module.graph.nodes if node.op == "output")
    return tuple([torch.zeros(tuple(v.meta[key].shape)) for v in output.args[0]])


def guards(module: Any, examples: Sequence[Any]) -> Any:
    """Return a backend that computes nothing, to measure Dynamo alone."""
    outputs = _outputs(module, "example_value")
    return lambda *args: outputs


def nothing(module: Any, examples: Sequence[Any]) -> Any:
    """Return a backend that computes nothing, to measure Dynamo and AOTAutograd."""

    def compiler(graph: Any, inputs: Sequence[Any]) -> Any:
        outputs = _outputs(graph, "val")

        def run(args: list[Any]) -> list[Any]:
            args.clear()
            return list(outputs)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    return aot_autograd(fw_compiler=compiler, inference_compiler=compiler)(module, examples)


_BACKENDS: dict[str, tuple[Any, dict[str, str]]] = {
    "guards": (guards, {}),
    "nothing": (nothing, {}),
    "live": ("graphc", {"weights": "live"}),
    "frozen": ("graphc", {"weights": "frozen"}),
    "eager": ("eager", {}),
    "inductor": ("inductor", {}),
}


def tiny(result: Result) -> Makers:
    """Return the contenders of a small model, whose time is that of the call."""
    x = torch.randn(2, 8)

    def make(name: str) -> Call:
        backend, options = _BACKENDS[name]
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval()
        return partial(compiled(model, backend, **options), x)

    return {name: partial(make, name) for name in _BACKENDS}


def resnet(result: Result) -> Makers:
    x = torch.randn(1, 3, 224, 224)
    model = build_resnet50(torch.nn).eval()
    own, prepared = memory(model, x)
    result.facts["MB of weights, prepared"] = f"{own / 1e6:.0f}, {prepared / 1e6:.0f}"

    def load() -> Call:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "resnet50.gcm"
            graphc.export(build_resnet50(graphc.nn).eval(), graphc.randn(1, 3, 224, 224), path=path)
            return partial(graphc.load(path), x.numpy())

    names = ("frozen", "live")
    return {"file": load, **{n: (lambda n=n: partial(compiled(model, "graphc", weights=n), x)) for n in names}}


def memory(model: Any, x: Any) -> tuple[int, int]:
    """Return the bytes of a model's parameters and buffers, and of their prepacked copies for inference."""
    before = _prepared()
    with torch.no_grad():
        compiled(model, "graphc")(x)
    prepared = [n for key, n in _prepared().items() if key not in before]
    return sum(v.nbytes for v in model.state_dict().values()), sum(prepared)


def _prepared() -> dict[int, int]:
    """Return the bytes of all prepared weights, by where they lie: programs share them."""
    bound = [b for x in gc.get_objects() if type(x) is Weights for b in x._bound.values()]
    arrays = [packed.array for b in bound for packed in b.prepared]
    return {array.ctypes.data: array.nbytes for array in arrays}


def _makers(makers: Callable[[Result], Makers], result: Result) -> Makers:
    limited_torch().set_grad_enabled(False)
    return makers(result)


def _finish(makers: Callable[[Result], Makers], result: Result) -> None:
    """Say how much longer live weights take than the base of the case."""
    base = "guards" if makers is tiny else "frozen"
    live, least = result.ms("live"), result.ms(base)
    if live and least:
        result.facts["live - base us"] = f"{1000 * (live - least):.2f}"


SWEEP = Sweep(
    "benchmarks.torch_calls",
    __doc__,
    {"tiny": tiny, "resnet": resnet},
    ("eager", "inductor"),
    _makers,
    ("MB of weights, prepared", "live - base us"),
    _finish,
    compare=False,  # some backends compute nothing
    own=("guards", "nothing", "file", "live", "frozen"),
    rounds=15,
    seconds=0.05,
    warm=30,
    unit_ms=1e-3,
)

if __name__ == "__main__":
    sys.exit(SWEEP.main())
