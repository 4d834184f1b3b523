"""The net of the CUDA path: ops with gradients, models, training steps, random graphs, named sizes on a device.

``python -m tools.nets.cuda`` compares all of them on the emulated device with native code of the CPU;
``--kind random --count 40 --seed 3`` draws as many of each kind, ``--device cuda`` uses a GPU, and
``--case op/softmax-0/first`` runs one by name. Seed s draws the random graphs from number 300 s on.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tools.cuda.cases import KINDS, WORKLOADS_KIND, Case, cases, named_cases
from tools.cuda.runs import CaseOutcome, compile_all, judged
from tools.nets.run import BAD, own_cache, parser_of
from tools.progress import progress_bar

SHOWN = 40
"""Most bad cases to print."""


def arguments() -> argparse.ArgumentParser:
    """Return the options of the command."""
    parser = parser_of("nets.cuda", __doc__ or "", None)
    parser.add_argument("--device", default="cuda-emu", help="device: cuda-emu (default), cuda, cuda:1")
    parser.add_argument(
        "--kind",
        action="append",
        choices=(*KINDS, WORKLOADS_KIND),
        help=f"kind of cases; repeat for several (default: {', '.join(KINDS)})",
    )
    parser.add_argument("--batch", type=int, default=400, help="number of cases to compile together (400)")
    parser.add_argument(
        "--case", action="append", default=[], help="run only the case of this name; repeat for several"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 where no case is bad."""
    options = arguments().parse_args(argv)
    selected = chosen_cases(options)
    start = time.monotonic()
    with own_cache(False):
        outcomes = compare_cases(selected, options.device, options.batch, options.seconds)
    summary = summarize(outcomes, len(selected), time.monotonic() - start) | {"device": options.device}
    _print(summary, options.json)
    return int(bool(summary["bad"]))


def chosen_cases(options: argparse.Namespace) -> list[Case]:
    """Return the selected cases."""
    if options.case:
        return named_cases(options.case)
    return cases(options.kind or KINDS, options.seed, options.count)


def compare_cases(selected: Sequence[Case], device: str, batch: int, seconds: float | None = None) -> list[CaseOutcome]:
    """Return the outcomes of all cases that start in time."""
    end = None if seconds is None else time.monotonic() + seconds
    outcomes: list[CaseOutcome] = []
    with progress_bar(2 * len(selected), "cases") as bar:
        for first in range(0, len(selected), batch):
            if end is not None and time.monotonic() >= end:
                break
            compiled = compile_all(selected[first : first + batch], device, lambda _: bar.step())
            for outcome in judged(compiled, lambda _: bar.step()):
                outcomes.append(outcome)
                bar.note(f"{sum(o.kind in BAD for o in outcomes)} bad")
    return outcomes


def summarize(outcomes: Sequence[CaseOutcome], requested: int, seconds: float) -> dict[str, Any]:
    """Count by kind of case and outcome, the bad ones, and the largest difference of the good ones, in units of the
    largest element of the results of its call."""
    counts: dict[str, Counter[str]] = {}
    worst: dict[str, float] = {}
    for outcome in outcomes:
        kind = kind_of(outcome.case)
        counts.setdefault(kind, Counter())[outcome.kind] += 1
        if outcome.kind == "equal":
            worst[kind] = max(worst.get(kind, 0.0), outcome.worst)
    bad = {o.case: o.detail for o in outcomes if o.kind in BAD}
    refused = {o.case: o.detail for o in outcomes if o.kind == "refused"}
    return {
        "asked": requested,
        "cases": len(outcomes),
        "outcomes": {kind: dict(c) for kind, c in counts.items()},
        "worst": worst,
        "refused": refused,
        "bad": bad,
        "seconds": round(seconds, 1),
    }


def kind_of(name: str) -> str:
    """Return the row of the summary: ``op value``, ``op first``, ``family step`` or ``random``."""
    words = name.split("/")
    if words[0] in ("op", "family"):
        return " ".join([words[0], *words[2:]])
    return words[0]


def _print(summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(summary))
        return
    print(f"{summary['device']}: {summary['cases']} of {summary['asked']} cases in {summary['seconds']} s")
    for kind, counts in summary["outcomes"].items():
        text = ", ".join(f"{n} {o}" for o, n in counts.items())
        print(f"  {kind:18} {text}; largest difference {summary['worst'].get(kind, 0.0):.1e}")
    for case, detail in list(summary["bad"].items())[:SHOWN]:
        print(f"  {case}: {(detail.splitlines() or [''])[0]}")
    if len(summary["bad"]) > SHOWN:
        print(f"  and {len(summary['bad']) - SHOWN} more (--json)")


if __name__ == "__main__":
    sys.exit(main())
