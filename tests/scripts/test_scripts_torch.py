"""Scripts as they are run with PyTorch, and give the curves that are recorded."""

from __future__ import annotations

import pytest

from tests.scripts.compare import TOLERANCE, names, recorded, run, worst

pytest.importorskip("torch")


@pytest.mark.parametrize("name", names())
def test_the_recorded_curve_is_what_pytorch_computes(name):
    assert worst(run(name, "torch"), recorded()[name]) <= TOLERANCE
