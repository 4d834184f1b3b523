"""Run the public conformance suite of the array API standard on ``graphc.array_api`` and print the outcomes.

``python -m tools.array_api --suite PATH`` needs a checkout of data-apis/array-api-tests with its submodule and its
requirements installed. ``--max-examples`` sets the suite's number of examples (100), ``--only`` selects tests by a part
of their name. ``tools/array_api_exclusions.txt`` lists tests that are expected to fail, each group with its reason: the
exit status is 1 where another test fails, or where one of these passes. The suite itself leaves out element types that
graphc lacks.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from graphc import array_api

ROOT = Path(__file__).resolve().parent.parent
EXCLUSIONS = ROOT / "tools" / "array_api_exclusions.txt"
KINDS = ("passed", "failed", "excluded", "excluded, passed", "skipped")
TYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)
"""The element types of the standard."""
_TYPES = "array_api_tests/dtype_helpers.py"


class SuiteOutcome(NamedTuple):
    """Outcome of one test."""

    name: str
    """``test_sorting_functions.py::test_sort[...]``."""
    kind: str
    """One of ``KINDS``."""
    message: str
    """Why it failed or was skipped."""


def exclusions(text: str) -> dict[str, str]:
    """Return names of tests, each with its reason: the comment above its group."""
    reasons: dict[str, str] = {}
    reason, before = "", ""
    for line in text.splitlines():
        if line.startswith("#"):
            reason = f"{reason} {line[1:].strip()}" if before.startswith("#") else line[1:].strip()
        elif line:
            reasons[line] = reason
        before = line
    return reasons


def prepared(suite: Path, folder: Path) -> Path:
    """Return a copy of the suite for a run to write to; raise SystemExit for a folder that does not hold the suite."""
    if not (suite / _TYPES).exists():
        raise SystemExit(f"{suite} is not a checkout of data-apis/array-api-tests")
    copy = folder / "suite"
    shutil.copytree(suite, copy, ignore=shutil.ignore_patterns(".git", ".hypothesis", "__pycache__"))
    return copy


def missing_types() -> list[str]:
    """Return the element types of the standard that graphc has not."""
    return [name for name in TYPES if not hasattr(array_api, name)]


def run(suite: Path, examples: int, only: str | None) -> list[SuiteOutcome]:
    """Return the outcomes of the tests of a suite, in order; raises SystemExit where it cannot be run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy, report = prepared(suite, folder), folder / "report.xml"
        command = [sys.executable, "-m", "pytest", "array_api_tests", "-q", "-p", "no:cacheprovider", "--tb=line"]
        command += [f"--max-examples={examples}", "--disable-deadline", f"--junitxml={report}"]
        command += ["-k", only] if only else []
        paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {"ARRAY_API_TESTS_MODULE": "graphc.array_api", "PYTHONPATH": paths}
        environment["ARRAY_API_TESTS_SKIP_DTYPES"] = ",".join(missing_types())
        subprocess.run(command, cwd=copy, env=environment, stdout=sys.__stderr__, check=False)
        if not report.exists():
            raise SystemExit(f"{suite}: the suite wrote no report; see pytest's output above")
        return list(outcomes(ElementTree.parse(report).iter("testcase")))


def outcomes(cases: Iterable[ElementTree.Element]) -> Iterable[SuiteOutcome]:
    """Yield the outcomes in a report of pytest (JUnit's XML)."""
    for case in cases:
        file = case.get("classname", "").split(".")
        inner = "::".join([*file[2:], case.get("name", "")])
        yield SuiteOutcome(f"{file[1]}.py::{inner}" if len(file) > 1 else inner, *_kind(case))


def _kind(case: ElementTree.Element) -> tuple[str, str]:
    for tag, kind in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        position = case.find(tag)
        if position is not None:
            return kind, position.get("message") or position.text or ""
    return "passed", ""


def judged(outcomes: Iterable[SuiteOutcome], expected: Iterable[str]) -> list[SuiteOutcome]:
    """Return the outcomes, with excluded tests marked as such; ``*`` in an exclusion matches any text."""
    patterns = [re.compile(".*".join(map(re.escape, name.split("*")))) for name in expected]
    renamed = {"failed": "excluded", "passed": "excluded, passed"}
    return [
        o._replace(kind=renamed.get(o.kind, o.kind)) if any(p.fullmatch(o.name) for p in patterns) else o
        for o in outcomes
    ]


def table(outcomes: Sequence[SuiteOutcome]) -> str:
    """Return a table of how many tests of each file passed, failed and were left out."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        counts[outcome.name.split("::")[0]][outcome.kind] += 1
    counts["all"] = Counter(o.kind for o in outcomes)
    lines = [f"{'':46}" + "".join(f"{kind:>18}" for kind in KINDS)]
    lines += [f"{file:46}" + "".join(f"{of[kind]:18}" for kind in KINDS) for file, of in counts.items()]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--suite", type=Path, required=True, help="folder with a checkout of data-apis/array-api-tests")
    parser.add_argument("--max-examples", type=int, default=100, help="number of examples for each test")
    parser.add_argument("--only", help="run only tests whose name matches, as pytest's -k")
    options = parser.parse_args(argv)
    outcomes = judged(run(options.suite, options.max_examples, options.only), exclusions(EXCLUSIONS.read_text("utf-8")))
    wrong = [o for o in outcomes if o.kind in ("failed", "excluded, passed")]
    for outcome in wrong:
        sys.stdout.write(
            f"{outcome.kind}: {outcome.name}\n  {outcome.message.splitlines()[0][:200] if outcome.message else ''}\n"
        )
    sys.stdout.write(table(outcomes))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
