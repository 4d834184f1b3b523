"""The functions of the C library that may be called are few, and each has its reason."""

from __future__ import annotations

from graphc.codegen.proof.leaves import LEAVES


def test_nothing_that_takes_memory_locks_or_the_system_is_among_them():
    for name in ("malloc", "free", "realloc", "pthread_mutex_lock", "write", "printf", "exit", "graphc_pool_run"):
        assert name not in LEAVES
    assert all(reason for reason in LEAVES.values())
