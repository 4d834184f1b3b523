"""Process-wide cache of prepacked weights: programs that pack the same weights the same way share one array."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence

import numpy as np

from graphc.base.locks import Lock
from graphc.base.records import NamedTuple
from graphc.files.manifest import PREPACKED, Recipe
from graphc.runtime.call import Executable


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


class Prepacking:
    """The program that packs weights for another program, and the recipe of each packed array."""

    def __init__(self, program: Executable, is_shared: bool = True):
        """Without ``is_shared`` no array comes from the cache, as where the program reads narrow copies: recipes start
        at the weights.
        """
        self._program = program
        self.reads = [spec.path for spec in program.inputs]
        """Paths of the weights that it reads."""
        self.names = [PREPACKED + spec.name for spec in program.outputs]
        """Paths of the packed arrays among the params of the other program."""
        texts = [spec.path if is_shared else "" for spec in program.outputs]
        recipes = [Recipe.parse(text) if text else Recipe("", ()) for text in texts]
        self._recipes = [(r.digest and (r.digest, program.manifest.target), r.inputs) for r in recipes]

    def run(self, arrays: Sequence[np.ndarray], is_cached: Sequence[bool]) -> list[np.ndarray]:
        """Pack these arrays. A flag for each result tells whether the cache has it already."""
        return self._program.run(arrays, (), self._program.outputs_together(is_cached))

    def pack(self, arrays: Sequence[np.ndarray], weights: Sequence[WeightVersion]) -> tuple[Prepacked, ...]:
        """Return the packed arrays: those of the cache where it has all, else the results for these arrays of the
        ``weights``.
        """
        sources = [[weights[i] for i in indices] for _, indices in self._recipes]
        cached = [find(recipe, needed) for (recipe, _), needed in zip(self._recipes, sources, strict=True)]
        if all(cached):
            return tuple(packed for packed in cached if packed)
        results = self.run(arrays, [packed is not None for packed in cached])
        return tuple(
            packed or keep(recipe, Prepacked(array, needed))
            for packed, array, needed, (recipe, _) in zip(cached, results, sources, self._recipes, strict=True)
        )
