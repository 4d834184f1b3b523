"""Cost of a call through torch.compile: beside Dynamo and AOTAutograd alone, and with live or frozen weights.

    python -m benchmarks.torch_calls [--threads N] [--rounds N] [--inductor]

The first table is a model of 72 numbers, whose time is that of the call: ``guards`` is a backend that returns tensors
created earlier, so that graphc's share is the difference to it; ``nothing`` is the same after AOTAutograd. The second
is ResNet-50 for one image: from a model file of graphc, with frozen weights, and with live ones, with the megabytes of
its weights and of their prepacked copies above it. Times are medians over rounds in which all take turns.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd

import graphc
from benchmarks.models.standard import build_resnet50
from graphc.interop.torch.weights import Weights

WARM_CALLS = 30
"""Calls before any is timed; after some quiet ones live weights are watched by their pages."""
Calls = Mapping[str, Callable[[], object]]


def in_turns(calls: Calls, rounds: int, repeats: int) -> dict[str, float]:
    """Return the seconds of one call of each, the median over rounds of ``repeats`` calls."""
    for call in calls.values():
        for _ in range(WARM_CALLS):
            call()
    seconds_by: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            seconds_by[name].append((time.perf_counter() - start) / repeats)
    return {name: statistics.median(times) for name, times in seconds_by.items()}


def compiled(model: Any, backend: Any, **options: Any) -> Any:
    """Return a model that torch.compile has taken afresh; several of them may be in use."""
    return torch.compile(model, backend=backend, dynamic=False, options=options or None)


def guards(module: Any, examples: Sequence[Any]) -> Any:
    """Return a backend that computes nothing, to measure Dynamo alone."""
    output = next(node for node in module.graph.nodes if node.op == "output")
    outputs = tuple([torch.zeros(tuple(v.meta["example_value"].shape)) for v in output.args[0]])
    return lambda *args: outputs


def nothing(module: Any, examples: Sequence[Any]) -> Any:
    """Return a backend that computes nothing, to measure Dynamo and AOTAutograd."""

    def compiler(graph: Any, inputs: Sequence[Any]) -> Any:
        output = next(node for node in graph.graph.nodes if node.op == "output")
        outputs = [torch.zeros(tuple(v.meta["val"].shape)) for v in output.args[0]]

        def run(args: list[Any]) -> list[Any]:
            args.clear()
            return list(outputs)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    return aot_autograd(fw_compiler=compiler, inference_compiler=compiler)(module, examples)


def small_model() -> Any:
    """Return a model whose time is that of the call."""
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval()


def tiny(rounds: int, peers: Mapping[str, Any], repeats: int = 2000) -> dict[str, float]:
    """Return seconds of a call of the small model: ``guards``, ``nothing``, ``live``, ``frozen`` and the peers by
    name."""
    x = torch.randn(2, 8)
    models = {"guards": compiled(small_model(), guards), "nothing": compiled(small_model(), nothing)}
    models |= {name: compiled(small_model(), "graphc", weights=name) for name in ("live", "frozen")}
    models |= {name: compiled(small_model(), backend) for name, backend in peers.items()}
    with torch.no_grad():
        return in_turns({name: _call(model, x) for name, model in models.items()}, rounds, repeats)


def resnet(rounds: int) -> dict[str, float]:
    """Return seconds of a call of ResNet-50: ``file``, ``frozen``, ``live``."""
    x = torch.randn(1, 3, 224, 224)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "resnet50.gcm"
        graphc.export(build_resnet50(graphc.nn).eval(), graphc.randn(1, 3, 224, 224), path=path)
        loaded, array = graphc.load(path), x.numpy()
    model = build_resnet50(torch.nn).eval()
    models = {name: compiled(model, "graphc", weights=name) for name in ("frozen", "live")}
    calls = {"file": lambda: loaded(array)} | {name: _call(m, x) for name, m in models.items()}
    with torch.no_grad():
        return in_turns(calls, rounds, 1)


def memory(model: Any, x: Any) -> tuple[int, int]:
    """Return the bytes of a model's parameters and buffers, and of their prepacked copies for inference."""
    before = _prepared()
    call = compiled(model, "graphc")
    with torch.no_grad():
        call(x)
    prepared = [n for key, n in _prepared().items() if key not in before]
    return sum(v.nbytes for v in model.state_dict().values()), sum(prepared)


def _prepared() -> dict[int, int]:
    """Return the bytes of all prepared weights, by where they lie: programs share them."""
    programs = [x for x in gc.get_objects() if type(x) is Weights]
    return {array.ctypes.data: array.nbytes for weights in programs for array in weights.prepared_arrays()}


def _call(model: Any, x: Any) -> Callable[[], object]:
    return lambda: model(x)


def report(title: str, times: Mapping[str, float], base: str, unit: float, name: str) -> str:
    """Return a table of times and their excess over the base."""
    lines = [f"{title:<12}{name:>10}{'more':>10}{'ratio':>8}"]
    for key, seconds in times.items():
        more = (seconds - times[base]) / unit
        lines.append(f"{key:<12}{seconds / unit:>10.2f}{more:>10.2f}{seconds / times[base]:>8.2f}")
    return "\n".join(lines)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Cost of a call through torch.compile.")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--inductor", action="store_true", help="time Inductor, too; needs a C++ compiler")
    parser.add_argument("--only", choices=("tiny", "resnet"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    graphc.set_num_threads(options.threads)
    peers = {"eager": "eager"} | ({"inductor": "inductor"} if options.inductor else {})
    if options.only != "resnet":
        print(report("tiny model", tiny(options.rounds, peers), "guards", 1e-6, "us"))
    if options.only != "tiny":
        own, prepared = memory(build_resnet50(torch.nn).eval(), torch.randn(1, 3, 224, 224))
        print(f"ResNet-50: {own / 1e6:.0f} MB of parameters and buffers, {prepared / 1e6:.0f} MB prepared of them")
        print(report("ResNet-50", resnet(options.rounds), "frozen", 1e-3, "ms"))


if __name__ == "__main__":
    main()
