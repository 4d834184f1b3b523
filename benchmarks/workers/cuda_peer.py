"""Measure one peer on one workload on a GPU: ``python -m benchmarks.workers.cuda_peer PEER WORKLOAD FOLDER``.

Writes one JSON object. Times are those of the device: events around batches of calls. Calls take their inputs in turn
from several sets of random data, so that the caches are as in real use. The result is the median over all batches.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import framework as fw
from benchmarks.harness.prepared import CHECKED_STEPS, NotProvidedError
from benchmarks.workers.peer import first_line
from benchmarks.workloads import WORKLOADS, Array, Workload
from graphc.runtime.devices import device_named

BATCHES = 20
"""Least number of timed batches."""
BATCH_MS = 2.0
"""About how long one takes."""
SETS_BYTES = 128 << 20
"""Bytes that all sets of inputs have together, about: twice the L2 cache of an H200."""
MOST_SETS = 16


@dataclass(frozen=True)
class Peer:
    """A workload, ready to be called."""

    call: Callable[[int], Any]
    """One inference or training step on the set of inputs of that number, all on the device; asks for work, and does
    not wait."""
    numbers: Array
    """The output for the first set, or the losses of the first steps."""
    first_s: float
    """Seconds from the model to its first result."""
    event: Callable[[], Any]
    """An event after all work asked for so far."""
    between: Callable[[Any, Any], float]
    """Waits, then milliseconds between two events."""
    version: str


def input_sets(workload: Workload) -> list[list[Array]]:
    """Set of inputs of the same shapes, the first as all peers of all machines get it."""
    first = workload.draw_inputs()
    size = sum(a.nbytes for a in first)
    count = max(2, min(MOST_SETS, SETS_BYTES // max(size, 1)))
    return [first] + [replace(workload, name=f"{workload.name}#{i}").draw_inputs() for i in range(1, count)]


# ---- peers


def prepare_graphc(workload: Workload, folder: Path, device: str) -> Peer:
    """Prepare graphc through its public names."""
    graphc = import_module("graphc")
    machine = device_named(device)
    model = fw.build_model(graphc, workload, folder).to(device)
    sets = [[graphc.tensor(a).to(device) for a in arrays] for arrays in input_sets(workload)]
    start = time.perf_counter()
    if workload.train:
        numbers, call = _graphc_steps(graphc, workload, model, sets, device, folder)
    else:
        compiled = graphc.compile(model, device=device)

        def call(number: int) -> Any:
            with graphc.no_grad():
                return compiled(*sets[number])

        numbers = call(0).cpu().numpy()
    machine.synchronize()
    seconds = time.perf_counter() - start
    for number in range(min(4, len(sets))):  # a graph is recorded after a few calls
        call(number)
    machine.synchronize()

    def between(one: Any, two: Any) -> float:
        two.synchronize()
        return two.milliseconds_since(one)

    return Peer(call, numbers, seconds, machine.event, between, graphc.__version__)


def _graphc_steps(
    graphc: Any, workload: Workload, model: Any, sets: list[list[Any]], device: str, folder: Path
) -> tuple[Array, Callable[[int], Any]]:
    def make(train: bool) -> Any:
        own = fw.build_model(graphc, workload, folder).to(device).train(train)
        optimizer = fw.make_optimizer(graphc, workload, own)
        return graphc.compile_step(own, fw.make_loss(graphc, workload), optimizer, device=device)

    step = make(not workload.dropout)
    numbers = np.array([float(step(*sets[0]).item()) for _ in range(CHECKED_STEPS)])
    if workload.dropout:
        step = make(True)
    return numbers, lambda number: step(*sets[number])


def prepare_torch(workload: Workload, folder: Path, device: str, compiled: bool) -> Peer:
    """Prepare PyTorch, eager or with ``torch.compile(mode="max-autotune")``, which replays CUDA graphs."""
    torch = import_module("torch")
    if not torch.cuda.is_available():
        raise NotProvidedError("torch sees no GPU")
    torch.set_float32_matmul_precision("highest")
    sets = [[torch.tensor(a).to(device) for a in arrays] for arrays in input_sets(workload)]
    transform = (lambda f: torch.compile(f, mode="max-autotune")) if compiled else (lambda f: f)
    model = fw.build_model(torch, workload, folder).to(device)
    start = time.perf_counter()
    if workload.train:
        model.train(not workload.dropout)
        step = fw.make_eager_step(torch, workload, model, transform, **({"fused": True}))
        numbers = np.array([float(step(*sets[0]).item()) for _ in range(CHECKED_STEPS)])
        if workload.dropout:
            step = fw.make_eager_step(torch, workload, model.train(), transform, **({"fused": True}))

        def call(number: int) -> Any:
            return step(*sets[number])
    else:
        run = transform(model)

        def call(number: int) -> Any:
            with torch.inference_mode():
                return run(*sets[number])

        numbers = call(0).float().cpu().numpy()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start

    def event() -> Any:
        recorded = torch.cuda.Event(enable_timing=True)
        recorded.record()
        return recorded

    def between(one: Any, two: Any) -> float:
        two.synchronize()
        return one.elapsed_time(two)

    return Peer(call, numbers, seconds, event, between, torch.__version__)


def prepare_jax(workload: Workload, folder: Path, device: str) -> Peer:
    """Prepare JAX with ``jax.jit`` on its first GPU; the host's clock times it, as it has no events."""
    del device
    jax, jax_jit = import_module("jax"), import_module("benchmarks.peers.jax_jit")
    if jax.default_backend() != "gpu":
        raise NotProvidedError(f"jax runs on {jax.default_backend()}")
    jax.config.update("jax_default_matmul_precision", "highest")
    prepared = jax_jit.prepare(workload, folder, 1)

    def call(number: int) -> Any:
        del number
        return prepared.call()

    return Peer(
        call, prepared.numbers, prepared.first_call_s, time.perf_counter, lambda a, b: 1e3 * (b - a), jax.__version__
    )


