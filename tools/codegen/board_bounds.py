"""Proven limits of instructions of all ops on emulated boards, beside the instructions that they take.

``python -m tools.codegen.board_bounds --target cortex-m4`` proves samples of all ops (``--count N --seed S`` draws some
at random), prints how many have a bound, and counts the instructions of those that the board's clock can count. Exits 1
where a sample takes more than is proven.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import Target, target_named
from graphc.compiler.realtime import prove_modules
from graphc.errors import RealtimeError
from tools.codegen import cross_ops
from tools.codegen.board_ops import count_instructions
from tools.codegen.boards import BOARDS
from tools.codegen.wasm_ops import object_of

MOST = 3_000_000
"""Instructions of a call that the board's clock can count."""
BOUNDED, OUTSIDE, UNBOUNDED, REFUSED = "bounded", "bounded without functions outside", "a loop without bound", "refused"


def bound_of(case: cross_ops.Program, target: Target) -> tuple[str, int]:
    """Return the kind of a sample's limit, and its instructions; 0 without a limit."""
    try:
        report = prove_modules([case.module], target, ENTRY, name=case.title)
    except RealtimeError:
        return REFUSED, 0
    if report.instructions is None:
        return UNBOUNDED, 0
    return OUTSIDE if report.outside else BOUNDED, report.instructions


def counted(cases: Sequence[cross_ops.Program], target: Target, folder: Path) -> list[int]:
    """Return the instructions that a call of each sample takes on the board. Raises CalledProcessError."""
    objects = [object_of(case.module, f"case_{i}", target) for i, case in enumerate(cases)]
    return count_instructions(objects, lambda some: cross_ops.input_of(cases[some]), target, folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures of one board. Return 1 where a sample takes more than is proven, and 2 without a tool."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", choices=BOARDS, required=True)
    parser.add_argument("--count", type=int, help="number of samples to draw (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    target = target_named(options.target)
    if reason := cross_ops.missing_tool(target):
        print(f"{options.target} cannot run here: {reason}", file=sys.stderr)
        return 2
    cases = cross_ops.chosen(target, options.count, options.seed)
    bounds = [bound_of(case, target) for case in cases]
    kinds = Counter(kind for kind, _ in bounds)
    print(f"{options.target}: {len(cases)} samples", *(f"{n} {kind}" for kind, n in kinds.most_common()), sep=", ")
    some = [(case, n) for case, (kind, n) in zip(cases, bounds, strict=True) if kind == BOUNDED and n <= MOST]
    with tempfile.TemporaryDirectory() as folder:
        pairs = [*zip(some, counted([case for case, _ in some], target, Path(folder)), strict=True)]
    more = [f"{case}: {count} and not {most} at most" for (case, most), count in pairs if count > most]
    one = sum(count < most - 1 for (_, most), count in pairs)
    part = sum(count < most / 1.05 for (_, most), count in pairs)
    below = f"{one} more than one below, {part} more than 5 percent"
    print(*more, f"{len(pairs)} counted: {len(more)} above the bound, {below}", sep="\n")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
