"""Builds of the quick tier that wait for the test."""

from __future__ import annotations

import pytest

from graphc.calls.quick import pending_program
from tests.calls.quick.held import Held


@pytest.fixture(autouse=True)
def held(monkeypatch: pytest.MonkeyPatch) -> list[Held]:
    """Return the builds of the test, which end when it says so."""
    builds: list[Held] = []
    monkeypatch.setattr(Held, "builds", builds, raising=False)
    monkeypatch.setattr(pending_program, "BackgroundBuild", Held)
    return builds