PEERS: dict[str, Callable[[Workload, Path, str], Peer]] = {
    "graphc": prepare_graphc,
    "torch": lambda w, f, d: prepare_torch(w, f, d, False),
    "torch.compile": lambda w, f, d: prepare_torch(w, f, d, True),
    "jax": prepare_jax,
}


# ---- timing


def measure(peer: Peer, sets: int, seconds: float, batches: int = BATCHES) -> dict[str, Any]:
    """Return the microseconds of one call: median and quartiles of at least ``batches`` batches."""
    end = time.monotonic() + seconds
    size, done = 1, 0
    once = _batch(peer, 1, 0, sets)
    size = max(1, min(1000, int(BATCH_MS / max(once, 1e-4))))
    times: list[float] = []
    while len(times) < batches or time.monotonic() < end:
        times.append(1e3 * _batch(peer, size, done, sets) / size)
        done += size
        if time.monotonic() > end + 3 * seconds + 5:
            break
    quarters = statistics.quantiles(times, n=4) if len(times) > 1 else [times[0]] * 3
    return {"us": statistics.median(times), "quarters": quarters, "batches": len(times), "calls": size * len(times)}


def _batch(peer: Peer, size: int, first: int, sets: int) -> float:
    begin = peer.event()
    for i in range(size):
        peer.call((first + i) % sets)
    return peer.between(begin, peer.event())


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print a JSON object, in which ``error`` is the reason for missing times; return the exit status."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.workers.cuda_peer", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("workload", choices=WORKLOADS, metavar="WORKLOAD")
    parser.add_argument("folder", type=Path, help="folder with the weights, to which the results are written")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args(argv)
    workload = WORKLOADS[options.workload]
    answer: dict[str, Any] = {"peer": options.peer, "workload": options.workload}
    try:
        peer = PEERS[options.peer](workload, options.folder, options.device)
        np.save(options.folder / f"{options.peer}.npy", peer.numbers)
        answer |= {"version": peer.version, "first_s": peer.first_s}
        batches = BATCHES if options.device != "cuda-emu" else 2
        answer |= measure(peer, len(input_sets(workload)), options.seconds, batches)
    except NotProvidedError as reason:
        answer["absent"] = str(reason)
    except ImportError as reason:
        answer["absent"] = f"not installed: {reason}"
    except Exception as error:  # whatever a peer raises is a result of the measurement
        answer["error"] = f"{type(error).__name__}: {first_line(error)}"
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
