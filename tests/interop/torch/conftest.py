"""Settings of tests that compile with PyTorch."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def fresh_dynamo(torch: Any) -> None:
    """Forget what Dynamo has compiled and counted."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
