"""Memory traffic of GPU kernels, counted without a GPU by the emulated device: ``python -m tools.cuda.traffic``.

A GPU answers a warp's request in sectors of 32 bytes. ``load`` and ``store`` are the fractions of these bytes that the
kernel uses; 1.00 where neighbouring threads touch neighbouring elements. ``again`` counts how often a sector is read
again, from a cache at best. ``requests`` is their number per KiB: 8.0 for single f32, 2.0 for four at a time. ``banks``
is the number of accesses to shared memory per access without bank conflicts. Few ``blocks`` leave most of a GPU idle.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np

import graphc as gc
import graphc.nn.functional as F
from benchmarks.harness.results import format_table
from graphc.compiler.device import compile_for_device
from graphc.runtime.devices.emulated import EmulatedDevice, Traffic

SECTOR = 32


def _f32(*shape: int) -> gc.Tensor:
    return gc.from_numpy(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def _indices(high: int, *shape: int) -> gc.Tensor:
    return gc.from_numpy(np.random.default_rng(0).integers(0, high, shape))


CASES: dict[str, tuple[Callable[..., Any], Callable[[], Sequence[gc.Tensor]]]] = {
    "bias_gelu": (lambda x, b: F.gelu(x + b, approximate="tanh"), lambda: (_f32(256, 1024), _f32(1024))),
    "odd_rows": (lambda x, y: x + y, lambda: (_f32(257, 333), _f32(257, 333))),
    "softmax_64": (lambda x: F.softmax(x, -1), lambda: (_f32(1024, 64),)),
    "softmax_1000": (lambda x: F.softmax(x, -1), lambda: (_f32(128, 1000),)),
    "softmax_8192": (lambda x: F.softmax(x, -1), lambda: (_f32(32, 8192),)),
    "layer_norm": (
        lambda x, w, b: F.layer_norm(x, (768,), w, b),
        lambda: (_f32(256, 768), _f32(768), _f32(768)),
    ),
    "row_sums": (lambda x: x.sum(-1), lambda: (_f32(512, 1024),)),
    "column_sums": (lambda x: x.sum(0), lambda: (_f32(4096, 256),)),
    "one_sum": (lambda x: x.sum(), lambda: (_f32(512, 1024),)),
    "transpose": (lambda x: x.T + 1.0, lambda: (_f32(512, 256),)),
    "channels_last": (lambda x: x.permute(0, 2, 3, 1) * 2, lambda: (_f32(2, 64, 28, 28),)),
    "batch_norm": (
        lambda x: F.batch_norm(x, None, None, None, None, True),
        lambda: (_f32(8, 32, 28, 28),),
    ),
    "max_pool": (lambda x: F.max_pool2d(x, 2), lambda: (_f32(4, 32, 56, 56),)),
    "conv3x3": (lambda x, w: F.conv2d(x, w, padding=1), lambda: (_f32(2, 32, 28, 28), _f32(32, 32, 3, 3))),
    "depthwise": (
        lambda x, w: F.conv2d(x, w, padding=1, groups=32),
        lambda: (_f32(2, 32, 28, 28), _f32(32, 1, 3, 3)),
    ),
    "small_product": (lambda x, w: x @ w, lambda: (_f32(60, 50), _f32(50, 70))),
    "embedding": (F.embedding, lambda: (_indices(1000, 4, 128), _f32(1000, 512))),
    "cross_entropy": (F.cross_entropy, lambda: (_f32(256, 1000), _indices(1000, 256))),
}
"""Functions and their arguments: the operations of models besides large products."""


@dataclass(frozen=True)
class LaunchRow:
    """A kernel of a case."""

    case: str
    kernel: str
    blocks: int
    threads: int
    load: float
    store: float
    again: float
    requests: float
    banks: float


def rows(names: Iterable[str] = tuple(CASES)) -> Iterator[LaunchRow]:
    """Yield the kernels of these cases, in the order of their launches; kernels computed by the library are left
    out."""
    for name in names:
        function, arguments = CASES[name]
        inputs = arguments()
        device = EmulatedDevice(orders=(0,), races=False, traffic=True)
        program = compile_for_device(gc.trace(function, *inputs), device)
        program.run([x.numpy() for x in inputs])
        counted = device.traffic or {}
        for launch in program.plan.launches:
            if launch.symbol in counted:
                grid = launch.grid if isinstance(launch.grid, int) else 0
                yield row_of(name, launch.kernel, grid, launch.threads, counted[launch.symbol])


def row_of(case: str, kernel: str, blocks: int, threads: int, traffic: Traffic) -> LaunchRow:
    """Return the figures of a launch from its counters; a ratio with denominator 0 is 1."""
    used_bytes = traffic.load_bytes + traffic.store_bytes
    requests = traffic.load_requests + traffic.store_requests
    return LaunchRow(
        case,
        kernel,
        blocks,
        threads,
        _ratio(traffic.load_bytes, SECTOR * traffic.load_sectors),
        _ratio(traffic.store_bytes, SECTOR * traffic.store_sectors),
        _ratio(traffic.load_sectors, traffic.loaded),
        _ratio(requests * 1024, used_bytes),
        _ratio(traffic.shared_rounds, traffic.shared_ideal),
    )


def _ratio(numerator: int, denominator: int) -> float:
    return round(numerator / denominator, 2) if denominator else 1.0


def format_rows(rows: Sequence[LaunchRow]) -> str:
    """Return the table as Markdown."""
    return format_table(list(LaunchRow.__dataclass_fields__), ([*map(str, astuple(row))] for row in rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.cuda.traffic", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--json", action="store_true", help="print the rows as a JSON list")
    options = parser.parse_args(arguments)
    unknown = set(options.cases) - CASES.keys()
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    table_rows = list(rows(options.cases or CASES))
    print(json.dumps([asdict(row) for row in table_rows], indent=1) if options.json else format_rows(table_rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
