"""``graphc.accelerator`` asks for GPUs."""

from __future__ import annotations

import graphc
from graphc.calls import gpus


def test_names_are_those_of_the_module_that_holds_them():
    assert all(getattr(graphc.accelerator, name) is getattr(gpus, name) for name in graphc.accelerator.__all__)


def test_the_device_of_a_script():
    there = graphc.accelerator.is_available()
    found = graphc.accelerator.current_accelerator()
    assert (found is None) is not there and (found is None or found.type == "cuda")
