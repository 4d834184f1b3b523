"""PyTorch computes in one thread, for the operands are tiny; graphc computes by the references of its ops."""

from __future__ import annotations

import pytest

from graphc.eager import dispatcher


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    pytest.importorskip("torch").set_num_threads(1)


@pytest.fixture(autouse=True)
def references():
    with dispatcher.references():
        yield
