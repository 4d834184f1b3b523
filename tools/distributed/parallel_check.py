"""Compare several processes with one on the whole batch: ``python -m tools.distributed.parallel_check --ranks 2,3,4``.

AdamW trains a small network with SyncBatchNorm and dropout, with clipping by the global norm, a schedule and
accumulation, in eager mode, by ``gc.compile`` and by ``gc.compile_step``: in one process on the whole batch, and in
each number of processes on shards of it, for ``--steps`` steps. After every step weights and buffers of the processes
must have the same bits. At the end they are compared with those of one process: in f64 they differ by 1e-12 at most,
and in f32 they are at most three times as far from the f64 run as one process is.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

import graphc as gc
import graphc.distributed as dist
from graphc import nn
from graphc.base.dtypes import DType
from graphc.distributed.communicator import Alone
from graphc.distributed.group import Group
from graphc.nn.parallel import DistributedDataParallel

SAMPLES = 24
"""Rows of the whole batch of a step: a multiple of the processes times the micro-batches."""
MODES = ("eager", "compile", "step")
MOST = 1e-12
"""Difference of weights, relative to 1 plus their size, that the order of sums may make in f64."""
TIMES = 3
LAUNCH = [sys.executable, "-m", "tools.distributed.parallel_check"]


def network(dtype: DType) -> nn.Module:
    """Return the network, with the same weights in every call."""
    gc.manual_seed(3)
    layers = [nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.Tanh(), nn.Dropout2d(0.2), nn.Flatten()]
    net = nn.Sequential(*layers, nn.Linear(64, 12), nn.Tanh(), nn.Dropout(0.4), nn.Linear(12, 3))
    return nn.SyncBatchNorm.convert_sync_batchnorm(net).to(dtype)


def batches(steps: int, micro: int, dtype: DType) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the micro-batches of each step: this process's rows of whole ones."""
    random, here = np.random.default_rng(0), dist.group()
    for _ in range(steps):
        x, y = random.normal(3.0, 1.0, (SAMPLES, 1, 6, 6)), random.normal(size=(SAMPLES, 3))
        slices = [slice(i * SAMPLES // micro, (i + 1) * SAMPLES // micro) for i in range(micro)]
        yield [tuple(gc.tensor(a[rows][here.rank :: here.size], dtype=dtype) for a in (x, y)) for rows in slices]


def loss_of(output: Any, y: Any) -> Any:
    """Return the mean square error."""
    return ((output - y) ** 2).mean()


def train(mode: str, dtype: DType, steps: int, micro: int, note: Callable[[list[np.ndarray]], None]) -> None:
    """Train, and call ``note(weights and buffers)`` after each step."""
    net = network(dtype)
    model = DistributedDataParallel(net, bucket_cap_mb=1e-3)
    optimizer = gc.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = gc.optim.lr_scheduler.StepLR(optimizer, 5, 0.7)
    if mode == "step":
        step = gc.compile_step(model, loss_of, optimizer, accumulate=micro, clip_norm=0.5)
        run = functools.partial(_compiled_step, step)
    else:
        run = functools.partial(_step, model, gc.compile(model) if mode == "compile" else model, optimizer)
    gc.manual_seed(11)
    for micro_batches in batches(steps, micro, dtype):
        run(micro_batches)
        schedule.step()
        note([t.detach().numpy().copy() for t in [*net.parameters(), *net.buffers()]])


def _compiled_step(step: Any, micro_batches: list[tuple[Any, Any]]) -> None:
    for x, y in micro_batches:
        step(x, y)


def _step(model: Any, forward: Any, optimizer: Any, micro_batches: list[tuple[Any, Any]]) -> None:
    optimizer.zero_grad()
    for number, (x, y) in enumerate(micro_batches):
        with model.no_sync() if number + 1 < len(micro_batches) else nullcontext():
            (loss_of(forward(x), y) / len(micro_batches)).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()


def distance(weights: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """Return the largest difference, relative to 1 plus the size of the expected value."""
    return max(float((np.abs(a - b) / (1 + np.abs(b))).max()) for a, b in zip(weights, expected, strict=True))


def check(mode: str, steps: int, micro: int) -> list[str]:
    """Return the problems found by all processes together; process 0 prints the measurements."""
    ends: dict[tuple[str, bool], list[np.ndarray]] = {}
    problems = []
    for dtype in (gc.float64, gc.float32):
        # NOTE: in all processes, so that each has called every function as often: eager mode counts calls before it
        # makes programs, whose last bits may be others than those of numpy.
        with dist.using(Group(Alone())):
            train(mode, dtype, steps, micro, functools.partial(_mark, ends, (dtype.name, True), []))
        marks: list[str] = []
        train(mode, dtype, steps, micro, functools.partial(_mark, ends, (dtype.name, False), marks))
        of_all = dist.group().gather_objects(marks)
        apart = [i for i, each in enumerate(zip(*of_all, strict=True)) if len(set(each)) > 1]
        problems += [f"{mode}: replicas differ from step {apart[0]} on in {dtype.name}"] if apart else []
    expected = ends["f64", True]
    exact, ours, alone = (distance(ends[key], expected) for key in (("f64", False), ("f32", False), ("f32", True)))
    if dist.rank() == 0:
        title = f"{dist.size()} processes, {mode}, {micro} micro-batches, {steps} steps"
        print(f"{title}: f64 {exact:.1e}, f32 {ours:.1e} (one process {alone:.1e})", flush=True)
    if not exact <= MOST:
        problems.append(f"{mode}: f64 differs by {exact:.1e}")
    if not ours <= TIMES * alone:
        problems.append(f"{mode}: f32 is {ours:.1e} from f64, one process {alone:.1e}")
    return [each for rank_problems in dist.group().gather_objects(problems) for each in rank_problems]


def _mark(ends: dict[Any, Any], key: Any, marks: list[str], state: list[np.ndarray]) -> None:
    ends[key] = state
    marks.append(hashlib.sha256(b"".join(a.tobytes() for a in state)).hexdigest())


def launch(ranks: int, arguments: list[str]) -> int:
    """Run the check in ``ranks`` processes; return their exit status."""
    return subprocess.run(["mpiexec", "-n", str(ranks), *LAUNCH, "--worker", *arguments], check=False).returncode


def main(argv: list[str] | None = None) -> int:
    """Run the check for each number of processes; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", default="2,3,4", help="numbers of processes, separated by commas")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--micro", default="1,2", help="number of micro-batches per step")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--worker", action="store_true", help="run as one of a launcher's processes")
    args = parser.parse_args(argv)
    if not args.worker:
        worker_options = ["--steps", str(args.steps), "--micro", args.micro, "--modes", args.modes]
        return max(launch(int(ranks), worker_options) for ranks in args.ranks.split(","))
    dist.init()
    problems = [
        problem
        for micro in map(int, args.micro.split(","))
        for mode in args.modes.split(",")
        for problem in check(mode, args.steps, micro)
    ]
    for problem in problems if dist.rank() == 0 else ():
        print(problem, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    raise SystemExit(main())
