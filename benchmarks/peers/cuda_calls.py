"""Peers on a GPU, each a function that prepares a workload there; called by ``benchmarks.cuda`` in child processes.

Times are those of the device: events around batches of calls. Calls take their inputs in turn from several sets of
random data, so that the caches are as in real use. The result is the median over all batches.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import framework as fw
from benchmarks.harness.prepared import CHECKED_STEPS, NotProvidedError
from benchmarks.harness.timing import no_grad
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


def _prepare(
    framework: Any,
    workload: Workload,
    folder: Path,
    device: str,
    transform: Callable[[Any], Any],
    make_step: Callable[[Any], Any],
    clock: tuple[Callable[[], Any], Callable[[], Any], Callable[[Any, Any], float]],
) -> Peer:
    """Prepare a framework: a model as ``transform`` makes it, or a step that ``make_step`` makes. ``clock`` waits for
    the device, makes events, and measures between them."""
    synchronize, event, between = clock
    sets = [[framework.tensor(a).to(device) for a in arrays] for arrays in input_sets(workload)]
    model = fw.build_model(framework, workload, folder).to(device)
    start = time.perf_counter()
    if workload.train:
        step = make_step(model.train(not workload.dropout))
        numbers = np.array([float(step(*sets[0]).item()) for _ in range(CHECKED_STEPS)])
        if workload.dropout:
            step = make_step(fw.build_model(framework, workload, folder).to(device).train())

        def call(number: int) -> Any:
            return step(*sets[number])
    else:
        run = transform(model)
        calls = [no_grad(framework, run, *inputs) for inputs in sets]
        numbers = calls[0]().float().cpu().numpy()

        def call(number: int) -> Any:
            return calls[number]()

    synchronize()
    seconds = time.perf_counter() - start
    for number in range(min(4, len(sets))):  # a graph is recorded after a few calls
        call(number)
    synchronize()
    return Peer(call, numbers, seconds, event, between, framework.__version__)


def prepare_graphc(workload: Workload, folder: Path, device: str) -> Peer:
    """Prepare graphc through its public names."""
    graphc: Any = import_module("graphc")
    machine = device_named(device)

    def make_step(model: Any) -> Any:
        optimizer = fw.make_optimizer(graphc, workload, model)
        return graphc.compile_step(model, fw.make_loss(graphc, workload), optimizer, device=device)

    def between(one: Any, two: Any) -> float:
        two.synchronize()
        return two.milliseconds_since(one)

    clock = machine.synchronize, machine.event, between
    return _prepare(graphc, workload, folder, device, partial(graphc.compile, device=device), make_step, clock)


def prepare_torch(workload: Workload, folder: Path, device: str, compiled: bool = False) -> Peer:
    """Prepare PyTorch, eager or with ``torch.compile(mode="max-autotune")``, which replays CUDA graphs."""
    torch: Any = import_module("torch")
    if not torch.cuda.is_available():
        raise NotProvidedError("torch sees no GPU")
    torch.set_float32_matmul_precision("highest")
    transform = partial(torch.compile, mode="max-autotune") if compiled else lambda f: f

    def event() -> Any:
        recorded = torch.cuda.Event(enable_timing=True)
        recorded.record()
        return recorded

    def between(one: Any, two: Any) -> float:
        two.synchronize()
        return one.elapsed_time(two)

    make_step = partial(fw.make_eager_step, torch, workload, transform=transform, fused=True)
    return _prepare(torch, workload, folder, device, transform, make_step, (torch.cuda.synchronize, event, between))


def prepare_jax(workload: Workload, folder: Path, device: str) -> Peer:
    """Prepare JAX with ``jax.jit`` on its first GPU; the host's clock times it, as it has no events."""
    del device
    jax, jax_jit = import_module("jax"), import_module("benchmarks.peers.jax_jit")
    if jax.default_backend() != "gpu":
        raise NotProvidedError(f"jax runs on {jax.default_backend()}")
    jax.config.update("jax_default_matmul_precision", "highest")
    prepared = jax_jit.prepare(workload, folder, 1)

    clock = time.perf_counter, lambda a, b: 1e3 * (b - a)
    return Peer(lambda number: prepared.call(), prepared.numbers, prepared.first_call_s, *clock, jax.__version__)


PEERS: dict[str, Callable[[Workload, Path, str], Peer]] = {
    "graphc": prepare_graphc,
    "torch": prepare_torch,
    "torch.compile": partial(prepare_torch, compiled=True),
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


def measure_workload(peer: str, workload: str, folder: str, device: str, seconds: float) -> dict[str, Any]:
    """Return the times of a peer on a workload, whose weights are in the folder, to which its results are written."""
    answer: dict[str, Any] = {"peer": peer, "workload": workload}
    try:
        prepared = PEERS[peer](WORKLOADS[workload], Path(folder), device)
    except NotProvidedError as reason:
        return {**answer, "absent": str(reason)}
    except ImportError as reason:
        return {**answer, "absent": f"not installed: {reason}"}
    np.save(Path(folder) / f"{peer}.npy", prepared.numbers)
    batches = BATCHES if device != "cuda-emu" else 2
    times = measure(prepared, len(input_sets(WORKLOADS[workload])), seconds, batches)
    return {**answer, "version": prepared.version, "first_s": prepared.first_s, **times}
