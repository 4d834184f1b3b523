"""Ordinary jobs with graphc and with PyTorch: lines, seconds, and seconds of first epochs.

``python -m benchmarks.jobs [NAME...]`` runs both programs of each job as processes in temporary folders, in turns.
graphc starts with an empty folder of compiled programs, and runs again with what that left there. PyTorch starts with
empty folders too. A program that trains prints ``first epoch: 0.12 s``, and its last line is its result.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from benchmarks import jobs
from benchmarks.__main__ import read_cpu_name
from benchmarks.harness.process import ROOT, make_environment
from benchmarks.harness.results import Result, cell, format_problems, format_table
from benchmarks.harness.sweep import print_json, select, tell, write_table
from benchmarks.harness.timing import alternate
from benchmarks.scaling import launcher

PAGE = ROOT / "docs" / "jobs.md"
TARGET = 1.2
"""Most times that a first epoch may take as long as PyTorch's."""
COLD, WARM, PEER = "graphc cold", "graphc warm", "PyTorch"
FIRST_EPOCH = re.compile(r"^first epoch: ([\d.]+) s$", re.MULTILINE)
LAUNCHERS = {
    "two_processes": (
        [launcher() or "mpiexec", "-n", "2", sys.executable],
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"],
    )
}
"""Commands that start the programs of a job, graphc's and PyTorch's, where it is not the interpreter alone."""


@dataclass
class Job:
    """Measurements of one job: seconds of the whole process, and seconds of the first epoch."""

    process: Result
    first_epoch: Result

    def count(self, contender: str, answer: Mapping[str, Any]) -> None:
        """Add a run to the measurements that ``alternate`` does not add itself."""
        self.process.facts[f"result of {contender}"] = answer["result"]
        if answer["first epoch ms"] is not None:
            self.first_epoch.rounds_ms.setdefault(contender, []).append(answer["first epoch ms"])

    def as_json(self) -> dict[str, Any]:
        return {**self.process.as_json(), "first_epoch": self.first_epoch.as_json()}


def run_program(command: Sequence[str], environment: Mapping[str, str], limit_s: float) -> dict[str, Any]:
    """Run a program in a new folder. Return its milliseconds, those of the first epoch, and its last line, or
    ``{"error": ...}`` where it fails or takes too long."""
    with tempfile.TemporaryDirectory(prefix="graphc-job-") as folder:
        pipe, start = subprocess.PIPE, time.perf_counter()
        with subprocess.Popen(
            command, cwd=folder, env=dict(environment), stdout=pipe, stderr=pipe, text=True, start_new_session=True
        ) as process:
            try:
                output, errors = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return {"error": f"not finished within {limit_s:g} s"}
        ms = 1000 * (time.perf_counter() - start)
    lines, epoch = output.strip().splitlines(), FIRST_EPOCH.search(output)
    if process.returncode or not lines:
        return {"error": f"status {process.returncode}: {(errors.strip().splitlines() or ['no output'])[-1]}"}
    return {"ms": ms, "first epoch ms": 1000 * float(epoch[1]) if epoch else None, "result": lines[-1]}


def measure(name: str, rounds: int, threads: int, limit_s: float) -> Job:
    """Run the programs of a job in turns."""
    own, peer = jobs.GRAPHC / f"{name}.py", jobs.peer_of(name)
    facts = {"lines": jobs.count_lines(own), "PyTorch lines": jobs.count_lines(peer) if peer else None}
    job = Job(Result(name, facts), Result(name))
    own_launcher, peer_launcher = LAUNCHERS.get(name, ([sys.executable], [sys.executable]))
    commands = {COLD: [*own_launcher, str(own)], PEER: [*peer_launcher, str(peer)]}

    def run(contender: str) -> dict[str, Any]:
        tell(f"{name}: {contender.split()[0]}")
        with tempfile.TemporaryDirectory(prefix="graphc-job-caches-") as caches:
            environment = make_environment(threads, Path(caches))
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH")]))
            answer = run_program(commands[contender], environment, limit_s)
            if "error" in answer:
                return answer
            job.count(contender, answer)
            if contender == COLD:
                warm = run_program(commands[COLD], environment, limit_s)
                if "error" in warm:
                    return warm
                job.process.rounds_ms.setdefault(WARM, []).append(warm["ms"])
                job.count(WARM, warm)
        return answer

    alternate(job.process, [COLD, *([PEER] if peer else [])], rounds, run)
    return job


