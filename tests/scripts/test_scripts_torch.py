"""Scripts as they are run with PyTorch, and give the curves that are recorded."""

from __future__ import annotations

import pytest

from tests.scripts.run import TOLERANCE, curve, names, recorded, worst

torch = pytest.importorskip("torch")


@pytest.mark.sampled(15)
@pytest.mark.parametrize("name", names())
def test_the_recorded_curve_is_what_pytorch_computes(name: str, monkeypatch: pytest.MonkeyPatch):
    # NOTE: PyTorch's tables of tests, which other tests read, forbid the switches that scripts set.
    switches = torch.backends.flags_frozen.__globals__
    monkeypatch.setitem(switches, "__allow_nonbracketed_mutation_flag", True)
    assert worst(curve(name, "torch"), recorded()[name]) <= TOLERANCE
