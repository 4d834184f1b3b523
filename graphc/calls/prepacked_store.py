"""Process-wide cache of prepacked weights: programs that pack the same weights the same way share one array."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from graphc.base.locks import Lock


class WeightVersion(NamedTuple):
    """A weight's array at one version."""

    array: np.ndarray
    counter: list[int]
    """The live counter of writes to the weight. It has a second element once memory was handed out for uncounted
    writes."""
    version: list[int]
    """A copy of the counter, taken when the array was read."""

    @property
    def is_shareable(self) -> bool:
        """Whether every write to the memory is counted."""
        return len(self.version) <= 1


class Prepacked:
    """An array packed from weights. The cache shares it for as long as some program holds it."""

    __slots__ = ("__weakref__", "array", "sources")

    def __init__(self, array: np.ndarray, sources: Sequence[WeightVersion]):
        self.array = array
        self.sources = tuple(sources)
        """The weights. Their arrays stay alive here, so that ``id`` identifies them in the cache's keys."""


_cache: weakref.WeakValueDictionary[Hashable, Prepacked] = weakref.WeakValueDictionary()
_lock = Lock()


def find(recipe: Hashable, sources: Sequence[WeightVersion]) -> Prepacked | None:
    """Return the array packed by a recipe from these sources at these versions, or None where no program holds one.

    None also for an empty recipe, and for memory with uncounted writes: neither is ever shared.
    """
    if not recipe or not all(source.is_shareable for source in sources):
        return None
    packed = _cache.get((recipe, *(id(source.array) for source in sources)))
    if packed is None:
        return None
    for cached, source in zip(packed.sources, sources, strict=True):
        if cached.counter is not source.counter or cached.version != source.version:
            return None
    return packed


def keep(recipe: Hashable, packed: Prepacked) -> Prepacked:
    """Add an array to the cache. Return it, or the equal one that another thread has added meanwhile."""
    if not recipe or not all(source.is_shareable for source in packed.sources):
        return packed
    with _lock:
        cached = find(recipe, packed.sources)
        if cached is None:
            _cache[recipe, *(id(source.array) for source in packed.sources)] = cached = packed
        return cached


def prepared(
    run: Callable[[Sequence[bool]], list[np.ndarray]],
    recipes: Sequence[tuple[Hashable, Sequence[int]]],
    arrays: Sequence[np.ndarray],
    counters: Sequence[list[int]],
    versions: Sequence[list[int]],
) -> tuple[Prepacked, ...]:
    """Return the packed array for each recipe: a cached one where its sources are unchanged, else from one call of
    ``run``.

    A recipe is its key in the cache and the indices of its sources among ``arrays``. ``run`` takes one flag for each
    recipe, true where the cache has the result already; it returns an array for each.
    """
    # A binding's counters go on after the arrays: those of weights of which it only makes narrow copies.
    weights = [WeightVersion(*fields) for fields in zip(arrays, counters, versions, strict=False)]
    sources = [[weights[i] for i in indices] for _, indices in recipes]
    cached = [find(recipe, needed) for (recipe, _), needed in zip(recipes, sources, strict=True)]
    if all(cached):
        return tuple(packed for packed in cached if packed)
    results = run([packed is not None for packed in cached])
    return tuple(
        packed or keep(recipe, Prepacked(array, needed))
        for packed, array, needed, (recipe, _) in zip(cached, results, sources, recipes, strict=True)
    )
