"""``graphc.cuda`` hands on what concerns GPUs."""

from __future__ import annotations

import graphc
from graphc.calls import gpus


def test_names_are_those_of_the_module_that_holds_them():
    assert all(getattr(graphc.cuda, name) is getattr(gpus, name) for name in graphc.cuda.__all__)
    assert {"is_available", "synchronize", "memory_allocated", "manual_seed"} <= set(graphc.cuda.__all__)
