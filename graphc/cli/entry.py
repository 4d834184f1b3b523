"""Option ``--entry``: choose the entry of a model file to run."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from graphc.cli.console import UsageError

ONLY = "forward"
"""Entry name of a file that has one entry."""


def add_entry(parser: argparse.ArgumentParser) -> None:
    """Add ``--entry``, which ``entry_of`` and ``sources.open_source`` read."""
    parser.add_argument("--entry", metavar="NAME", help="entry of the file to use (default: its first one)")


def entry_of(model: Any, name: str | None) -> Any:
    """Return the entry with this name, or the first entry if ``name`` is None. Raises UsageError for an unknown
    name."""
    if name is None:
        return model
    entries: Mapping[str, Any] = getattr(model, "entries", {ONLY: model})
    return entries[check_entry(name, entries)]


def check_entry(name: str, names: Iterable[str]) -> str:
    """Return ``name`` if it is one of ``names``; raise UsageError otherwise."""
    if name not in names:
        raise UsageError(f"the file has no entry {name!r}", remedy=f"choose --entry {' or '.join(names)}")
    return name
