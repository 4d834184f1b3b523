"""PyTorch computes in one thread: the operands are tiny, and threads that wait would take time from other tests."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    pytest.importorskip("torch").set_num_threads(1)
