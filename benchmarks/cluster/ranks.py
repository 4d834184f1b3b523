"""Measurements of several processes together, each on a core of its own: what ``benchmarks.scaling`` asks of ranks."""

from __future__ import annotations

import importlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import graphc
import graphc.distributed as dist
from benchmarks.cluster.bucket_plan import SILENT, recorded_step
from benchmarks.harness import framework as fw
from benchmarks.harness.results import first_line
from benchmarks.harness.timing import Call
from benchmarks.workloads import WORKLOADS, Spec, Workload
from graphc.distributed.group import using
from graphc.nn.parallel import DistributedDataParallel

OWN, GLOO = "graphc", "torch gloo"
_RESNET = WORKLOADS["train_resnet50_b4"]
CASES: dict[str, Workload] = {
    "policy_b256": WORKLOADS["train_policy_b256"],
    "net_b64": WORKLOADS["train_net_b64"],
    "mlp_b64": WORKLOADS["train_mlp_b64"],
    "gpt_b8_t128": WORKLOADS["train_gpt_b8_t128"],
    "resnet50_b16": replace(_RESNET, inputs=(Spec((16, 3, 224, 224)),), target=Spec((16,), 1000)),
}
"""Workloads by case; the batch is that of one rank."""
MOST_CALLS, RECORDED = 1000, 20


