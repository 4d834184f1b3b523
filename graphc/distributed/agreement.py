"""Consistency check between processes: a difference raises an error on all of them instead of a deadlock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.base.errors import DistributedError
from graphc.distributed.group import Group

SHOWN = 5
"""Largest number of differences in a message."""


def agree(group: Group, subject: str, table: Mapping[str, Any], remedy: str) -> None:
    """Compare a table, including its order, with those of the other processes; all of them must call this.

    ``subject`` names the table in messages. Raises DistributedError on all processes if a table differs from that of
    rank 0; the message names the ranks and the entries that differ or are missing.
    """
    tables = group.gather_objects(list(table.items()))
    different = [rank for rank, other in enumerate(tables) if other != tables[0]]
    if different:
        rank = different[0]
        differences = _differences(dict(tables[0]), dict(tables[rank])) or ["the same entries in another order"]
        raise DistributedError(
            f"{subject} of rank{'s' * (len(different) > 1)} {_format_ranks(different)} differ from those of rank 0: "
            f"{'; '.join(differences[:SHOWN])}"
            + (f"; {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""),
            remedy=remedy,
        )


def _differences(first: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    differences = [f"{name} is missing" for name in first if name not in other]
    differences += [f"{name} is there only" for name in other if name not in first]
    return differences + [f"{n} is {other[n]}, not {first[n]}" for n in first if n in other and other[n] != first[n]]


def _format_ranks(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
