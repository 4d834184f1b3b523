"""The net of quantized graphs on all targets: the same codes with every instruction set of this machine.

``python -m tools.nets.quantized --targets --count 2000``. Outcomes of this net alone: ``rounded``: the codes differ
where f32 cannot decide between two, such as a product and a sum rounded once or twice; ``dropped``: no block fits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np

from graphc.base.errors import CompileError
from graphc.compiler.ready import running_target
from tools.nets import run
from tools.nets.quantized.builder import QuantizedBuilder, names
from tools.nets.quantized.evaluators import compiled
from tools.nets.quantized.exact import ROUNDED, block_differences, graph_of, outcome_of
from tools.nets.sized import quiet

TARGETS = ("sse2", "avx2", "avx512", "neon")
"""Targets beside this machine, which also has instructions beyond them."""


def targets() -> list[str]:
    """Return the names of targets that this machine can run."""
    return [name for name in TARGETS if _runs_here(name)]


def _runs_here(target: str) -> bool:
    try:
        running_target(target)
    except CompileError:
        return False
    return True


def judge(name: str) -> run.Outcome:
    """Draw the graph of a name, and compare its results on all targets."""
    return outcome_of(name, judged)


def judged(builder: QuantizedBuilder) -> run.Outcome:
    """Compare the results of all targets with those of this machine."""
    model, feeds = builder.model(), builder.feeds()
    here = compiled(model, feeds)
    details = []
    for target in targets():
        there = compiled(model, feeds, target)
        if different := [n for n in here if here[n].tobytes() != there[n].tobytes()]:
            every = compiled(builder.model(all_results=True), feeds, target)
            wrong = [
                str(d) for b in builder.blocks for d in block_differences(builder, b, {**feeds, **every}) if d.wrong
            ]
            details.append(f"{target}: {different}: {'; '.join(wrong)}")
            if wrong or builder.is_exact:
                return run.Outcome(run.DIFFERENT, details[-1])
    return run.Outcome(ROUNDED, "; ".join(details)) if details else run.Outcome(run.EQUAL)


def digests(cases: Iterable[str]) -> Iterator[str]:
    """Yield a digest of the results of each graph whose arithmetic is exact, for this process's instruction set."""
    for name in cases:
        builder = graph_of(name)
        if builder.blocks and builder.is_exact:
            with quiet():
                results = compiled(builder.model(all_results=True), builder.feeds())
            data = b"".join(np.ascontiguousarray(a).tobytes() for a in results.values())
            yield f"{name} {hashlib.sha256(data).hexdigest()[:16]}"


NET = run.Net("nets.quantized", (__doc__ or "").partition("\n")[0], names, judge, isolated=True)
