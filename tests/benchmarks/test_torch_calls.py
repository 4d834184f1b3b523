"""Cost of a call through torch.compile."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
if torch:
    from benchmarks import torch_calls


def test_all_ways_to_call_a_tiny_model_are_timed():
    torch._dynamo.reset()
    times = torch_calls.tiny(1, {"eager": "eager"}, repeats=3)
    assert list(times) == ["guards", "nothing", "live", "frozen", "eager"] and min(times.values()) > 0


def test_the_report_says_what_is_more_than_the_base():
    shown = torch_calls.report("model", {"nothing": 10e-6, "live": 12.5e-6}, "nothing", 1e-6, "us")
    assert shown.splitlines()[-1].split() == ["live", "12.50", "2.50", "1.25"]


def test_what_is_prepared_of_weights_is_counted_once():
    torch._dynamo.reset()
    model, x = torch.nn.Linear(256, 256).eval(), torch.randn(4, 256)
    own, prepared = torch_calls.memory(model, x)
    assert own == 4 * 256 * 257 and 4 * 256 * 256 <= prepared <= 1.1 * own
