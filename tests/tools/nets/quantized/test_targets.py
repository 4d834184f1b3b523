"""Random quantized graphs have the same codes with every instruction set, and other codes are noticed."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from itertools import islice

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime", reason="the net compares with ONNX Runtime where codes differ")
pytest.importorskip("torch", reason="the runner of nets uses PyTorch")

from tools.nets import run
from tools.nets.quantized import exact, targets
from tools.nets.quantized.builder import drawn
from tools.nets.quantized.evaluators import compiled

SAMPLE = 8
PROGRAM = """
from itertools import islice
from tools.nets.quantized import targets
print("\\n".join(targets.digests(islice(targets.NET.cases(4), 8))))
"""


def test_no_graph_of_a_sample_differs():
    outcomes = [targets.judge(name) for name in islice(targets.NET.cases(2), SAMPLE)]
    assert {o.kind for o in outcomes} <= {run.EQUAL, exact.ROUNDED, exact.DROPPED}
    assert sum(o.kind == run.EQUAL for o in outcomes) > SAMPLE // 2


def test_other_codes_of_a_target_are_noticed(monkeypatch: pytest.MonkeyPatch):
    builder = drawn(1, 3, exact.STEPS)
    other = targets.targets()[0]

    def changed(model, feeds, target="host"):
        results = compiled(model, feeds)
        return {n: a ^ 1 if a.dtype.kind in "iu" else a for n, a in results.items()} if target == other else results

    monkeypatch.setattr(targets, "compiled", changed)
    outcome = targets.judged(builder)
    assert outcome.kind == run.DIFFERENT and outcome.detail.startswith(other)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="levels are those of x86-64")
def test_processes_limited_to_older_instructions_compute_the_same_codes():
    texts = []
    for limit in ("", "avx2", "sse2"):
        environment = {**os.environ, "GRAPHC_MAX_ISA": limit, "GRAPHC_CACHE": "off"}
        if not limit:
            environment.pop("GRAPHC_MAX_ISA")
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout)
    assert texts[0].count("\n") > 2 and texts[1:] == texts[:1] * 2


def test_digests_depend_on_codes(monkeypatch: pytest.MonkeyPatch):
    cases = list(islice(targets.NET.cases(4), 4))
    first = list(targets.digests(cases))
    monkeypatch.setattr(targets, "compiled", lambda model, feeds: {"y": np.zeros(1)})
    assert len(first) > 0 and len(set(targets.digests(cases)) & set(first)) == 0
