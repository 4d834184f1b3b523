"""Instructions per call, counted by callgrind: of a loaded model, a compiled module, a training step.

``python -m tools.call_cost`` runs tiny models many times, so that nearly all instructions belong to the path to the
kernels and back; one thread, no cache, a fixed hash seed. The figure is (instructions of 101,000 calls - of 1,000
calls) / 100,000. ``--against COMMIT`` measures a commit too and exits 1 where a call costs over 2% more than there.
Exit code 2: valgrind is not installed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import graphc as gc
from benchmarks.harness import commits
from benchmarks.harness.sweep import pick as names_of
from graphc import nn
from graphc.nn import functional as F
from tools import child

FEW, MANY = 1_000, 101_000
QUICK_FEW, QUICK_MANY = 200, 2_200
WARM = 20
"""Uncounted first calls: builds and lazy initialization."""
TOLERANCE = 1.02
"""Highest allowed ratio of a call's cost to that at the other commit."""
MARK = "getppid"
"""C function before which callgrind dumps its counters; nothing else calls it."""
MISSING = 2
"""Exit code where valgrind is not installed."""

Call = Callable[[], object]
Costs = dict[str, float]
"""Instructions per call."""


def policy() -> nn.Module:
    """Return a small control policy, 17-64-64-6."""
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(17, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 6))


def mlp() -> nn.Module:
    """Return a perceptron so small that its kernels cost next to nothing."""
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def _loaded(model: nn.Module, width: int, folder: Path) -> Call:
    x = gc.rand(1, width)
    gc.export(model.eval(), x, path=folder / "model.gcm")
    run, array = gc.load(folder / "model.gcm"), x.numpy()
    return lambda: run(array)


def _compiled(model: nn.Module, width: int, folder: Path, freeze: bool = False) -> Call:
    x, run = gc.rand(1, width), gc.compile(model.eval(), freeze=freeze)
    return lambda: run(x)


def _step(model: nn.Module, width: int, folder: Path) -> Call:
    optimizer = gc.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    step = gc.compile_step(model.train(), F.cross_entropy, optimizer)
    x, y = gc.rand(2, width), gc.tensor([0, 1])
    return lambda: step(x, y)


CASES: dict[str, Callable[[Path], Call]] = {
    "loaded mlp": lambda folder: _loaded(mlp(), 4, folder),
    "loaded policy": lambda folder: _loaded(policy(), 17, folder),
    "compiled mlp": lambda folder: _compiled(mlp(), 4, folder),
    "compiled policy": lambda folder: _compiled(policy(), 17, folder),
    "compiled frozen policy": lambda folder: _compiled(policy(), 17, folder, freeze=True),
    "step mlp": lambda folder: _step(mlp(), 4, folder),
    "step policy": lambda folder: _step(policy(), 17, folder),
}


def run_cases(names: Sequence[str], few: int, many: int, folder: Path) -> None:
    """Make the calls of each case, with MARK before, between and behind the two series; compiled modules without
    gradients."""
    for name in names:
        with gc.no_grad() if name.startswith("compiled") else contextlib.nullcontext():
            call = CASES[name](folder)
            for _ in range(WARM):
                call()
            for count in (few, many):
                os.getppid()
                for _ in range(count):
                    call()
            os.getppid()


def read_counts(folder: Path) -> list[int]:
    """Return instructions between one dump of callgrind and the next, in order."""
    files = sorted(folder.glob("counts.*"), key=lambda path: int(path.suffix[1:]))
    matches = [re.search(r"^summary: (\d+)", path.read_text(encoding="utf-8"), re.MULTILINE) for path in files]
    return [int(match[1]) for match in matches if match]


def measure(tree: Path, names: Sequence[str], few: int, many: int) -> Costs:
    """Return instructions per call of graphc in a tree. Raises RuntimeError where the run fails."""
    with tempfile.TemporaryDirectory(prefix="graphc-call-cost-") as folder_name:
        folder = Path(folder_name)
        command = ["valgrind", "--tool=callgrind", "--smc-check=all-non-file", f"--dump-before={MARK}"]
        command += [f"--callgrind-out-file={folder / 'counts'}", sys.executable, "-m", "tools.call_cost"]
        command += ["--run", "--cases", ",".join(names), "--counts", str(few), str(many), "--folder", folder_name]
        settings = {"PYTHONHASHSEED": "0", "GRAPHC_CACHE": "off", "GRAPHC_THREADS": "1", "GRAPHC_COMPILE_THREADS": "1"}
        settings |= {"GRAPHC_PROGRESS": "off", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(tree)}
        done = child.run(command, folder=tree, environment=settings)
        if done.status:
            raise RuntimeError(f"valgrind ended with status {done.status}:\n{done.output[-3000:]}")
        counts = read_counts(folder)
    # Each case leaves three counts: the code before it, its few calls, its many calls.
    pairs = zip(counts[1::3], counts[2::3], strict=False)
    return {name: (second - first) / (many - few) for name, (first, second) in zip(names, pairs, strict=False)}


def report(own: Costs, other: Costs | None, commit: str) -> int:
    """Print the table; return the exit status."""
    print(f"instructions per call{f'; {commit} before, ratio' if other else ''}")
    worse = []
    for name, cost in own.items():
        if other is None:
            print(f"{name:18} {cost:10.1f}")
            continue
        ratio = cost / other[name]
        print(f"{name:18} {cost:10.1f} {other[name]:10.1f} {ratio:6.3f}")
        worse += [name] if ratio > TOLERANCE else []
    if worse:
        print(f"over {TOLERANCE:.0%} of {commit}: {', '.join(worse)}")
    return 1 if worse else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and compare; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.call_cost", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=names_of(list(CASES)), default=list(CASES), metavar="A,B")
    parser.add_argument("--quick", action="store_true", help=f"make {QUICK_MANY} calls instead of {MANY}")
    parser.add_argument("--against", metavar="COMMIT", help="measure this commit too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--counts", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.run:
        few, many = options.counts
        run_cases(options.cases, few, many, options.folder)
        return 0
    if shutil.which("valgrind") is None:
        print("valgrind is not installed on this machine; install it: apt-get install valgrind", file=sys.stderr)
        return MISSING
    few, many = (QUICK_FEW, QUICK_MANY) if options.quick else (FEW, MANY)
    with tempfile.TemporaryDirectory(prefix="graphc-trees-") as folder_name:
        other = None
        if options.against:
            try:
                tree = commits.extract(options.against, Path(folder_name) / "other")
            except ValueError as error:
                parser.error(str(error))
            other = measure(tree, options.cases, few, many)
        own = measure(commits.copy_present(Path(folder_name) / "own"), options.cases, few, many)
    if options.json:
        print(json.dumps({"own": own, options.against: other} if other else own, indent=1))
        return 0
    return report(own, other, options.against or "")


if __name__ == "__main__":
    sys.exit(main())
