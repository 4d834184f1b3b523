"""The net of random programs: each is run on PyTorch and on graphc, eagerly, compiled, with gradients, and trained.

``python -m tools.nets.programs --seconds 60 --seed 1 --results programs.jsonl``; failing programs are reduced and
written into the results as scripts.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch

from tools.nets import driver
from tools.nets.builder import Unfit
from tools.nets.compare import check
from tools.nets.driver import FINE, Result
from tools.nets.families import FAMILIES, draw
from tools.nets.program import script
from tools.nets.reduce import reduced


def case(seed: int, number: int) -> Result:
    """Draws, checks and, if it fails, reduces one program."""
    torch.set_num_threads(1)
    family = tuple(FAMILIES)[number % len(FAMILIES)]
    try:
        program = draw(seed, number)
    except Unfit:
        return Result(number, family, "dropped", "nothing came about")
    verdict = check(program)
    if verdict.outcome in FINE:
        return Result(number, family, verdict.outcome, verdict.detail)
    small = reduced(program, lambda p: check(p)[:2] == verdict[:2])
    last = check(small)
    return Result(
        number, family, verdict.outcome, f"{last.kind}: {last.detail}", script(small, f"{last.kind}: {last.detail}")
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return driver.main("tools.nets.programs", case, argv)


if __name__ == "__main__":
    sys.exit(main())
