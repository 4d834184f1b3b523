"""Prepacked weights by what they are made of and how: programs that need the same ones share their memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from graphc.base.locks import Lock


class Prepacked:
    """An array that was made of weights. It is shared as long as some program keeps it."""

    __slots__ = ("__weakref__", "array", "counters", "sources", "versions")

    def __init__(
        self, array: np.ndarray, sources: Sequence[np.ndarray], counters: Sequence[list[int]], versions: list[list[int]]
    ):
        self.array = array
        self.sources = tuple(sources)
        """The weights' arrays; as they live, their identity stands for them."""
        self.counters = tuple(counters)
        """Of the writes to the weights."""
        self.versions = versions
        """What the counters were when the array was made."""


_kept: weakref.WeakValueDictionary[Hashable, Prepacked] = weakref.WeakValueDictionary()
_lock = Lock()


def find(
    recipe: Hashable, sources: Sequence[np.ndarray], counters: Sequence[list[int]], versions: list[list[int]]
) -> Prepacked | None:
    """What was made by a recipe of these arrays when their counters were ``versions``, or None where no program keeps
    it. An empty recipe, and memory that can be written to without being counted, stand for themselves."""
    if not recipe or any(len(v) > 1 for v in versions):
        return None
    found = _kept.get((recipe, *map(id, sources)))
    if found is None or found.versions != versions:
        return None
    same = all(a is b for a, b in zip(found.counters, counters, strict=True))
    return found if same else None


def keep(recipe: Hashable, made: Prepacked) -> Prepacked:
    """Offers an array to other programs; returns what another thread has offered meanwhile, if it has."""
    if not recipe or any(len(v) > 1 for v in made.versions):
        return made
    with _lock:
        found = find(recipe, made.sources, made.counters, made.versions)
        if found is None:
            _kept[recipe, *map(id, made.sources)] = found = made
        return found


def prepared(
    run: Callable[[Sequence[bool]], list[np.ndarray]],
    recipes: Sequence[tuple[Hashable, Sequence[int]]],
    sources: Sequence[np.ndarray],
    counters: Sequence[list[int]],
    versions: Sequence[list[int]],
) -> tuple[Prepacked, ...]:
    """What is made of arrays: that of another program where it is the same, all together otherwise, by ``run``, which
    is told which results are known already. Of each result ``recipes`` holds what it is known by, and which of the
    sources it is made of."""
    parts = [
        ([sources[i] for i in taken], [counters[i] for i in taken], [versions[i] for i in taken])
        for _, taken in recipes
    ]
    found = [find(recipe, *part) for (recipe, _), part in zip(recipes, parts, strict=True)]
    if all(found):
        return tuple(f for f in found if f)
    made = run([known is not None for known in found])
    return tuple(
        known or keep(recipe, Prepacked(array, *part))
        for known, array, part, (recipe, _) in zip(found, made, parts, recipes, strict=True)
    )
