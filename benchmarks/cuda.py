"""The workloads on a GPU beside PyTorch and JAX, each measurement in its own process: ``python -m benchmarks.cuda``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import graphc
from benchmarks.harness import framework as fw
from benchmarks.harness.process import call_in_child
from benchmarks.harness.results import difference, format_table
from benchmarks.harness.sweep import pick
from benchmarks.peers.cuda_calls import PEERS
from benchmarks.workloads import WORKLOADS

Row = dict[str, Any]
ORDER = (
    *("pointwise_16M", "rownorm_4096x1024", "mlp_b64", "policy_b1", "train_mlp_b64", "gpt_b1_t128", "resnet50_b8"),
    *("train_policy_b256", "train_gpt_b8_t128", "minilm_b8_t128", "vit_b1", "resnet50_b1", "train_vit_b8"),
    *("pointwise_64K", "mlp_b1", "net_b64", "train_net_b64", "train_resnet50_b4", "gpt_b1_t1024", "llama_b1_t64"),
)
"""Workloads that come first, in case time does not suffice for all; the others follow."""


def workloads_in_order() -> list[str]:
    """Return all of them, those that say the most first."""
    return [*ORDER, *(name for name in WORKLOADS if name not in ORDER)]


def measure_all(names: Sequence[str], peers: Sequence[str], device: str, seconds: float, end: float) -> list[Row]:
    """Return a row per workload until the clock (``time.monotonic``) is at ``end``."""
    rows = []
    for name in names:
        if time.monotonic() >= end:
            break
        rows.append(_row(name, peers, device, seconds, end))
        print(*_cells(rows[-1], peers), file=sys.stderr, flush=True)
    return rows


def _row(name: str, peers: Sequence[str], device: str, seconds: float, end: float) -> Row:
    with tempfile.TemporaryDirectory(prefix="graphc-cuda-") as folder_name:
        folder = Path(folder_name)
        np.savez(folder / fw.WEIGHTS, **fw.read_weights(fw.build_model(graphc, WORKLOADS[name])))  # type: ignore[arg-type]
        results = {peer: _ask(peer, name, folder, device, seconds, end) for peer in peers}
        return {"workload": name, "peers": results, "apart": _differences(folder, peers)}


def _ask(peer: str, workload: str, folder: Path, device: str, seconds: float, end: float) -> Row:
    environment = {**os.environ, "GRAPHC_CACHE": "off", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    order = {"peer": peer, "workload": workload, "folder": str(folder), "device": device, "seconds": seconds}
    limit = max(5.0, end - time.monotonic())
    return call_in_child("benchmarks.peers.cuda_calls:measure_workload", environment, limit, **order)


def _differences(folder: Path, peers: Sequence[str]) -> dict[str, float]:
    """Return the largest difference of each peer's numbers from the first one's, in units of the largest number."""
    files = {peer: folder / f"{peer}.npy" for peer in peers}
    numbers = {peer: np.load(path) for peer, path in files.items() if path.exists()}
    if not numbers:
        return {}
    first, *others = numbers
    return {other: difference([numbers[other]], [numbers[first]]) for other in others}


def format_rows(rows: Sequence[Row], peers: Sequence[str]) -> str:
    """Return a table in Markdown: microseconds of a call, and how often faster graphc is than the best other."""
    return format_table(["workload", *(f"{p} us" for p in peers), "vs best", "apart"], [_cells(r, peers) for r in rows])


def _cells(row: Row, peers: Sequence[str]) -> list[str]:
    cells = []
    for peer in peers:
        result = row["peers"].get(peer, {})
        if "us" in result:
            cells.append(f"{result['us']:.1f}")
        else:
            cells.append("absent" if "absent" in result else f"error: {result.get('error', '')[:40]}")
    own = row["peers"].get("graphc", {}).get("us")
    others = [f["us"] for p, f in row["peers"].items() if p != "graphc" and "us" in f]
    ratio = f"{min(others) / own:.2f}" if own and others else ""
    apart = f"{max(row['apart'].values()):.1e}" if row["apart"] else ""
    return [row["workload"], *cells, ratio, apart]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where graphc fails on a workload."""
    parser = argparse.ArgumentParser("python -m benchmarks.cuda", description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("workloads", nargs="*", metavar="WORKLOAD", help="workloads (default: all, the most informative first)")
    devices = "cuda (default) or cuda:1; cuda-emu for a dry run without meaningful times"
    add("--device", default="cuda", help=devices)
    add("--peers", type=pick(list(PEERS)), default=list(PEERS), help=f"peers (default: {','.join(PEERS)})")
    add("--seconds", type=float, default=1.0, help="approximate seconds to time each peer (1)")
    add("--limit", type=float, default=1800.0, help="time limit for everything in seconds (1800)")
    add("--json", action="store_true")
    options = parser.parse_args(argv)
    names, peers = options.workloads or workloads_in_order(), options.peers
    unknown = [n for n in names if n not in WORKLOADS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; workloads: {', '.join(WORKLOADS)}")
    rows = measure_all(names, peers, options.device, options.seconds, time.monotonic() + options.limit)
    print(json.dumps({"rows": rows}) if options.json else format_rows(rows, peers))
    return int(not rows or any("us" not in r["peers"].get("graphc", {"us": 0}) for r in rows))


if __name__ == "__main__":
    sys.exit(main())
