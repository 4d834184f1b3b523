"""Processes killed at random times: ``python -m tools.damage.kills --count 1000 [--seed N] [--kinds export,train]``.

A process compiles (and writes to the cache), exports, or trains with checkpoints, until SIGKILL ends it at a seeded
random time. Afterwards every file must be complete, no other file may remain in the folder, and the interrupted work
must end with the same bits as undisturbed work: the cache returns the right program, a file is the old or the new one,
and a training that is resumed and killed again leaves the same file and the same metrics. The processes are forked from
one that has loaded all modules, so that a second holds several kills.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import graphc as gc
from graphc import nn
from graphc.base.errors import ArtifactError
from graphc.cli.main import load_command
from graphc.cli.main import main as run_command
from graphc.compiler import cache
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.compiler.kernel_cache import KERNELS
from graphc.files.container import read_sections
from graphc.files.numpy_file import write_npz
from graphc.ir.graph.parse import parse_graph
from graphc.nn.functional import cross_entropy
from graphc.steps.step import compile_step
from graphc.training.checkpoint import read_checkpoint
from tools.damage.forked import MOST_SECONDS, end, finish, fork
from tools.progress import progress_bar

VARIANTS = 6
"""Graphs that the compiling process takes in turns."""
GRAPH = """
graph @net(%x: f32[{rows},24]) -> (f32[{rows},{rows}], f32[{rows}]) {{
  %p = matmul(%x, %x) {{transpose_b=true}} : f32[{rows},{rows}]
  %y = maximum(%p, f32(0.0)) : f32[{rows},{rows}]
  %s = sum(%y) {{axes=[1]}} : f32[{rows}]
  return %y, %s
}}
"""
EPOCHS, BATCH, SAMPLES, EVERY = 8, 8, 160, 3


class Kind:
    """Work of a process in a folder, repeated until the process is killed."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.ends = 0
        """Killed runs that came to their end later."""
        self.swept = 0
        """Leftover files that the next writer had to remove."""
        folder.mkdir()

    def begin(self) -> None:
        """Create the reference for comparisons; runs in a child process."""

    def once(self) -> None:
        """Do one round of the interrupted work, in a child process; kills come within the time that a round takes."""

    def act(self) -> None:
        """Do the interrupted work; runs in a child process and does not end soon."""

    def problems(self) -> Iterator[str]:
        """Yield the problems after a kill."""
        yield from ()


def _inside(folder: Path, allowed: Callable[[str], bool]) -> Iterator[str]:
    """Yield unexpected files in a folder."""
    for path in sorted(folder.iterdir()):
        if not allowed(path.name):
            yield f"{path.name} is left behind"


# ---- compiling


class Compiling(Kind):
    """Programs and kernels compiled and written to the cache, each again and again."""

    def begin(self) -> None:
        os.environ["GRAPHC_CACHE"] = "off"
        write_npz(self.folder / "expected.npz", {str(n): self._result(n) for n in range(VARIANTS)})

    def once(self) -> None:
        self._use_cache()
        for number in range(VARIANTS):
            self._remove(cache.SUFFIX)
            self._result(number)
        # NOTE: at the end, so that the process after a kill meets the packs of the killed one.
        self._remove(cache.PACK)

    def act(self) -> None:
        while True:
            self.once()

    def check(self) -> None:
        """Use the programs in the cache, then its kernels; runs in a child process."""
        self._use_cache()
        with np.load(self.folder / "expected.npz") as expected, warnings.catch_warnings():
            warnings.simplefilter("error")
            for number in [*range(VARIANTS)] * 2:
                assert np.array_equal(self._result(number), expected[str(number)]), (
                    f"graph {number} gives other numbers"
                )
                if number == VARIANTS - 1:
                    self._remove(cache.SUFFIX)

    def _remove(self, suffix: str) -> None:
        """Remove entries of the cache, and all kernels in memory."""
        KERNELS.forget()
        for path in (self.folder / "cache").glob(f"*{suffix}"):
            path.unlink()

    def _use_cache(self) -> None:
        os.environ |= {"GRAPHC_CACHE": "on", "GRAPHC_CACHE_DIR": str(self.folder / "cache")}

    @staticmethod
    def _result(number: int) -> np.ndarray:
        rows = 3 + number
        x = np.random.default_rng(number).standard_normal((rows, 24)).astype(np.float32) / 8
        return load_compiled(compile_graph(parse_graph(GRAPH.format(rows=rows)))).run([x])[0]

    def problems(self) -> Iterator[str]:
        folder = self.folder / "cache"
        if not folder.exists():
            return
        entries = (cache.SUFFIX, cache.PACK)
        yield from _inside(folder, lambda name: name.endswith(entries) or name in (cache.LOCKS, cache.INDEX))
        # NOTE: a pack whose kernels the index lacks is complete: the next writer replaces it, or it is evicted.
        for path in sorted(path for path in folder.iterdir() if path.name.endswith(entries)):
            try:
                read_sections(path)
            except ArtifactError as error:
                yield str(error)


