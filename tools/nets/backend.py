"""Random programs through ``torch.compile(backend="graphc")``, each compared with PyTorch's eager mode.

``python -m tools.nets.backend --seconds 300 --seed 1``. The programs of ``tools.nets.programs`` run with gradients and
without, with live or frozen weights and fixed or open sizes.
"""

from __future__ import annotations

import random
import sys
import warnings
from typing import Any

import numpy as np
import torch

from graphc.errors import FallbackWarning
from tools.nets import run
from tools.nets.compare import Mismatch, Record, differ, precision_of, recorded
from tools.nets.families.table import FAMILIES, draw
from tools.nets.program import Program, script
from tools.nets.programs import cases_of, judge_drawn

STAGES = ("compiled", "inference")


def judge(name: str) -> run.Outcome:
    """Draw the program of a name and compare it."""
    return judge_drawn(name, draw, judged)


def judged(program: Program, number: int) -> run.Outcome:
    """Return the outcome of a program in all ways to run it, the worst first; ``number`` decides options and open
    sizes."""
    chosen = random.Random(number)
    options: dict[str, Any] = {"weights": chosen.choice(("live", "frozen"))}
    dynamic = chosen.choice((False, True))
    refused = ""
    for stage in STAGES:
        outcome = compared(program, stage, options, dynamic)
        if outcome.kind in run.BAD or outcome.kind == "dropped":
            return outcome._replace(detail=f"{stage} {options} dynamic={dynamic}: {outcome.detail}")
        refused = refused or outcome.detail
    return run.Outcome(run.REFUSED, refused) if refused else run.Outcome(run.EQUAL)


def compared(program: Program, stage: str, options: dict[str, Any], dynamic: bool) -> run.Outcome:
    """Compare one way to run a program; refused where PyTorch computes a part of it."""
    torch.compiler.reset()
    with warnings.catch_warnings(record=True) as warned, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            expected = recorded(program, torch, stage)
            recorded(program, torch, stage, wrap=lambda net: torch.compile(net, backend="aot_eager", dynamic=dynamic))
        except Exception as error:  # a program that PyTorch refuses, or cannot compile itself, does not count
            return run.Outcome("dropped", str(error))
        torch.compiler.reset()
        try:
            result = _compiled(program, stage, options, dynamic)
            differ(result, expected, precision_of(program), program.family == "specials")
        except Mismatch as mismatch:
            return run.Outcome(run.DIFFERENT, f"{mismatch}\n{script(program, str(mismatch))}")
        except Exception as error:  # any exception of a compile or a call is a finding
            return run.Outcome(run.FAILED, f"{type(error).__name__}: {error}\n{script(program, str(error))}")
    fallen = [str(w.message) for w in warned if issubclass(w.category, FallbackWarning)]
    return run.Outcome(run.EQUAL, fallen[0] if fallen else "")


def _compiled(program: Program, stage: str, options: dict[str, Any], dynamic: bool) -> Record:
    def wrap(net: Any) -> Any:
        return torch.compile(net, backend="graphc", dynamic=dynamic, options=options)

    return recorded(program, torch, stage, wrap=wrap)


NET = run.Net("backend", (__doc__ or "").partition("\n")[0], cases_of(FAMILIES), judge)

if __name__ == "__main__":
    sys.exit(run.main(NET))
