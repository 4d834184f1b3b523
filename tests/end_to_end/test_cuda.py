"""A sample of ops with gradients, models, training steps, random graphs and named sizes: a device beside the CPU.

``python -m tools.nets.cuda`` runs all of them."""

from __future__ import annotations

import functools
import os

import pytest

from tools.cuda.cases import KINDS, Case, cases, named_cases
from tools.cuda.runs import EQUAL, Compiled, compile_all, judge

SEED = int(os.environ.get("GRAPHC_TEST_SEED", "1"))
SAMPLE = {"ops": 110, "random": 24}
FACTORS = ("op/qr-1/first", "op/qr-2/first/f64", "op/qr-4/value")
"""Cases that are always part of the sample: their kernels read scratch memory in rows that are padded."""
MODELS = tuple(
    f"family/{name}"
    for name in ("mlp/step", "mnist_cnn/value", "lstm_tagger/value", "gpt/step", "unet/value", "bert/value", "gru/step")
)
NAMED = tuple(f"named/{name}" for name in ("averages", "gru_loss", "normalized_loss", "lstm"))


@functools.cache
def sample(kind: str) -> list[Case]:
    chosen = {"families": MODELS, "named": NAMED}.get(kind)
    if chosen:
        return named_cases(chosen)
    always = named_cases(FACTORS) if kind == "ops" else []
    names = {case.name for case in always}
    return [*always, *(case for case in cases([kind], SEED, SAMPLE[kind]) if case.name not in names)]


@functools.cache
def compiled(device: str) -> list[Compiled]:
    """All of the sample: the emulated device builds it at once, when the first one runs."""
    return compile_all([case for kind in KINDS for case in sample(kind)], device)


@pytest.mark.parametrize("kind", KINDS)
def test_a_device_computes_what_the_cpu_does(device: str, kind: str):
    names = {case.name for case in sample(kind)}
    outcomes = [judge(c) for c in compiled(device) if c.case.name in names]
    bad = [f"{o.case}: {o.kind}: {o.detail}" for o in outcomes if o.kind != EQUAL]
    assert not bad, "\n".join([f"{len(bad)} of {len(outcomes)}", *bad])
    assert len(outcomes) == len(names)
