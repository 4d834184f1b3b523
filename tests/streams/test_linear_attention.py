"""Linear attention with a state of fixed size."""

from __future__ import annotations

import numpy as np
import pytest

from tests.streams.nets import NETS


@pytest.mark.parametrize("name", ["linear_attention_by_products", "normalized_linear_attention", "retention"])
def test_the_state_does_not_depend_on_the_step(name: str):
    shapes = [
        {key: array.shape for key, array in NETS[name]().stream(step).state.items() if key.startswith("memory")}
        for step in (1, 24)
    ]
    assert shapes[0] == shapes[1]
    assert shapes[0]
    assert all(np.prod(shape) <= 32 for shape in shapes[0].values())
