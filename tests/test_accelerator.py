"""``graphc.accelerator`` asks for GPUs."""

from __future__ import annotations

import pytest

import graphc
from graphc.calls import gpus


def test_names_are_those_of_the_module_that_holds_them():
    assert all(getattr(graphc.accelerator, name) is getattr(gpus, name) for name in graphc.accelerator.__all__)


@pytest.mark.parametrize(("available", "expected"), [(True, graphc.device("cuda")), (False, None)])
def test_the_device_of_a_script(monkeypatch: pytest.MonkeyPatch, available: bool, expected: graphc.device | None):
    monkeypatch.setattr(gpus.devices, "is_available", lambda: available)
    assert graphc.accelerator.is_available() is available
    assert graphc.accelerator.current_accelerator() == expected
