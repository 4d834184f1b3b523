"""The net of random programs: each is run on PyTorch and on graphc, eagerly, compiled, with gradients, and trained.

``python -m tools.nets.programs --seconds 60 --seed 1 --results programs.jsonl``; failing programs are reduced and
stand as scripts in the results. ``--only '*/pools'`` searches one family.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from tools.nets import run
from tools.nets.builder import Unfit
from tools.nets.compare import check, compare
from tools.nets.families.table import FAMILIES, draw
from tools.nets.program import Program, script
from tools.nets.reduce import reduced


def cases_of(families: Iterable[str]) -> Callable[[int], Iterator[str]]:
    """Return names of programs without end for a seed: seed, number, family."""
    names = tuple(families)
    return lambda seed: (f"{seed}/{number}/{names[number % len(names)]}" for number in itertools.count())


def judge_drawn(name: str, draw: Callable[[int, int], Any], judged: Callable[[Any, int], run.Outcome]) -> run.Outcome:
    """Draw the program of a name by seed and number, and judge it."""
    torch.set_num_threads(1)
    seed, number, _ = name.split("/")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = draw(int(seed), int(number))
    except Unfit:
        return run.Outcome("dropped", "nothing came about")
    return judged(program, int(number))


def judge(name: str) -> run.Outcome:
    """Draw the program of a name and check it; reduce it if it fails."""
    return judge_drawn(name, draw, lambda program, _: judged(program))


def judged(program: Program) -> run.Outcome:
    """Compare a program, and reduce it if it fails."""
    verdict = check(program)
    if verdict.outcome not in run.BAD:
        return run.Outcome(verdict.outcome, verdict.detail)
    small = reduced(program, lambda p: compare(p, verdict.stage)[:3] == verdict[:3])
    last = compare(small, verdict.stage)
    return run.Outcome(verdict.outcome, f"{last.kind}: {last.detail}\n{script(small, last.detail)}")


NET = run.Net("programs", (__doc__ or "").partition("\n")[0], cases_of(FAMILIES), judge)

if __name__ == "__main__":
    sys.exit(run.main(NET))
