"""Strict order of random graphs: a seeded sample has the same bits everywhere, and other bits are noticed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("torch", reason="the builder of nets uses PyTorch")

import graphc
from tools.nets import run, strict_order
from tools.nets.onnx_graphs import STEPS, drawn


@pytest.fixture(autouse=True)
def _same_threads() -> Iterator[None]:
    threads = graphc.get_num_threads()
    yield
    graphc.set_num_threads(threads)


@pytest.mark.slow
def test_no_graph_of_a_sample_differs():
    outcomes = {name: strict_order.judge(name) for name in islice(strict_order.NET.cases(1), 6)}
    assert {o.kind for o in outcomes.values()} <= {run.EQUAL, strict_order.DROPPED}
    assert any(o.kind == run.EQUAL for o in outcomes.values())


def test_other_bits_are_noticed(monkeypatch: pytest.MonkeyPatch):
    answers = [("sse2, 1 threads", [b"a", b"b"]), ("avx2, 1 threads", [b"a", b"c"])]
    monkeypatch.setattr(strict_order, "computed", lambda builder, data: iter(answers))
    outcome = strict_order.judged(drawn(3, 1, STEPS), b"")
    assert outcome == run.Outcome(run.DIFFERENT, "avx2, 1 threads: results [1] of 2")


def test_bits_are_those_of_large_integers_and_of_any_nan():
    large = np.array([2**53, 2**53 + 1])
    assert strict_order._bits(large[:1]) != strict_order._bits(large[1:])
    nans = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    assert strict_order._bits(nans[:1]) == strict_order._bits(nans[1:])
    assert strict_order._bits(np.zeros(1)) != strict_order._bits(-np.zeros(1))


def test_each_target_of_this_machine_runs_with_each_number_of_threads():
    builder = drawn(3, 1, STEPS)
    settings = [name for name, _ in strict_order.computed(builder, builder.model().SerializeToString())]
    assert len(settings) % len(strict_order.THREADS) == 0 and len(set(settings)) == len(settings) > 0
