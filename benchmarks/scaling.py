"""Data parallel training on several ranks, measured and on paper: ``python -m benchmarks.scaling``.

Measured are all-reduces by their bytes and training steps on few ranks, each on a core of its own, with PyTorch's
DistributedDataParallel on gloo beside. A model of rings and trees, which is compared with these measurements first,
goes on to many ranks.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from benchmarks.__main__ import read_cpu_name
from benchmarks.cluster.networks import Link, Network, sizes_until
from benchmarks.cluster.ranks import CASES, GLOO, OWN, PEERS
from benchmarks.cluster.report import checked, on_paper, paper_as_json, report
from benchmarks.cluster.step_model import Assumed
from benchmarks.cluster.trace import chrome_trace
from benchmarks.harness.process import ROOT, call_in_child, make_environment
from benchmarks.harness.sweep import make_parser, pick, write_table
from benchmarks.harness.timing import find_library
from graphc.base.installation import install_command
from tools.progress import progress_bar

PAGE = ROOT / "docs" / "scaling.md"
DEFAULT_CASES = ("net_b64", "mlp_b64", "gpt_b8_t128", "resnet50_b16")
MOST_BYTES = 64 << 20
DEVICES = Link(latency=5e-6, bandwidth=100e9)
"""A link between devices of one machine, assumed."""
PAPER_RANKS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


def launcher() -> str | None:
    """Return the path of ``mpiexec``: the one beside this Python, else that of the search path."""
    return shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


def run_ranks(order: Mapping[str, Any], ranks: int, environment: Mapping[str, str], limit: float) -> dict[str, Any]:
    """Return the answer of ``ranks`` processes to an order of ``ranks.measure``, or ``{"problem": ...}`` where they
    fail."""
    start = (str(launcher()), "-n", str(ranks)) if ranks > 1 else ()
    with tempfile.TemporaryDirectory(prefix="graphc-scaling-") as folder:
        order = {**order, "store": f"{folder}/store"}
        answer = call_in_child("benchmarks.cluster.ranks:measure", environment, limit, start, **order)
    return {"problem": answer["error"]} if "error" in answer else answer


def orders(options: argparse.Namespace) -> list[tuple[dict[str, Any], int]]:
    """Return the orders to measure, each with its number of ranks."""
    shared = {"rounds": options.rounds, "seconds": options.seconds}
    queue: list[tuple[dict[str, Any], int]] = []
    for ranks in options.ranks:
        sizes = sizes_until(options.bytes)
        queue += [({"mode": "reductions", "peer": p, "sizes": sizes, **shared}, ranks) for p in options.peers]
    for case in options.cases:
        for ranks in options.ranks:
            queue += [({"mode": "training", "peer": p, "case": case, **shared}, ranks) for p in options.peers]
    return queue


def measure(options: argparse.Namespace) -> dict[str, Any]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="graphc-scaling-caches-") as caches:
        environment = make_environment(1, Path(caches))
        pending = orders(options)
        with progress_bar(len(pending), "measurements") as bar:
            for order, ranks in pending:
                bar.note(" ".join([order["mode"], order.get("case", ""), order["peer"], f"{ranks} ranks"]))
                answer = run_ranks(order, ranks, environment, options.limit)
                rows.append({**{k: order[k] for k in ("mode", "peer", "case") if k in order}, "ranks": ranks, **answer})
                bar.step()
    return {"cpu": read_cpu_name(), "cores": len(os.sched_getaffinity(0)), "rounds": options.rounds, "rows": rows}


def write_trace(options: argparse.Namespace) -> None:
    """Write a step of the first case on the first number of ranks, as a Chrome trace."""
    with tempfile.TemporaryDirectory(prefix="graphc-scaling-caches-") as caches:
        order = {"mode": "trace", "peer": OWN, "case": options.cases[0]}
        answer = run_ranks(order, options.ranks[0], make_environment(1, Path(caches)), options.limit)
    if "problem" in answer:
        raise SystemExit(f"the trace of {options.cases[0]}: {answer['problem']}")
    text = json.dumps(chrome_trace(options.cases[0], answer["ranks"]), indent=1)
    Path(options.trace).write_text(text, encoding="utf-8")


def _listed(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Return a parser of numbers separated by commas."""
    return lambda text: [kind(n) for n in text.split(",")]


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser("benchmarks.scaling", __doc__, list(PEERS), seconds=0.3)
    add = parser.add_argument
    known, cases = f"cases, among {', '.join(CASES)}", pick(list(CASES))
    add("--cases", type=cases, default=list(DEFAULT_CASES), metavar="A,B,..", help=known)
    add("--ranks", type=_listed(int), default=[2], metavar="N,..", help="numbers of ranks to measure (default: 2)")
    add("--bytes", type=int, default=MOST_BYTES, help="size of the largest all-reduce in bytes (default: %(default)s)")
    add("--limit", type=float, default=1800, metavar="SECONDS", help="time limit for one case in seconds")
    add("--from", dest="known", metavar="FILE", help="read the output of --json from this file instead of measuring")
    add("--paper", type=_listed(int), default=list(PAPER_RANKS), metavar="N,..", help="numbers of ranks to predict")
    add("--bandwidth", type=float, default=12.5, metavar="GB/S", help="bandwidth of a machine's link, each way")
    add("--latency", type=float, default=5.0, metavar="US", help="latency of a message between machines")
    add("--ranks-per-node", type=int, default=8, metavar="N", help="number of ranks per machine, which share its link")
    near = f"for other speeds {DEVICES.bandwidth / 1e9:g} GB/s and {1e6 * DEVICES.latency:g} us"
    within = f"link within a machine (default: the measured one; {near})"
    add("--local-bandwidth", type=float, metavar="GB/S", help=within)
    add("--local-latency", type=float, metavar="US", help=within)
    overlap = "fraction of a reduction's time in which its rank computes (default: 1)"
    add("--overlap", type=float, default=1.0, help=overlap)
    speeds = "speeds of a rank, relative to one core here (default: 1,100)"
    add("--speed", type=_listed(float), default=[1.0, 100.0], metavar="X,..", help=speeds)
    add("--trace", metavar="FILE", help="only write a Chrome trace of a step of the first case")
    add("--note", default="", metavar="TEXT", help="remark about the machine, printed beside its name")
    add("--write", action="store_true", help="write the figures into docs/scaling.md")
    options = parser.parse_args(argv)
    positive = min([*options.ranks, *options.paper, options.rounds, options.ranks_per_node]) >= 1
    if not positive or min(options.bandwidth, *options.speed, options.seconds) <= 0 or not 0 <= options.overlap <= 1:
        parser.error("counts and speeds are above 0, --overlap is between 0 and 1")
    if not options.known and (launcher() is None or find_library("mpi4py") is None):
        parser.error(f"several processes need mpi4py and an MPI: {install_command('mpi')}")
    if find_library("torch") is None:
        options.peers = [p for p in options.peers if p != GLOO]
    return options


