"""Judges the front end by the tables of PyTorch and numpy: ``python -m tools.conformance --column forward --ops add,mul``.

Without ``--all`` a seeded sample of each operator runs. Needs the extra ``conformance``.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tools.conformance.operators import COLUMNS, Tally, judge, operators, standing
from tools.progress import progress_bar

SAMPLES = 12
"""How many samples of an operator run in each column, without ``--all``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; 1 where a sample failed."""
    options = _arguments(argv)
    torch.set_num_threads(1)
    found = run(options)
    if options.json:
        json.dump(found, sys.stdout, indent=1)
        print()
    else:
        print("\n".join(summary(found)))
    if options.results:
        options.results.write_text(json.dumps(found), encoding="utf-8")
    return int(any(row["failed"] for row in found["rows"]))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.conformance", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ops", default="", metavar="NAMES", help="operators, with commas between; all without")
    parser.add_argument("--column", action="append", choices=list(COLUMNS), help="what is compared; may be repeated")
    parser.add_argument("--all", action="store_true", help=f"all samples, not {SAMPLES} of each operator")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of samples")
    parser.add_argument("--json", action="store_true", help="write what became of each operator to stdout")
    parser.add_argument("--results", type=Path, metavar="FILE", help="write the same to a file")
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """What became of the operators in each column."""
    infos = operators(options.ops.split(",") if options.ops else ())
    columns = options.column or list(COLUMNS)
    mapped = [i for i in infos if standing(i) == "mapped"]
    rows = []
    with progress_bar(len(mapped) * len(columns), "operators") as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for column in columns:
            for info in mapped:
                bar.note(f"{column} {info.formatted_name}")
                tally: Tally = judge(info, column, None if options.all else SAMPLES, options.seed)
                rows.append({"op": info.formatted_name, "column": column, **tally._asdict()})
                bar.step()
    return {"standing": {i.formatted_name: standing(i) for i in infos}, "names": _names(infos), "rows": rows}


def _names(infos: Sequence[Any]) -> dict[str, str]:
    return {i.name: standing(i) for i in infos}


def summary(found: dict[str, Any]) -> list[str]:
    """What failed, and one line for each column."""
    lines = [f"{r['column']} {r['op']} {detail}" for r in found["rows"] for detail in r["failed"]]
    for column in dict.fromkeys(r["column"] for r in found["rows"]):
        rows = [r for r in found["rows"] if r["column"] == column]
        passed, failed = sum(r["passed"] for r in rows), sum(len(r["failed"]) for r in rows)
        excluded = sum(n for r in rows for n in r["excluded"].values())
        share = 100 * passed / max(passed + failed, 1)
        lines.append(f"{column}: {passed} of {passed + failed} samples ({share:.2f}%), {excluded} left out")
    names = list(found["names"].values())
    missing = [n for n, s in found["names"].items() if s == "missing"]
    lines.append(f"names: {names.count('mapped')} mapped, {len(missing)} missing of {len(names)}: {' '.join(missing)}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