class Graphc:
    """This package, on MPI; one process is a group, too."""

    def __init__(self, store: str):
        del store
        dist.init()
        self.rank, self.size = dist.rank(), dist.size()

    def barrier(self) -> None:
        dist.barrier()

    def all(self, value: float) -> list[float]:
        return dist.group().gather_objects(value)

    def reduction(self, nbytes: int) -> Call:
        source, result = np.ones(nbytes // 4, np.float32), np.empty(nbytes // 4, np.float32)
        communicator = dist.group().communicator
        return lambda: communicator.all_reduce(source, result, "sum")

    def step(self, workload: Workload, parallel: bool) -> tuple[Call, list[int]]:
        """Return a training step of one rank, and the bytes of its buckets."""
        return compiled_step(workload, parallel)

    def silent(self, workload: Workload) -> Call:
        """Return a step whose reductions take no time, with the contexts that they need."""
        with using(SILENT):
            step, _ = compiled_step(workload, True)

        def call() -> None:
            with using(SILENT):  # each call synchronizes buffers from rank 0
                step()

        return call


def compiled_step(workload: Workload, parallel: bool) -> tuple[Call, list[int]]:
    """Return a compiled training step, with or without reductions, and the bytes of its buckets."""
    model = fw.build_model(graphc, workload).train()
    inputs = fw.convert_inputs(graphc, workload)
    parallel_model: Any = DistributedDataParallel(model) if parallel else model
    step = graphc.compile_step(
        parallel_model, fw.make_loss(graphc, workload), fw.make_optimizer(graphc, workload, parallel_model)
    )
    sizes = [b.elements * b.dtype.numpy.itemsize for b in parallel_model.buckets] if parallel else []
    return (lambda: step(*inputs)), sizes


class Torch:
    """PyTorch in eager mode, with its own processes' group on gloo."""

    def __init__(self, store: str):
        torch = self.torch = importlib.import_module("torch")
        torch.set_num_threads(1)
        self.rank, self.size = int(os.environ.get("PMI_RANK", "0")), int(os.environ.get("PMI_SIZE", "1"))
        self.dist = importlib.import_module("torch.distributed")
        self.dist.init_process_group("gloo", init_method=f"file://{store}", rank=self.rank, world_size=self.size)

    def barrier(self) -> None:
        self.dist.barrier()

    def all(self, value: float) -> list[float]:
        gathered: list[Any] = [None] * self.size
        self.dist.all_gather_object(gathered, value)
        return gathered

    def reduction(self, nbytes: int) -> Call:
        tensor = self.torch.ones(nbytes // 4)
        return lambda: self.dist.all_reduce(tensor)

    def step(self, workload: Workload, parallel: bool) -> tuple[Call, list[int]]:
        """Return a training step of one rank; its buckets are of 25 MiB."""
        model = fw.build_model(self.torch, workload).train()
        nbytes = sum(p.numel() * p.element_size() for p in model.parameters())
        parallel_model = self.torch.nn.parallel.DistributedDataParallel(model) if parallel else model
        step = fw.make_eager_step(self.torch, workload, parallel_model)
        x, y = fw.convert_inputs(self.torch, workload)
        return (lambda: step(x, y)), in_buckets(nbytes, 1 << 20, 25 << 20)


def in_buckets(nbytes: int, first: int, others: int) -> list[int]:
    """Return bytes in pieces of ``others`` behind a first one."""
    sizes = [min(first, nbytes)]
    while (rest := nbytes - sum(sizes)) > 0:
        sizes.append(min(others, rest))
    return sizes


PEERS: dict[str, Callable[[str], Any]] = {OWN: Graphc, GLOO: Torch}


def timed(peer: Any, call: Call, seconds: float, alone: bool = False) -> float:
    """Return seconds of one call, of which all processes make as many as take about ``seconds``: the fastest one, on
    the slowest process. ``alone``: process 0 only, while the others wait."""
    runs = not alone or peer.rank == 0
    peer.barrier()
    best = _fastest(call, 1) if runs else 0.0
    slowest = max(peer.all(best))
    count = min(MOST_CALLS, int(seconds / slowest))
    if not count:
        return slowest
    peer.barrier()
    return max(peer.all(_fastest(call, count) if runs else 0.0))


def _fastest(call: Call, count: int) -> float:
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def measure_reductions(peer: Any, order: dict[str, Any]) -> dict[str, Any]:
    """Return seconds of an all-reduce by bytes, one figure per round."""
    calls = {n: peer.reduction(n) for n in order["sizes"]}
    rounds: dict[int, list[float]] = {n: [] for n in calls}
    for _ in range(order["rounds"]):
        for nbytes, call in calls.items():
            rounds[nbytes].append(timed(peer, call, order["seconds"]))
    return {"seconds": rounds}


def measure_training(peer: Any, order: dict[str, Any]) -> dict[str, Any]:
    """Return seconds of a step, one figure per round: of one rank while the others wait (``alone``), of all ranks
    beside one another without reductions (``beside``) and with them (``parallel``), and of the reductions by
    themselves. Of graphc also a step of one rank whose reductions take no time (``silent``), and when its buckets are
    ready."""
    workload, seconds = CASES[order["case"]], order["seconds"]
    step, _ = peer.step(workload, False)
    parallel, sizes = peer.step(workload, True)
    reductions = [peer.reduction(n) for n in sizes]
    unheard = peer.silent(workload) if isinstance(peer, Graphc) else None

    def reduce() -> None:
        for call in reductions:
            call()

    for call in filter(None, (step, parallel, unheard)):
        call()
    turns = [
        ("alone", step, True),
        ("beside", step, False),
        ("parallel", parallel, False),
        ("reduction", reduce, False),
    ]
    if unheard is not None:
        turns.insert(1, ("silent", unheard, True))
    rounds: dict[str, list[float]] = {name: [] for name, _, _ in turns}
    plans = []
    for _ in range(order["rounds"]):
        for name, call, alone in turns:
            rounds[name].append(timed(peer, call, seconds, alone))
        if unheard is not None and peer.rank == 0:
            plans += [recorded_step(unheard) for _ in range(max(1, min(RECORDED, int(seconds / rounds["silent"][-1]))))]
    plan = min(plans, key=lambda candidate: candidate["seconds"]) if plans else None
    return {"samples": len(workload.draw_inputs()[0]), "buckets": sizes, "seconds": rounds, "plan": plan}


def measure_trace(peer: Any, order: dict[str, Any]) -> dict[str, Any]:
    """Measure the activities of all ranks' threads in a step, on one clock."""
    step, _ = compiled_step(CASES[order["case"]], True)
    step()
    step()
    peer.barrier()
    return {"ranks": [json.loads(x) for x in peer.all(json.dumps(recorded_step(step)))]}


MODES: dict[str, Callable[[Any, dict[str, Any]], dict[str, Any]]] = {
    "reductions": measure_reductions,
    "training": measure_training,
    "trace": measure_trace,
}


def pin_rank(rank: int) -> None:
    """Bind a process, with its threads, to a core of its own while there are enough cores."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, [cores[rank % len(cores)]])


def measure(peer: str, mode: str, store: str, **order: Any) -> dict[str, Any] | None:
    """Return the measurement of one of MODES on rank 0, and None on others; ``store`` is a file for all ranks."""
    ranks = PEERS[peer](store)
    pin_rank(ranks.rank)
    try:
        answer = MODES[mode](ranks, order)
    except Exception as error:  # told by who has met it: the others wait without a word
        return {"error": f"rank {ranks.rank}: {first_line(error)}"}
    return answer if ranks.rank == 0 else None
