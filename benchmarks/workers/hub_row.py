"""One model of the collections, measured in a process of its own: ``hub_row KEY PEERS ROUNDS SECONDS WEIGHTS``."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from benchmarks.harness.sweep import OWN, Call, Result, arrays_of, difference, measure
from benchmarks.hub import EAGER, INDUCTOR, TOLERANCE
from benchmarks.models.hub import MODELS
from benchmarks.workers.peer import first_line

_WITHOUT_WORK = frozenset(
    (
        "alias",
        "as_strided",
        "detach",
        "expand",
        "numpy_T",
        "permute",
        "reshape",
        "select",
        "slice",
        "t",
        "transpose",
        "unsqueeze",
    )
) | {"contiguous", "empty", "empty_strided", "lift_fresh", "resolve_conj", "resolve_neg", "to", "view"}
"""Operators that look at memory in another way, or take some."""


class Counted:
    """A backend that counts the graphs which Dynamo gives it and their nodes."""

    def __init__(self, backend: str, options: Mapping[str, str]):
        self._backend = torch._dynamo.lookup_backend(backend)
        self._options = {"options": dict(options)} if options else {}
        self.graphs = self.nodes = 0

    def __call__(self, module: Any, examples: Any, **named: Any) -> Any:
        """Call the backend and count its work."""
        self.graphs += 1
        self.nodes += sum(node.op.startswith("call_") for node in module.graph.nodes)
        return self._backend(module, examples, **named, **self._options)


class Contenders:
    """The ways to call a model with one set of arguments."""

    def __init__(self, key: str, weights: str):
        """Load the model; ``weights`` is the option of graphc's backend."""
        self.weights = weights
        self.module, self.args, self.kwargs = MODELS[key].build()
        self.result = Result(key, {"first_s": {}, "weights": weights})

    def eager(self) -> Call:
        """Return PyTorch's contender, without a compiler."""
        return lambda: self.module(*self.args, **self.kwargs)

    def compiled(self, name: str) -> Call:
        """Return a backend of ``torch.compile``, called once, which is timed; its own preparations are not."""
        torch.compile(lambda x: x + 1, backend=name)(torch.ones(2))
        backend = Counted(name, {"weights": self.weights} if name == OWN else {})
        function = torch.compile(self.module, backend=backend, dynamic=False)
        start = time.perf_counter()
        function(*self.args, **self.kwargs)
        facts = self.result.facts
        facts["first_s"][name] = time.perf_counter() - start
        if name == OWN:
            count, share = on_torch(lambda: function(*self.args, **self.kwargs))
            facts |= {"graphs": backend.graphs, "nodes": {OWN: backend.nodes, "torch": count}, "torch_share": share}
        return lambda: function(*self.args, **self.kwargs)

    def makers(self, peers: Sequence[str]) -> dict[str, Callable[[], Call]]:
        """Return functions that build each contender, by name; graphc follows eager, the reference."""
        builders: dict[str, Callable[[], Call]] = {EAGER: self.eager, OWN: lambda: self.compiled(OWN)}
        if INDUCTOR in peers:
            builders[INDUCTOR] = lambda: self.compiled(INDUCTOR)
        return builders

    def compare_double(self) -> None:
        """Compare graphc and eager with eager in f64, where both differ in f32."""
        facts = self.result.facts
        own, plain = arrays_of(self._call(OWN)), arrays_of(self._call(EAGER))
        self.module.double()
        args, kwargs = double((self.args, self.kwargs))
        exact = arrays_of(self.module(*args, **kwargs))
        facts |= {"f64_error": difference(own, exact), "f64_error_eager": difference(plain, exact)}

    def _call(self, name: str) -> Any:
        if name == EAGER:
            return self.eager()()
        return torch.compile(self.module, backend=name, dynamic=False)(*self.args, **self.kwargs)


def on_torch(call: Call) -> tuple[int, float]:
    """Return how many PyTorch operators compute something in a call, and their share of its time. A profiler watches
    the call, so that operators outside of Dynamo's graphs count like those that a backend hands back."""
    call()
    with torch.autograd.profiler.profile() as watched:
        start = time.perf_counter()
        call()
        seconds = time.perf_counter() - start
    return part_of(watched.function_events, seconds)


def part_of(events: Iterable[Any], seconds: float) -> tuple[int, float]:
    """Return how many of a profiler's events are operators that compute something, without nested ones, and their share
    of ``seconds``."""
    work = [e for e in events if _is_work(e.name) and not _is_part(e)]
    return len(work), min(1.0, 1e-6 * sum(e.cpu_time_total for e in work) / seconds)


def _is_work(name: str) -> bool:
    return name.startswith("aten::") and name.removeprefix("aten::") not in _WITHOUT_WORK


def _is_part(event: Any) -> bool:
    """Return whether an event belongs to a counted operator."""
    parent = event.cpu_parent
    while parent is not None and not _is_work(parent.name):
        parent = parent.cpu_parent
    return parent is not None


def double(values: Any) -> Any:
    """Return nested arguments with every floating-point tensor in f64."""

    def convert(value: Any) -> Any:
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    return torch.utils._pytree.tree_map(convert, values)


def run(key: str, peers: Sequence[str], rounds: int, seconds: float, weights: str = "live") -> Result:
    """Return a model's row."""
    contenders = Contenders(key, weights)
    result = contenders.result
    with torch.no_grad():
        measure(result, contenders.makers(peers), rounds, seconds)
        if result.errors.get(OWN, 0.0) > TOLERANCE:
            contenders.compare_double()
    return result


def main(argv: Sequence[str], run: Callable[..., Result] = run) -> int:
    """Print the row of ``run`` as one line of JSON; output of libraries goes to stderr."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    key, peers, rounds, seconds, weights = argv
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)
        try:
            result = run(key, peers.split(","), int(rounds), float(seconds), weights)
        except Exception as error:  # whatever a library raises is the row's problem
            result = Result(key, {}, problems={OWN: first_line(error)})
        answer.write(json.dumps(vars(result)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
