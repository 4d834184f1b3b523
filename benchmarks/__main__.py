"""Run the workloads on all frameworks and print a table: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.harness import against
from benchmarks.harness.measure import Row, describe_rows, measure
from benchmarks.harness.process import LIMITS, WorkerProcess, limits_note, make_environment, pin
from benchmarks.harness.table import format_table
from benchmarks.peers import OWN, PEERS
from benchmarks.workloads import WORKLOADS


def pick(choices: Sequence[str]):
    """Return a parser of comma-separated names out of `choices`."""

    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in names if name not in choices]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(choices)}")
        return names

    return parse


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    peers = [name for name in PEERS if name not in OWN]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--workloads", type=pick(list(WORKLOADS)), default=list(WORKLOADS), metavar="A,B,..")
    parser.add_argument("--peers", type=pick(peers), default=peers, metavar=",".join(peers))
    parser.add_argument("--only-peers", action="store_true", help="measure the peers without graphc")
    parser.add_argument(
        "--target",
        choices=("host", *LIMITS),
        default="host",
        help="limit graphc, and the peers that support it, to these instructions (default: all of this machine)",
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--rounds", type=int, metavar="R", help="number of rounds (default: 5, or 9 with --against)")
    parser.add_argument("--seconds", type=float, default=0.3, help="length of one peer's turn in a round")
    parser.add_argument("--limit", type=float, default=900, help="time limit for a peer in seconds")
    parser.add_argument("--json", action="store_true", help="print all measurements as JSON")
    parser.add_argument("--against", metavar="COMMIT", help="compare this tree with a commit instead of the peers")
    options = parser.parse_args(argv)
    if options.against and options.target != "host":
        parser.error("--against compares commits on this machine as it is")
    options.rounds = options.rounds or (against.ROUNDS if options.against else 5)
    return options


def tell(message: str) -> None:
    """Print progress to stderr."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)


def read_cpu_name() -> str:
    """Return the processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def run(options: argparse.Namespace, modules: dict[str, str]) -> tuple[list[Row], dict[str, str], dict[str, str]]:
    """Measure; return the rows, the versions of the available peers, and the reasons why others are absent."""
    rows: list[Row] = []
    versions: dict[str, str] = {}
    absent: dict[str, str] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graphc-benchmarks-")))
        environment = make_environment(options.threads, folder, options.target)

        def start(name: str) -> WorkerProcess:
            log = folder / f"{name}.log"
            return stack.enter_context(WorkerProcess(modules[name], options.threads, environment, log, options.limit))

        processes: dict[str, WorkerProcess] = {}
        for name in modules:
            process = start(name)
            if "version" in process.hello:
                processes[name], versions[name] = process, process.hello["version"]
            else:
                absent[name] = str(process.hello.get("absent") or process.hello.get("error"))
        for workload in options.workloads:
            processes.update({name: start(name) for name, process in processes.items() if not process.alive})
            with tempfile.TemporaryDirectory(dir=folder) as folder_name:
                rows.append(
                    measure(workload, processes, Path(folder_name), environment, options.rounds, options.seconds, tell)
                )
    return rows, versions, absent


def compare_commits(options: argparse.Namespace) -> int:
    """Measure this tree twice and a commit; return the exit status."""
    try:
        rows = against.run(
            options.against,
            options.workloads,
            against.Turns(options.rounds, options.seconds, options.threads, options.limit),
            tell,
        )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.json:
        json.dump(
            {"commit": options.against, "cpu": read_cpu_name(), "rows": describe_rows(rows)}, sys.stdout, indent=1
        )
        print()
    changes = [against.judge(row) for row in rows]
    if not options.json:
        print(against.format_changes(rows, options.against), end="")
    return 1 if any(change is not None and change.worse for change in changes) else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks; return the exit status."""
    options = parse_arguments(argv)
    try:
        cores = pin(options.threads)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.against:
        return compare_commits(options)
    own = [] if options.only_peers else list(OWN)
    modules = {name: PEERS[name] for name in [*own, *options.peers]}
    rows, versions, absent = run(options, modules)
    if options.json:
        machine = {"cpu": read_cpu_name(), "cores": cores, "threads": options.threads, "target": options.target}
        report = {"machine": machine, "versions": versions, "absent": absent, "rows": describe_rows(rows)}
        json.dump(report, sys.stdout, indent=1)
        print()
        return 0
    print(f"{read_cpu_name()}, {options.threads} thread(s); milliseconds per call, median of {options.rounds} rounds.")
    print("Versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()) + ".\n")
    print(format_table(rows, list(modules), absent), end="")
    print(limits_note(options.target, list(modules)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
