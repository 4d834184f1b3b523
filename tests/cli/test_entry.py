"""Choice of the entry of a file to run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from graphc.cli.console import UsageError
from graphc.cli.entry import entry_of


def test_a_file_with_one_entry_calls_it_forward():
    model = SimpleNamespace()
    assert entry_of(model, None) is model and entry_of(model, "forward") is model
    with pytest.raises(UsageError, match=r"no entry 'decode'\n  try    choose --entry forward"):
        entry_of(model, "decode")


def test_entries_are_found_by_name():
    model = SimpleNamespace(entries={"encode": 1, "decode": 2})
    assert entry_of(model, "decode") == 2 and entry_of(model, None) is model
    with pytest.raises(UsageError, match="--entry encode or decode"):
        entry_of(model, "forward")
