"""Cost of a call through torch.compile."""

from __future__ import annotations

import pytest

from benchmarks.harness.results import Result

torch = pytest.importorskip("torch")
if torch:
    from benchmarks import torch_calls


def test_all_ways_to_call_a_tiny_model_are_called():
    torch._dynamo.reset()
    makers = torch_calls.tiny(Result("tiny"))
    assert list(makers) == ["guards", "nothing", "live", "frozen", "eager", "inductor"]
    with torch.no_grad():
        for name in ("guards", "nothing", "live", "frozen"):
            assert makers[name]()().shape == (2, 8)


def test_the_excess_over_the_base_is_a_fact():
    result = Result("tiny", {}, {"guards": [10e-3], "live": [12.5e-3]})
    torch_calls.SWEEP.finish(torch_calls.tiny, result)
    assert result.facts["live - base us"] == "2.50"


def test_what_is_prepared_of_weights_is_counted_once():
    torch._dynamo.reset()
    model, x = torch.nn.Linear(256, 256).eval(), torch.randn(4, 256)
    own, prepared = torch_calls.memory(model, x)
    assert own == 4 * 256 * 257 and 4 * 256 * 256 <= prepared <= 1.1 * own
