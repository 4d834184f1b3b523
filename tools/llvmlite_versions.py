"""Tests with each release of llvmlite that graphc admits: ``python -m tools.llvmlite_versions [--versions 0.49,0.50]``.

A release brings an LLVM of its own, whose text and passes differ. Each one gets an environment with graphc and numpy,
then a representative subset of the tests. The status is 1 where one fails; ``--json`` prints a record for each.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import sys
import tempfile
import tomllib
import venv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tools import child

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("0.45", "0.46", "0.47", "0.48", "0.49", "0.50")
"""Minor releases that graphc admits, oldest first; pyproject.toml admits exactly these."""
SUBSET = (
    "tests/codegen/llvm",
    "tests/codegen/door",
    "tests/codegen/link",
    "tests/runtime",
    "tests/c_library",
    "tests/calls/test_function.py",
    "tests/end_to_end/test_random_graphs.py",
)
_PROBE = "import llvmlite, llvmlite.binding as b; print(llvmlite.__version__, '.'.join(map(str, b.llvm_version_info)))"
_FAILED = 1


@dataclass(frozen=True)
class ReleaseOutcome:
    """Result of the subset with one release of llvmlite."""

    version: str
    """Installed release, such as ``0.50.0``."""
    llvm: str
    passed: bool
    summary: str
    """Closing line of pytest, or the last line of an installation that failed."""
    cpu_seconds: float
    """Processor time of installation and tests."""


def requirement(version: str) -> str:
    """Return the requirement for the patch releases of a minor release.

    >>> requirement("0.49")
    'llvmlite==0.49.*'
    """
    return f"llvmlite=={version}.*"


def admitted(versions: Sequence[str] = VERSIONS) -> str:
    """Return the requirement that admits a range of minor releases.

    >>> admitted(("0.49", "0.50"))
    'llvmlite>=0.49,<0.51'
    """
    major, minor = versions[-1].split(".")
    return f"llvmlite>={versions[0]},<{major}.{int(minor) + 1}"


def required() -> str:
    """Return the requirement of llvmlite in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return next(text for text in project["dependencies"] if re.match(r"llvmlite\b", text))


def check(version: str, folder: Path, tests: Sequence[str] = SUBSET) -> ReleaseOutcome:
    """Install graphc with one release of llvmlite into a new environment in ``folder`` and run the tests there."""
    before = _children_seconds()
    venv.create(folder, with_pip=True, upgrade_deps=True)
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # NOTE: without dependencies, because graphc's requirement may exclude the tested release.
    commands = (
        [*pip, str(ROOT), "--group", f"{ROOT}/pyproject.toml:test"],
        [*pip, "--no-deps", requirement(version)],
        [python, "-c", _PROBE],
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests],
    )
    installed, llvm = version, ""
    line = ""
    for command in commands:
        done = child.run(command)
        line = (done.output.strip().splitlines() or [""])[-1]
        if done.status:
            sys.stderr.write(done.output)
            return ReleaseOutcome(installed, llvm, False, line, _children_seconds() - before)
        if command[-1] == _PROBE:
            installed, llvm = line.split()
    return ReleaseOutcome(installed, llvm, True, line, _children_seconds() - before)


def format_row(outcome: ReleaseOutcome) -> str:
    """Return a row for the table of docs/versions.md."""
    result = "passes" if outcome.passed else "fails"
    return f"| {outcome.version} | {outcome.llvm or '-'} | {result}: {outcome.summary} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Test the releases one after the other; the status is 1 where one fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--versions", default=",".join(VERSIONS), help="minor releases, separated by commas")
    parser.add_argument("--json", action="store_true", help="print the records as JSON")
    options = parser.parse_args(argv)
    versions = options.versions.split(",")
    outcomes = []
    for number, version in enumerate(versions, 1):
        print(f"{number} of {len(versions)}: llvmlite {version}: installing and testing", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            outcomes.append(check(version, Path(folder) / "venv"))
        print(format_row(outcomes[-1]), file=sys.stderr if options.json else sys.stdout, flush=True)
    if options.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    return 0 if all(outcome.passed for outcome in outcomes) else _FAILED


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(usage.ru_utime + usage.ru_stime, 1)


if __name__ == "__main__":
    sys.exit(main())
