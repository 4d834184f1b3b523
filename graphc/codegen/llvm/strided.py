"""Strided loads as whole vectors: which spans of memory loads share, and which lanes come from which vector."""

from __future__ import annotations

from collections.abc import Iterable

from graphc.ir.kernel.index import Index

SHORT_STRIDES = (2, 3, 4)
"""Strides between lanes for which whole vectors and shuffles are faster than gathering."""
Pattern = tuple[str, Index]
"""A buffer, and an index without its constant."""
Spans = dict[Pattern, list[tuple[int, int]]]
"""First and end element of each span that is read together, by access pattern."""


def merge_spans(reads: Iterable[tuple[Pattern, int, int]]) -> Spans:
    """Return the spans of loads, with overlapping ones merged."""
    merged: Spans = {}
    for pattern, low, high in sorted(reads, key=lambda read: read[1]):
        spans = merged.setdefault(pattern, [])
        if spans and low < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(high, spans[-1][1]))
        else:
            spans.append((low, high))
    return merged


def vectors_of(positions: list[int], size: int, lanes: int) -> list[tuple[int, list[int | None]]]:
    """Return the vectors of a span of ``size`` elements from which its elements at ``positions`` (rising) are picked,
    lane by lane: the start of each (the last one ends with the span), and its shuffle mask over the earlier result and
    itself. The span is at least as long as a vector."""
    starts = [*range(0, size - lanes, lanes), size - lanes]
    owners = [starts[min(p // lanes, len(starts) - 1)] for p in positions]
    vectors: list[tuple[int, list[int | None]]] = []
    for start in dict.fromkeys(owners):
        before = owners.index(start)
        picks: list[int | None] = list(range(before))
        picks += [lanes + p - start for p, owner in zip(positions, owners, strict=True) if owner == start]
        vectors.append((start, picks + [None] * (lanes - len(picks))))
    return vectors
