"""The machines whose code tests of code generation run."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.target import Target
from tests.native import TARGETS, target_or_skip


@pytest.fixture(params=TARGETS)
def machine(request: pytest.FixtureRequest) -> Target:
    """Return each target in turn; skip the test where this machine lacks its instructions."""
    return target_or_skip(request.param)
