"""Planted faults: mechanical changes of the compiler, and whether the tests notice them.

``python -m tools.mutants --seed 1 --count 200 --results FILE`` applies one change at a time to the sources of
``--paths``, in a copy of the checked out commit. A mutant with the same quick digests of all programs is equivalent.
Another mutant is killed if it fails a test, ends the interpreter or hangs. Tests run in groups, the test file of the
changed module first; ``--groups N`` stops after the first N, and a later run with more continues with the surviving
mutants. FILE records the results, so that a run continues where another one ended.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from random import Random

from tools import child, first_failure
from tools.mutations import Mutation, find_mutations, is_python

ROOT = Path(__file__).resolve().parent.parent
PATHS = ("graphc/passes", "graphc/codegen")
GROUPS = 4
"""Test file of the module, its folder, tests of whole programs, all tests."""
CPU_S = (90, 300, 1800, 1800, 7200)
"""Seconds of processor time after which digests, and each group of tests, count as hanging."""
WALL_S = 4 * 3600
"""Wall time limit, for a process that waits instead of computing."""
MEMORY = 16 << 30
"""Bytes of address space for each process."""
GOAL = 0.95
WHOLE_PROGRAMS = ("tests/end_to_end", "tests/ops/test_every_op.py", "tests/compiler", "tests/calls/test_function.py")


@dataclass(frozen=True)
class Result:
    """Outcome of a mutant."""

    number: int
    path: str
    line: int
    kind: str
    change: str
    status: str
    """``equivalent``, ``killed``, or ``alive`` after ``groups``."""
    groups: int = 0
    """Number of groups of tests that have run."""
    by: str = ""
    """The test that failed, or ``hang``, or ``import``."""


@dataclass(frozen=True)
class Mutant:
    """A change of a file."""

    number: int
    path: str
    mutation: Mutation

    def result(self, source: str, status: str, groups: int = 0, by: str = "") -> Result:
        """Return the outcome, as stored in the file of results."""
        m = self.mutation
        return Result(self.number, self.path, m.line, m.kind, m.describe(source)[:200], status, groups, by)


def choose(root: Path, paths: Sequence[str], seed: int, count: int) -> list[Mutant]:
    """Choose ``count`` changes of the sources below ``paths``, the same ones for the same seed and sources."""
    files = sorted(file for path in paths for file in (root / path).rglob("*.py"))
    sources = {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files}
    candidates = [(name, mutation) for name, source in sources.items() for mutation in find_mutations(source)]
    Random(seed).shuffle(candidates)
    good = ((name, m) for name, m in candidates if is_python(m.apply(sources[name])))
    return [Mutant(i, name, m) for i, (name, m) in zip(range(count), good, strict=False)]


def groups_of(path: str, root: Path) -> list[list[str]]:
    """Return the tests that run for a changed module, in order."""
    module = PurePosixPath(path.removeprefix("graphc/"))
    folder = PurePosixPath("tests") / module.parent
    mirror = sorted(p.relative_to(root).as_posix() for p in (root / folder).glob(f"test_{module.stem}*.py"))
    groups = [mirror, [folder.as_posix()], [p for p in WHOLE_PROGRAMS if (root / p).exists()], ["tests"]]
    return [[name for name in group if (root / name).exists()] for group in groups]


class Copy:
    """A copy of the tree in which one file at a time is changed."""

    def __init__(self, archive: bytes, folder: Path, original: Copy | None = None):
        self.folder = folder
        self.original = original
        with zipfile.ZipFile(BytesIO(archive)) as packed:
            packed.extractall(folder)
        shutil.copy2(first_failure.__file__, folder / "tools")
        # NOTE: compiled files are matched by hash. Their usual match by time misses a change within one second.
        command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "."]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        self.sound: dict[str, bool] = {}
        """Whether a test passes on the unchanged source, by test."""

    @contextlib.contextmanager
    def changed(self, mutant: Mutant) -> Iterator[str]:
        """Change the file; return its source as it is otherwise."""
        file = self.folder / mutant.path
        source = file.read_text(encoding="utf-8")
        try:
            file.write_text(mutant.mutation.apply(source), encoding="utf-8")
            yield source
        finally:
            file.write_text(source, encoding="utf-8")

    def run(self, arguments: Sequence[str], cpu_s: int, note: Path = Path(os.devnull)) -> child.Ended:
        """Run ``python -m ...`` in the copy; ``note`` is for the first test that fails."""
        settings = {"PYTHONDONTWRITEBYTECODE": "1", "GRAPHC_CACHE": "off", "PYTHONPATH": str(self.folder)}
        settings[first_failure.VARIABLE] = str(note)
        words = [sys.executable, "-m", *arguments]
        return child.run(words, WALL_S, folder=self.folder, environment=settings, cpu_s=cpu_s, memory=MEMORY)

    def failing_test(self, names: Sequence[str], cpu_s: int) -> str:
        """Return the first test that fails only because of the change; "hang"; empty where none does."""
        deselected: list[str] = []
        note = self.folder.with_suffix(".failure")
        while True:
            note.unlink(missing_ok=True)
            # Long tables as a whole, not the share of them that other runs take.
            options = ["-x", "-q", "-m", "not slow or sampled", "-p", "no:cacheprovider", "-p", first_failure.__name__]
            ended = self.run(["pytest", *options, *(f"--deselect={test}" for test in deselected), *names], cpu_s, note)
            if ended.is_late:
                return "hang"
            if ended.status in (0, 5):  # 5: pytest collected no tests
                return ""
            if not note.exists():
                return "import" if ended.status > 0 else f"signal {-ended.status}"
            test = note.read_text(encoding="utf-8")
            if self.original is None or test in deselected or self.original.passes(test):
                return test
            deselected.append(test)

    def passes(self, test: str) -> bool:
        """Return whether a test passes here."""
        if test not in self.sound:
            self.sound[test] = self.run(["pytest", "-q", "-p", "no:cacheprovider", test], CPU_S[1]).status == 0
        return self.sound[test]


def judge(copy: Copy, mutant: Mutant, base: Path, previous: Result | None, groups: int) -> Result:
    """Judge a mutant by the groups that have not run according to ``previous``."""
    with copy.changed(mutant) as source:
        first = previous.groups if previous else 0
        if previous is None:
            # NOTE: an exception in the digests counts as a difference; the tests then say whether they notice.
            ended = copy.run(["tools.digests", "--quick", "--first", "--compare", str(base)], CPU_S[0])
            if ended.status == 0:
                return mutant.result(source, "equivalent")
        tests = groups_of(mutant.path, copy.folder)
        for number in range(first, groups):
            by = copy.failing_test(tests[number], CPU_S[number + 1]) if tests[number] else ""
            if by:
                return mutant.result(source, "killed", number + 1, by)
        return mutant.result(source, "alive", groups)


class Run:
    """All mutants of a seed, with the results so far."""

    def __init__(self, options: argparse.Namespace, folder: Path):
        self.options = options
        self.folder = folder
        self.file: Path = options.results
        self.known: dict[int, Result] = {}
        self.commit = ""
        if self.file.exists():
            head, *lines = self.file.read_text(encoding="utf-8").splitlines()
            self.commit = json.loads(head)["commit"]
            if json.loads(head)["seed"] != options.seed:
                raise SystemExit(f"{self.file} holds mutants of seed {json.loads(head)['seed']}")
            for result in (Result(**json.loads(line)) for line in lines):
                self.known[result.number] = result
        else:
            self.commit = _git("rev-parse", "HEAD").decode().strip()
            self._append({"commit": self.commit, "seed": options.seed})
        self.archive = _git("archive", "--format=zip", self.commit)

    def _append(self, record: dict[str, object]) -> None:
        with self.file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(record) + "\n")

    def go(self) -> None:
        """Judge the remaining mutants until the time is up."""
        original = Copy(self.archive, self.folder / "original")
        mutants = choose(original.folder, self.options.paths, self.options.seed, self.options.count)
        remaining = [m for m in mutants if self._is_open(self.known.get(m.number))]
        if not remaining:
            return
        base = self.folder / "base.json"
        base.write_bytes(_digests(original))
        end = time.monotonic() + self.options.seconds
        with ThreadPoolExecutor(self.options.jobs) as pool:
            for job in range(self.options.jobs):
                pool.submit(self._work, remaining[job :: self.options.jobs], original, base, end).add_done_callback(
                    _raise
                )

    def _is_open(self, result: Result | None) -> bool:
        return result is None or (result.status == "alive" and result.groups < self.options.groups)

    def _work(self, mutants: Sequence[Mutant], original: Copy, base: Path, end: float) -> None:
        copy = Copy(self.archive, self.folder / f"job{mutants[0].number if mutants else 0}", original)
        for mutant in mutants:
            if time.monotonic() > end:
                return
            result = judge(copy, mutant, base, self.known.get(mutant.number), self.options.groups)
            self.known[mutant.number] = result
            self._append(asdict(result))
            print(describe(result), file=sys.stderr, flush=True)


def _raise(future: object) -> None:
    future.result()  # type: ignore[attr-defined]


def _digests(copy: Copy) -> bytes:
    ended = copy.run(["tools.digests", "--quick", "--json"], 10 * CPU_S[0])
    if ended.status:
        raise SystemExit(f"the digests of the unchanged tree fail:\n{ended.output[-2000:]}")
    return ended.output[ended.output.index("{") :].encode()


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], stdout=subprocess.PIPE, check=True).stdout


def describe(result: Result) -> str:
    """Return one line about a result."""
    end = f" by {result.by}" if result.by else f" after {result.groups} groups" if result.status == "alive" else ""
    return f"{result.number}: {result.path}:{result.line} {result.kind}: {result.change}: {result.status}{end}"


def summary(results: Sequence[Result]) -> str:
    """Return the totals of all results, and the surviving mutants."""
    counts = Counter(r.status for r in results)
    different = counts["killed"] + counts["alive"]
    share = counts["killed"] / different if different else 1.0
    alive = [describe(r) for r in results if r.status == "alive"]
    head = f"{len(results)} mutants: {counts['equivalent']} equivalent; {counts['killed']} of {different} killed"
    return "\n".join([*alive, f"{head} ({share:.1%})"])


def main(argv: Sequence[str] | None = None) -> int:
    """Run; return 1 where fewer than GOAL of what all groups have seen are killed."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no further mutant after this time")
    parser.add_argument(
        "--paths", nargs="+", default=list(PATHS), help=f"files and folders to change (default: {' '.join(PATHS)})"
    )
    parser.add_argument("--groups", type=int, choices=range(1, GROUPS + 1), default=GROUPS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"))
    options = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="graphc-mutants-"))
    try:
        run = Run(options, folder)
        run.go()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    results = [run.known[number] for number in sorted(run.known)]
    print(summary(results))
    different = [r for r in results if r.status != "equivalent"]
    return 1 if sum(r.status == "killed" for r in different) < GOAL * len(different) else 0


if __name__ == "__main__":
    sys.exit(main())
