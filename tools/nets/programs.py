"""The net of random programs: each is run on PyTorch and on graphc, eagerly, compiled, with gradients, and trained.

``python -m tools.nets.programs --seconds 60 --seed 1 --results programs.jsonl``; failing programs are reduced and
stand as scripts in the results. ``--only '*/pools'`` searches one family.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import torch

from tools.nets import run
from tools.nets.builder import Unfit
from tools.nets.compare import check, compare
from tools.nets.families import FAMILIES, draw
from tools.nets.program import Program, script
from tools.nets.reduce import reduced


def cases(seed: int) -> Iterator[str]:
    """Names of programs without end: seed, number, family."""
    families = tuple(FAMILIES)
    number = 0
    while True:
        yield f"{seed}/{number}/{families[number % len(families)]}"
        number += 1


def judge(name: str) -> run.Outcome:
    """Draws, checks and, if it fails, reduces the program of a name."""
    torch.set_num_threads(1)
    seed, number, _ = name.split("/")
    try:
        program = draw(int(seed), int(number))
    except Unfit:
        return run.Outcome("dropped", "nothing came about")
    return judged(program)


def judged(program: Program) -> run.Outcome:
    """Compares a program and reduces it if it fails."""
    verdict = check(program)
    if verdict.outcome not in run.BAD:
        return run.Outcome(verdict.outcome, verdict.detail)
    small = reduced(program, lambda p: compare(p, verdict.stage)[:3] == verdict[:3])
    last = compare(small, verdict.stage)
    return run.Outcome(verdict.outcome, f"{last.kind}: {last.detail}\n{script(small, last.detail)}")


NET = run.Net("programs", (__doc__ or "").partition("\n")[0], cases, judge)


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return run.main(NET, argv)


if __name__ == "__main__":
    sys.exit(main())
