"""The import path of checkpoints: all names, and the same functions."""

from __future__ import annotations

from graphc import checkpoints, serialize


def test_every_function_is_that_of_the_checkpoints():
    assert serialize.__all__ == checkpoints.__all__
    assert all(getattr(serialize, name) is getattr(checkpoints, name) for name in serialize.__all__)