def assumed(options: argparse.Namespace, local: Link) -> list[Assumed]:
    """Return the assumptions of the options. The default is the measured link ``local`` within a machine, with ranks as
    fast as those here, and DEVICES for others."""
    remote, assumptions = Link(options.latency * 1e-6, options.bandwidth * 1e9), []
    for speed in options.speed:
        near = local if speed == 1 else DEVICES
        if options.local_latency is not None:
            near = replace(near, latency=options.local_latency * 1e-6)
        if options.local_bandwidth is not None:
            near = replace(near, bandwidth=options.local_bandwidth * 1e9, cached=inf)
        network = Network(near, remote, options.ranks_per_node)
        assumptions.append(Assumed(network, tuple(options.paper), options.overlap, speed))
    return assumptions


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, compute and print; return 1 where something could not be measured."""
    options = parse(argv)
    if options.trace:
        write_trace(options)
        return 0
    measured = json.loads(Path(options.known).read_text())["measured"] if options.known else measure(options)
    measured["note"] = options.note or measured.get("note", "")
    checks = checked(measured)
    paper = on_paper(measured, assumed(options, checks.local))
    if options.json:
        json.dump(
            {"measured": measured, "checks": checks.as_json(), "paper": paper_as_json(paper)}, sys.stdout, indent=1
        )
        print()
    elif options.write:
        write_table(PAGE, "benchmarks.scaling", report(measured, checks, paper))
    else:
        print(report(measured, checks, paper))
    return 1 if any("problem" in row for row in measured["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
