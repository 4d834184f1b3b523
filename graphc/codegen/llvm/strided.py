"""Loads at short strides as whole vectors: which spans of memory they share, and which lanes come from which vector."""

from __future__ import annotations

from collections.abc import Iterable

from graphc.ir.kernel.index import Index

SHORT_STRIDES = (2, 3, 4)
"""Distances between lanes for which whole vectors and shuffles are faster than gathering."""
Place = tuple[str, Index]
"""A buffer, and an index without the number that is added to it."""
Spans = dict[Place, list[tuple[int, int]]]
"""By place: the first element and the one behind the last of what is read together."""


def merge_spans(reads: Iterable[tuple[Place, int, int]]) -> Spans:
    """The spans of loads; those that overlap are one."""
    merged: Spans = {}
    for place, low, high in sorted(reads, key=lambda read: read[1]):
        spans = merged.setdefault(place, [])
        if spans and low < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(high, spans[-1][1]))
        else:
            spans.append((low, high))
    return merged


def vectors_of(positions: list[int], size: int, lanes: int) -> list[tuple[int, list[int | None]]]:
    """The vectors of a span of ``size`` elements from which its elements at ``positions`` (rising) are picked, lane by
    lane: where each starts (the last one ends with the span), and its shuffle mask for what was picked before it and
    itself. The span is no shorter than a vector."""
    whole = [*range(0, size - lanes, lanes), size - lanes]
    owners = [whole[min(p // lanes, len(whole) - 1)] for p in positions]
    found: list[tuple[int, list[int | None]]] = []
    for start in dict.fromkeys(owners):
        before = owners.index(start)
        picks: list[int | None] = list(range(before))
        picks += [lanes + p - start for p, owner in zip(positions, owners, strict=True) if owner == start]
        found.append((start, picks + [None] * (lanes - len(picks))))
    return found
