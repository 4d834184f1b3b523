"""Which entry of a model file a command runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from graphc.cli.console import UsageError

ONLY = "forward"
"""The name of the entry of a file that has one."""


def add_entry(parser: argparse.ArgumentParser) -> None:
    """Adds ``--entry``, for ``entry_of`` and for ``sources.open_source``."""
    parser.add_argument("--entry", metavar="NAME", help="which entry of the file (default: its first one)")


def entry_of(model: Any, name: str | None) -> Any:
    """The entry of that name, the first one without a name; raises UsageError where there is none of the name."""
    if name is None:
        return model
    entries: Mapping[str, Any] = getattr(model, "entries", {ONLY: model})
    return entries[check_entry(name, entries)]


def check_entry(name: str, known: Iterable[str]) -> str:
    """The name; raises UsageError where there is no such entry."""
    if name not in known:
        raise UsageError(f"the file has no entry {name!r}", remedy=f"--entry {' or '.join(known)}")
    return name