# ---- exporting


class Exporting(Kind):
    """Two models that take the place of each other in one file."""

    def begin(self) -> None:
        for name in ("a", "b"):
            self._export(name, self.folder.parent / f"{name}.gcm")

    def once(self) -> None:
        for name in ("a", "b"):
            self._export(name, self.folder / "net.gcm")

    def act(self) -> None:
        while True:
            self.once()

    @staticmethod
    def _export(name: str, path: Path) -> None:
        gc.manual_seed(ord(name))
        net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
        gc.export(net, gc.zeros(1, 64), path=path)

    def problems(self) -> Iterator[str]:
        path = self.folder / "net.gcm"
        if any(p != path for p in self.folder.iterdir()):
            self.swept += 1
            yield from filter(None, [finish(lambda: self._export("a", path), self.folder.parent / "log")])
        yield from _inside(self.folder, lambda name: name == "net.gcm")
        complete = [(self.folder.parent / f"{name}.gcm").read_bytes() for name in ("a", "b")]
        if path.exists() and path.read_bytes() not in complete:
            yield "the file is neither of the two"


# ---- training


class TrainingAgain(Kind):
    """A training with checkpoints, resumed until it is done, and then another one."""

    def begin(self) -> None:
        os.environ["GRAPHC_CACHE_DIR"] = str(self.folder.parent / "programs")
        gc.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 3))
        batch = gc.Dim("batch", 1, 64)
        step = compile_step(net, cross_entropy, gc.optim.Adam(net.parameters(), lr=0.01), dims=[(batch,), (batch,)])
        x = np.random.default_rng(0).standard_normal((SAMPLES, 6)).astype(np.float32)
        y = (x @ np.random.default_rng(1).standard_normal((6, 3))).argmax(1)
        np.savez(self.folder.parent / "data.npz", x=x, y=y)
        entry = gc.Entry(step, gc.from_numpy(x[:BATCH]), gc.from_numpy(y[:BATCH]))
        gc.export({"train_step": entry}, path=self.folder.parent / "net.gcm")
        assert self._train(self.folder.parent / "whole") == 0

    def once(self) -> None:
        self.end()

    def act(self) -> None:
        self.end()
        time.sleep(MOST_SECONDS)

    def end(self) -> None:
        """Train until the end; run in a process of its own."""
        os.environ["GRAPHC_CACHE_DIR"] = str(self.folder.parent / "programs")
        assert self._train(self.folder) == 0
        (self.folder / "done").touch()

    def _train(self, folder: Path) -> int:
        home = self.folder.parent
        folder.mkdir(exist_ok=True)
        words = ["train", f"{home}/net.gcm", "--data", f"{home}/data.npz", "--epochs", EPOCHS, "--batch", BATCH]
        words += ["--shuffle", "--seed", 5, "--checkpoint", f"{folder}/run", "--every", EVERY, "--keep", 2, "--resume"]
        words += ["--log", 1, "--metrics", f"{folder}/metrics.jsonl", "-o", f"{folder}/trained.gcm"]
        return run_command([str(word) for word in words])

    def problems(self) -> Iterator[str]:
        if any(path.suffix == ".linked" for path in self.folder.iterdir()):
            self.swept += 1
            yield from filter(None, [finish(self.end, self.folder.parent / "log")])
        names = ("run", "metrics.jsonl", "trained.gcm", "done")
        yield from _inside(self.folder, names.__contains__)
        run, undisturbed = self.folder / "run", self.folder.parent / "whole"
        if run.exists():
            yield from _inside(run, lambda name: name == ".lock" or name.startswith("step-"))
            for path in run.glob("step-*"):
                try:
                    read_checkpoint(path)
                except ArtifactError as error:
                    yield str(error)
        trained = self.folder / "trained.gcm"
        if trained.exists() and trained.read_bytes() != (undisturbed / "trained.gcm").read_bytes():
            yield "the trained file has other bits than that of an undisturbed training"
        if (self.folder / "done").exists():
            if _measures(self.folder) != _measures(undisturbed):
                yield "the metrics differ from those of an undisturbed training"
            self.ends += 1
            shutil.rmtree(self.folder)
            self.folder.mkdir()


