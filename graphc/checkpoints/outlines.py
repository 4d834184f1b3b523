"""Outlines of nested checkpoints, which ``tree.outline`` makes: those of several processes as one, and parts of one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.base.errors import DistributedError
from graphc.checkpoints.tree import KEYS

Path = tuple[Any, ...]
"""Keys and positions from the root of a tree to a place in it."""
_REMEDY = "an entry of its own for each rank: {f'rank {graphc.distributed.rank()}': value}"


def merged(parts: Sequence[tuple[int, Any]], path: Path = ()) -> Any:
    """One outline with the entries of those of several ranks, each given with its rank. Dictionaries may have entries
    that others lack; all else must be the same. Raises DistributedError, which names the place and two ranks."""
    (first, known), *others = parts
    kind, content = _opened(known)
    for rank, part in others:
        if not _are_alike(known, part):
            raise DistributedError(
                f"{place(path)} is not the same on rank {first} and rank {rank}: {_shown(known)}, {_shown(part)}",
                remedy=_REMEDY,
            )
    if _is_listed(kind):
        columns = [[(rank, _opened(part)[1][i]) for rank, part in parts] for i in range(len(content))]
        return {kind: [merged(column, (*path, i)) for i, column in enumerate(columns)]}
    if kind != "dict":
        return known
    entries: dict[tuple[str, str], list[tuple[int, Any]]] = {}
    for rank, part in parts:
        for cls, key, child in part["dict"]:
            entries.setdefault((cls, key), []).append((rank, child))
    return {"dict": [[cls, key, merged(found, (*path, KEYS[cls](key)))] for (cls, key), found in entries.items()]}


def pruned(part: Any, wanted: Callable[[Path], bool], path: Path = ()) -> Any:
    """An outline without the entries of dictionaries that are not wanted."""
    kind, content = _opened(part)
    if kind == "dict":
        children = [(cls, key, child, (*path, KEYS[cls](key))) for cls, key, child in content]
        return {"dict": [[cls, key, pruned(child, wanted, at)] for cls, key, child, at in children if wanted(at)]}
    if _is_listed(kind):
        return {kind: [pruned(child, wanted, (*path, i)) for i, child in enumerate(content)]}
    return part


def children(part: Any) -> Mapping[Any, Any]:
    """The outlines of what a dictionary or a sequence holds, by key or position; none for all else."""
    kind, content = _opened(part)
    if kind == "dict":
        return {KEYS[cls](key): child for cls, key, child in content}
    return dict(enumerate(content)) if _is_listed(kind) else {}


def tensors_of(part: Any) -> list[str]:
    """The names of the tensors of an outline, in order."""
    kind, content = _opened(part)
    if kind == "tensor":
        return [content]
    return [name for child in children(part).values() for name in tensors_of(child)]


def place(path: Path) -> str:
    """How messages name a place in a tree."""
    return "/".join(map(str, path)) or "the checkpoint"


def _are_alike(known: Any, other: Any) -> bool:
    """Whether two outlines are the same, but for what they hold."""
    (kind, content), (found, more) = _opened(known), _opened(other)
    if kind != found or kind == "dict":
        return kind == found
    # NOTE: as texts, which tell True from 1, and in which what is no number (NaN) is the same as itself.
    return len(content) == len(more) if _is_listed(kind) else json.dumps(content) == json.dumps(more)


def _opened(part: Any) -> tuple[str, Any]:
    ((kind, content),) = part.items()
    return kind, content


def _is_listed(kind: str) -> bool:
    return kind in ("list", "tuple")


def _shown(part: Any) -> str:
    kind, content = _opened(part)
    if kind == "value":
        return repr(content)
    return f"a {kind} of {len(content)}" if _is_listed(kind) else f"a {kind}"
