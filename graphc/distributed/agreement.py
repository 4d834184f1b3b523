"""Whether all processes mean the same: a difference is an error on all of them, and not a wait without an end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.base.errors import DistributedError
from graphc.distributed.group import Group

SHOWN = 5
"""Differences that a message lists."""


def agree(group: Group, what: str, mine: Mapping[str, Any], remedy: str) -> None:
    """Compares a table, whose order counts, with that of the other processes; all call it. Raises DistributedError on
    all of them where one differs from that of process 0: the message names entries that only one has, or that differ,
    with the ranks."""
    tables = group.gather_objects(list(mine.items()))
    different = [rank for rank, table in enumerate(tables) if table != tables[0]]
    if different:
        rank = different[0]
        said = _differences(dict(tables[0]), dict(tables[rank])) or ["the same entries in another order"]
        raise DistributedError(
            f"{what} of rank{'s' * (len(different) > 1)} {_listed(different)} differ from those of rank 0: "
            f"{'; '.join(said[:SHOWN])}" + (f"; {len(said) - SHOWN} more" if len(said) > SHOWN else ""),
            remedy=remedy,
        )


def _differences(first: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    found = [f"{name} is missing" for name in first if name not in other]
    found += [f"{name} is there only" for name in other if name not in first]
    return found + [f"{n} is {other[n]}, not {first[n]}" for n in first if n in other and other[n] != first[n]]


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