def _measures(folder: Path) -> list[dict[str, Any]]:
    """Return lines of measures without the times."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name != "seconds"} for line in lines]


# ---- killing

KINDS: dict[str, type[Kind]] = {"compile": Compiling, "export": Exporting, "train": TrainingAgain}


def kill_once(kind: Kind, delay: float, log: Path) -> str:
    """Start a process and kill it; return its output if it ended by itself."""
    process = fork(kind.act, log)
    time.sleep(delay)
    status = end(process)
    return "" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL else log.read_text()[-500:]


def run(count: int, seed: int, kinds: list[str]) -> tuple[dict[str, list[str]], int, int]:
    """Return the problems by kind, how many trainings came to their end, and how often a file was left for the next
    writer to remove; ``count`` kills in all."""
    chance = random.Random(seed)
    problems: dict[str, list[str]] = collections.defaultdict(list)
    load_command("train")
    with tempfile.TemporaryDirectory() as name, progress_bar(count, "kills") as bar:
        home = Path(name)
        log = home / "log"
        kinds_by_name, longest = {}, {}
        for kind in kinds:
            (home / kind).mkdir()
            kinds_by_name[kind] = KINDS[kind](home / kind / "work")
            for action in (kinds_by_name[kind].begin, kinds_by_name[kind].once, kinds_by_name[kind].once):
                start_time = time.monotonic()
                problem = "; ".join([p for p in (finish(action, log), *kinds_by_name[kind].problems()) if p])
                assert not problem, problem
            longest[kind] = time.monotonic() - start_time
        for number in range(count):
            kind = kinds[number % len(kinds)]
            item = kinds_by_name[kind]
            said = kill_once(item, chance.uniform(0, longest[kind]), log)
            problems[kind] += ([f"it ended by itself: {said}"] if said else []) + list(item.problems())
            bar.step()
        problems |= {kind: problems[kind] + _ended(item, log) for kind, item in kinds_by_name.items()}
    return (
        problems,
        sum(item.ends for item in kinds_by_name.values()),
        sum(item.swept for item in kinds_by_name.values()),
    )


def _ended(kind: Kind, log: Path) -> list[str]:
    """Return the problems when the last killed work comes to its end."""
    if isinstance(kind, Compiling):
        problem = finish(kind.check, log)
        return [problem] if problem else []
    if isinstance(kind, TrainingAgain):
        problem = finish(kind.end, log)
        return [*([problem] if problem else []), *kind.problems()]
    return list(kind.problems())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--kinds", default=",".join(KINDS), help="kinds of work, separated by commas: compile,export,train"
    )
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    start_time = time.monotonic()
    problems, ends, swept = run(options.count, options.seed, kinds)
    for kind in kinds:
        kills = len(range(kinds.index(kind), options.count, len(kinds)))
        print(f"{kind:8} {kills} kills, {len(problems[kind])} problems")
        for problem in problems[kind][:20]:
            print(f"  {problem}")
    print(f"{ends} trainings were resumed until their end, {swept} files were removed by the next writer")
    print(f"{time.monotonic() - start_time:.0f} s")
    return int(any(problems.values()))


if __name__ == "__main__":
    sys.exit(main())