# ---- table


def seconds_cells(result: Result) -> list[str]:
    """Return seconds with a cold cache, a warm one, and of PyTorch, and the ratios of PyTorch's to the first two."""
    seconds = [result.ms(name) for name in (COLD, WARM, PEER)]
    ratios = [result.over(PEER, name) for name in (COLD, WARM)]
    return [*(cell(ms and ms / 1000) for ms in seconds), *map(cell, ratios)]


def format_jobs(measured: Sequence[Job]) -> str:
    """Return the table, and the reasons for missing times."""
    names = ["cold", "warm", "PyTorch", "PyTorch / cold", "PyTorch / warm"]
    columns = ["job", "lines", "PyTorch", *(f"{what} {name}" for what in ("process", "epoch") for name in names)]
    rows = []
    for job in measured:
        lines = [cell(job.process.facts[key]) for key in ("lines", "PyTorch lines")]
        rows.append([job.process.name, *lines, *seconds_cells(job.process), *seconds_cells(job.first_epoch)])
    return "\n".join([format_table(columns, rows), *format_problems([job.process for job in measured])])


def format_targets(measured: Sequence[Job]) -> str:
    """Return a sentence for each target, with the jobs that meet it among those that have a peer."""
    compared = [job for job in measured if job.process.facts["PyTorch lines"] is not None]

    def sentence(target: str, met: Sequence[Job]) -> str:
        names = "" if len(met) in (0, len(compared)) else f": {', '.join(job.process.name for job in met)}"
        return f"- {target}: {len(met)} of {len(compared)} jobs{names}."

    def faster(result_of: Callable[[Job], Result], contender: str, limit: float) -> list[Job]:
        return [job for job in compared if (result_of(job).over(PEER, contender) or 0) * limit >= 1]

    short = [job for job in compared if job.process.facts["lines"] <= job.process.facts["PyTorch lines"]]
    lines = [sentence("no more lines than PyTorch", short)]
    for contender, cache in ((WARM, "programs in the cache"), (COLD, "empty cache")):
        epochs = faster(attrgetter("first_epoch"), contender, TARGET)
        lines.append(sentence(f"first epoch at most {TARGET} times PyTorch's, {cache}", epochs))
        processes = faster(attrgetter("process"), contender, 1)
        lines.append(sentence(f"process at most PyTorch's, {cache}", processes))
    return "\n".join(lines)


def format_heading(rounds: int, threads: int) -> str:
    """Describe the machine, the versions and the measurement."""
    names = {"graphc": "graphc-compiler", "torch": "torch"}
    versions = ", ".join(f"{name} {_version(package)}" for name, package in names.items())
    cores = len(os.sched_getaffinity(0))
    return (
        f"{read_cpu_name()}, {cores} core(s), libraries limited to {threads} thread(s), {versions}. "
        f"Seconds, medians of {rounds} round(s)."
    )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.jobs", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=3, metavar="R", help="number of rounds (default: 3)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads of each process (default: 1)")
    parser.add_argument("--limit", type=float, default=600, metavar="S", help="seconds of one program (default: 600)")
    parser.add_argument("--json", action="store_true", help="print all measurements as JSON")
    parser.add_argument("--write", action="store_true", help=f"write the table of all jobs into docs/{PAGE.name}")
    names = jobs.job_names()
    options = select(parser, names, argv)
    if options.write and options.cases != names:
        parser.error("--write needs all jobs")
    measured = [measure(name, options.rounds, options.threads, options.limit) for name in options.cases]
    heading = format_heading(options.rounds, options.threads)
    table = f"{format_jobs(measured)}\n\n{format_targets(measured)}"
    if options.json:
        print_json([], heading=heading, jobs=[job.as_json() for job in measured])
    else:
        print(f"{heading}\n\n{table}")
    if options.write:
        write_table(PAGE, "benchmarks.jobs", f"{heading}\n\n{table}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
