"""Outlines of nested checkpoints, made by ``tree.outline``: merging outlines of several processes, and pruning."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.base.errors import DistributedError
from graphc.checkpoints.tree import KEYS

Path = tuple[Any, ...]
"""Keys and positions from the root of a tree to a value."""
_REMEDY = "use a separate entry for each rank: {f'rank {graphc.distributed.rank()}': value}"


def merged(outlines: Sequence[tuple[int, Any]], path: Path = ()) -> Any:
    """Merge the outlines of several ranks, each given with its rank.

    Dictionaries may have entries that others lack; everything else must be equal. Raises DistributedError with the path
    and two ranks.
    """
    (first, reference), *others = outlines
    kind, content = _kind_and_content(reference)
    for rank, outline in others:
        if not _are_alike(reference, outline):
            raise DistributedError(
                f"{place(path)} is not the same on rank {first} and rank {rank}: "
                f"{_shown(reference)}, {_shown(outline)}",
                remedy=_REMEDY,
            )
    if _is_listed(kind):
        columns = [
            [(rank, _kind_and_content(outline)[1][i]) for rank, outline in outlines] for i in range(len(content))
        ]
        return {kind: [merged(column, (*path, i)) for i, column in enumerate(columns)]}
    if kind != "dict":
        return reference
    entries: dict[tuple[str, str], list[tuple[int, Any]]] = {}
    for rank, outline in outlines:
        for cls, key, child in outline["dict"]:
            entries.setdefault((cls, key), []).append((rank, child))
    return {"dict": [[cls, key, merged(ranked, (*path, KEYS[cls](key)))] for (cls, key), ranked in entries.items()]}


def pruned(outline: Any, is_needed: Callable[[Path], bool], path: Path = ()) -> Any:
    """Remove the entries of dictionaries for which ``is_needed(path)`` is False."""
    kind, content = _kind_and_content(outline)
    if kind == "dict":
        children = [(cls, key, child, (*path, KEYS[cls](key))) for cls, key, child in content]
        return {
            "dict": [
                [cls, key, pruned(child, is_needed, child_path)]
                for cls, key, child, child_path in children
                if is_needed(child_path)
            ]
        }
    if _is_listed(kind):
        return {kind: [pruned(child, is_needed, (*path, i)) for i, child in enumerate(content)]}
    return outline


def children(outline: Any) -> Mapping[Any, Any]:
    """Return the outlines inside a dictionary or sequence, by key or position; empty for anything else."""
    kind, content = _kind_and_content(outline)
    if kind == "dict":
        return {KEYS[cls](key): child for cls, key, child in content}
    return dict(enumerate(content)) if _is_listed(kind) else {}


def tensors_of(outline: Any) -> list[str]:
    """Return the names of an outline's tensors, in order."""
    kind, content = _kind_and_content(outline)
    if kind == "tensor":
        return [content]
    return [name for child in children(outline).values() for name in tensors_of(child)]


def place(path: Path) -> str:
    """Format a path in a tree for messages."""
    return "/".join(map(str, path)) or "the checkpoint"


def _are_alike(first: Any, second: Any) -> bool:
    """Return whether two outlines are equal, except for the entries of dictionaries and items of sequences."""
    (kind, content), (second_kind, second_content) = _kind_and_content(first), _kind_and_content(second)
    if kind != second_kind or kind == "dict":
        return kind == second_kind
    # NOTE: compared as JSON, in which True differs from 1, and NaN equals itself.
    return (
        len(content) == len(second_content) if _is_listed(kind) else json.dumps(content) == json.dumps(second_content)
    )


def _kind_and_content(outline: Any) -> tuple[str, Any]:
    ((kind, content),) = outline.items()
    return kind, content


def _is_listed(kind: str) -> bool:
    return kind in ("list", "tuple")


def _shown(outline: Any) -> str:
    kind, content = _kind_and_content(outline)
    if kind == "value":
        return repr(content)
    return f"a {kind} of {len(content)}" if _is_listed(kind) else f"a {kind}"
