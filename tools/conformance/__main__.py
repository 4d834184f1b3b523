"""Judge the front end by the tables of PyTorch and numpy: ``python -m tools.conformance --only add,mul``.

Without ``--all`` a seeded sample of each subject runs. Needs the extra ``conformance``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tools.conformance import functions, layers, operators, optimizers, singular
from tools.conformance.page import page, summary
from tools.conformance.tally import judge
from tools.progress import progress_bar

SUITES: dict[str, Any] = {
    "operators": operators,
    "layers": layers,
    "optimizers": optimizers,
    "functions": functions,
    "singular": singular,
}
SAMPLES = 12
"""Samples of an operator or a layer in each column, without ``--all``."""
_SAMPLED = ("operators", "layers")
"""Tables of which a sample is taken; the others are short."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 1 where a sample failed."""
    options = _arguments(argv)
    torch.set_num_threads(1)
    results = (
        _joined([json.loads(f.read_text(encoding="utf-8")) for f in options.read]) if options.read else run(options)
    )
    if options.results:
        options.results.write_text(json.dumps(results), encoding="utf-8")
    if options.write:
        options.write.write_text(page(results), encoding="utf-8")
    if options.json:
        json.dump(results, sys.stdout, indent=1)
        print()
    else:
        print("\n".join(summary(results)))
    return int(any(row["failed"] for row in results["rows"]))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.conformance", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--suite", action="append", choices=list(SUITES), help="judge this table; may be repeated")
    parser.add_argument("--column", action="append", help="judge this column, a kind of comparison; may be repeated")
    parser.add_argument("--only", default="", metavar="NAMES", help="subjects, separated by commas (default: all)")
    parser.add_argument(
        "--samples", type=int, default=SAMPLES, help=f"number of samples of each operator or layer (default: {SAMPLES})"
    )
    parser.add_argument("--all", action="store_true", help="run all samples of each subject")
    parser.add_argument("--seed", type=int, default=0, help="seed for drawing samples")
    parser.add_argument("--json", action="store_true", help="print the outcome of each subject as JSON")
    parser.add_argument("--results", type=Path, metavar="FILE", help="write the same JSON to a file")
    parser.add_argument(
        "--read",
        type=Path,
        action="append",
        metavar="FILE",
        help="read the outcomes from such files instead of running",
    )
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the page of tables to a file")
    return parser.parse_args(argv)


def _joined(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the results of several runs as one; of a subject and column the last one."""
    rows = {(r["suite"], r["column"], r["subject"]): r for run in runs for r in run["rows"]}
    standing = {suite: states for run in runs for suite, states in run["standing"].items()}
    rows = [r for (suite, _, subject), r in rows.items() if standing[suite].get(subject) == "mapped"]
    commits = list(dict.fromkeys(c for run in runs for c in run["commits"]))
    order = list(SUITES)
    rows.sort(key=lambda r: (order.index(r["suite"]), list(SUITES[r["suite"]].COLUMNS).index(r["column"])))
    return {"standing": standing, "rows": rows, "seed": runs[0]["seed"], "commits": commits}


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Judge the subjects of each suite in each column; return their outcomes as plain data."""
    suites = {name: SUITES[name] for name in options.suite or SUITES}
    standing = {name: suite.standing() for name, suite in suites.items()}
    only = set(options.only.split(",")) if options.only else None
    work = [
        (name, subject, column)
        for name, suite in suites.items()
        for column in suite.COLUMNS
        if not options.column or column in options.column
        for subject, state in standing[name].items()
        if state == "mapped" and (only is None or subject in only)
    ]
    rows = []
    with progress_bar(len(work), "subjects") as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, subject, column in work:
            bar.note(f"{column} {subject}")
            most = options.samples if name in _SAMPLED and not options.all else None
            tally = judge(suites[name], subject, column, most, options.seed)
            for text in () if options.json else tally.failed:
                print(name, column, subject, text, flush=True)
            rows.append({"suite": name, "subject": subject, "column": column, "most": most, **tally._asdict()})
            bar.step()
    return {"standing": standing, "rows": rows, "seed": options.seed, "commits": [_commit()]}


def _commit() -> str:
    """Return the state of the code, as git names it."""
    described = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    return subprocess.run(described, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
