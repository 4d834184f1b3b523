"""What tuning gains: two searches of each model, each from the untuned program: ``python -m benchmarks.tuning``.

Nothing is stored. The last column compares the two results in the rounds of a search.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.harness.process import pin
from benchmarks.harness.results import format_ms, format_table
from benchmarks.harness.sweep import make_parser, restart, select, tell
from benchmarks.roofline import program_of
from benchmarks.workloads import WORKLOADS
from graphc.codegen.machine.target import host_target
from graphc.compiler.duel import Duel, fight
from graphc.compiler.tuning import BUDGET, Tuning, built_with, tune

CASES = ("resnet50_b1", "minilm_b8_t128", "train_net_b64", "mobilenet_b1")
COLUMNS = ("model", "untuned, ms", "gain", "choices", "seconds", "second gain", "choices", "seconds", "second / first")


def measure(name: str, seconds: float) -> tuple[list[Tuning], Duel]:
    """Return two searches of a model, and the duel of the second result against the first one."""
    stages, inputs, weights = program_of(WORKLOADS[name], host_target())
    tunings = [tune(stages, inputs, weights, seconds=seconds, tell=lambda text: tell(f"{name}: {text}")) for _ in "12"]
    first, second = (built_with(tuning, stages, inputs, weights) for tuning in tunings)
    return tunings, fight(first.time, second.time, gain=1.0)


def cells_of(tuning: Tuning) -> list[str]:
    """Return gain, choices and seconds of a search."""
    blocks = sum(k.chosen != k.estimated for k in tuning.kernels) if tuning.kept and tuning.blocks else 0
    texts = [f"`{tuning.changes}`"] if tuning.changes else []
    texts += [f"blocks of {blocks} kernels"] if blocks else []
    gain = f"{tuning.before / tuning.after:.2f}" if tuning.kept else "1"
    return [gain, ", ".join(texts) or "none", f"{tuning.seconds:.0f}"]


def row_of(name: str, tunings: Sequence[Tuning], duel: Duel) -> list[str]:
    """Return the line of a model."""
    untuned = format_ms(1e3 * tunings[0].before)
    return [name, untuned, *(cell for t in tunings for cell in cells_of(t)), f"{duel.gain:.2f}"]


def main(argv: Sequence[str] | None = None) -> int:
    options = select(make_parser("benchmarks.tuning", __doc__, seconds=BUDGET), list(WORKLOADS), argv, CASES)
    results: dict[str, Any] = {name: measure(name, options.seconds) for name in options.cases}
    if options.json:
        facts = {n: {"searches": [t.as_json() for t in ts], "second": duel.gain} for n, (ts, duel) in results.items()}
        print(json.dumps(facts, indent=1))
    else:
        print(format_table(COLUMNS, [row_of(name, *result) for name, result in results.items()]))
    return 0


if __name__ == "__main__":
    restart("benchmarks.tuning")
    pin(1)
    sys.exit(main())
