"""What holds for every test: programs are built each time, Ctrl-C interrupts, comparisons with PyTorch are marked."""

from __future__ import annotations

import functools
import os
import re
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from graphc.ir.op import REGISTRY

os.environ["GRAPHC_CACHE"] = "off"
# Shells start what runs in the background with SIGINT ignored, and programs that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_COMPARES = re.compile(r"""^from tests\.\S*compare import|importorskip\("torch"\)""", re.MULTILINE)


@functools.cache
def _compares(path: Path) -> bool:
    return bool(_COMPARES.search(path.read_text(encoding="utf-8")))


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Marks the tests of files that compare with PyTorch: ``pytest -m torch`` runs what was skipped without it."""
    for item in items:
        if _compares(item.path):
            item.add_marker("torch")


@pytest.fixture
def own_ops() -> Iterator[None]:
    """Takes the ops that a test defines out of the registry again."""
    before = dict(REGISTRY)
    yield
    for name in REGISTRY.keys() - before.keys():
        del REGISTRY[name]
