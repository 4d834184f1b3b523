"""Training public models through ``torch.compile(backend="graphc")``: ``python -m benchmarks.hub_training``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from benchmarks import hub
from benchmarks.harness.sweep import OWN, Result, find_library, restart_on_one_thread
from graphc.base.installation import group_command

DOUBLE_TOLERANCE = 1e-10
"""Largest relative difference of a loss in f64."""
FARTHEST = 3.0
"""Allowed distance of f32 weights from those of an f64 run, relative to eager PyTorch's distance."""
COLUMNS = ("model", "f64 losses", "f32 distance over eager's", OWN, *hub.PEERS, "vs eager", "vs inductor")


def agrees(result: Result) -> bool:
    """Return whether losses in f64 are eager's, and weights in f32 about as far from f64 as eager's.

    The median of the beginnings counts: where a value is within a rounding of a ReLU's corner, a run in f32, eager's as
    well as any, is a thousand times as far from that in f64 as others.
    """
    facts = result.facts
    if OWN in result.problems or "f32_distances" not in facts:
        return False
    far = [distance for distance in facts["f32_distances"] if not distance <= FARTHEST]
    return facts["f64_losses"] <= DOUBLE_TOLERANCE and 2 * len(far) < len(facts["f32_distances"])


def format_row(result: Result) -> list[str]:
    """Return the cells of a model."""
    distances = result.facts.get("f32_distances")
    losses = result.facts.get("f64_losses")
    return [
        result.name,
        "-" if losses is None else f"{losses:.1e}{'' if agrees(result) else '!'}",
        ", ".join(f"{distance:.2f}" for distance in distances) if distances else "-",
        *(hub.cell(result.ms(name), ".3g") for name in (OWN, *hub.PEERS)),
        *(hub.cell(hub.speed(result, peer), ".2f") for peer in hub.PEERS),
    ]


def format_rows(results: Sequence[Result]) -> str:
    """Return the table, a summary, and the failures."""
    agreed = f"{sum(map(agrees, results))} of {len(results)} agree"
    lines = [*hub.table(COLUMNS, map(format_row, results)), "", agreed, *hub.ratios(results), *hub.problems(results)]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Train the models; the status is 1 where one does not agree."""
    restart_on_one_thread("benchmarks.hub_training")
    models = find_library("benchmarks.models.hub")
    if models is None:
        print(f"torch is not installed: {group_command('hub')}", file=sys.stderr)
        return 2
    options = hub.parse(argv, models.TRAINED, __doc__, "benchmarks.workers.hub_training_row")
    results = hub.run_all(options.keys, options)
    if options.json:
        rows = [{**vars(r), "agrees": agrees(r), "ratios": {p: hub.speed(r, p) for p in hub.PEERS}} for r in results]
        json.dump(rows, sys.stdout, indent=1)
        print()
    else:
        print(format_rows(results))
    return 0 if all(map(agrees, results)) else 1


if __name__ == "__main__":
    sys.exit(main())
