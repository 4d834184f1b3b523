"""Run the workloads on all frameworks and print a table: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import against
from benchmarks.harness.measure import Turns, find_peer, format_facts, format_rows, run
from benchmarks.harness.process import LIMITS, limits_note, make_environment, pin
from benchmarks.harness.sweep import make_parser, pick, tell
from benchmarks.peers import OWN, PEERS
from benchmarks.workloads import ALL, WORKLOADS


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser("benchmarks", __doc__, rounds=0, seconds=0.3)
    add = parser.add_argument
    also = f"default: models and training steps; also {', '.join(name for name in ALL if name not in WORKLOADS)}"
    add("--workloads", type=pick(list(ALL)), default=list(WORKLOADS), metavar="A,B,..", help=also)
    others = [name for name in PEERS if name not in OWN]
    add("--peers", type=_peers, default=others, metavar=",".join(others), help="perhaps with variants, as torch:bf16")
    variants = "contenders of graphc, as graphc:int8, graphc:70%%, graphc:onnx, graphc:eager (default: %(default)s)"
    add("--own", type=_peers, default=list(OWN), metavar="A,B,..", help=variants)
    add("--facts", action="store_true", help="print also sizes and speeds of each contender")
    add("--only-peers", action="store_true", help="measure the peers without graphc")
    limited = "limit graphc, and the peers that support it, to these instructions (default: all of this machine)"
    add("--target", choices=("host", *LIMITS), default="host", help=limited)
    add("--threads", type=int, default=1, metavar="N")
    add("--limit", type=float, default=900, help="time limit for a peer in seconds")
    add("--against", metavar="COMMIT", help="compare this tree with a commit instead of the peers, in 9 rounds, not 5")
    options = parser.parse_args(argv)
    if options.against and options.target != "host":
        parser.error("--against compares commits on this machine as it is")
    options.rounds = options.rounds or (against.ROUNDS if options.against else 5)
    return options


def _peers(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    pick(list(PEERS))(",".join(name.partition(":")[0] for name in names))
    return names


def read_cpu_name() -> str:
    """Return the processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def print_json(report: dict[str, Any]) -> None:
    json.dump({"cpu": read_cpu_name(), **report}, sys.stdout, indent=1)
    print()


def compare_commits(options: argparse.Namespace, turns: Turns) -> int:
    """Measure this tree twice and a commit; return the exit status."""
    try:
        rows = against.measure_trees(options.against, options.workloads, turns, tell)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.json:
        print_json({"commit": options.against, "rows": [row.as_json() for row in rows]})
    else:
        print(against.format_changes(rows, options.against), end="")
    changes = [against.judge(row) for row in rows]
    return 1 if any(change is not None and change.worse for change in changes) else 0


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_arguments(argv)
    try:
        cores = pin(options.threads)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    turns = Turns(options.rounds, options.seconds, options.threads, options.limit)
    if options.against:
        return compare_commits(options, turns)
    names = [*([] if options.only_peers else options.own), *options.peers]
    with tempfile.TemporaryDirectory(prefix="graphc-benchmarks-") as caches:
        environment = make_environment(options.threads, Path(caches), options.target)
        table = run({name: find_peer(name, environment) for name in names}, options.workloads, turns, tell)
    if options.json:
        facts = {"cores": cores, "threads": options.threads, "target": options.target}
        rows = [row.as_json() for row in table.rows]
        print_json({**facts, "versions": table.versions, "absent": table.absent, "rows": rows})
        return 0
    print(f"{read_cpu_name()}, {options.threads} thread(s); milliseconds per call, median of {options.rounds} rounds.")
    print("Versions: " + ", ".join(f"{name} {version}" for name, version in table.versions.items()) + ".\n")
    print(format_rows(table, names), end="")
    if options.facts:
        print(f"\n{format_facts(table, names)}", end="")
    print(limits_note(options.target, names), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
