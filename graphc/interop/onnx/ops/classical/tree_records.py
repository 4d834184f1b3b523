"""Decision trees as records of op ``descend``: every comparison becomes "at most"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArtifactError
from graphc.base.records import dataclass
from graphc.ops.selection.descent import WORDS

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
"""Comparisons of features with thresholds, in the order of TreeEnsemble's codes."""
_LT, _GTE, _GT, _EQ, _NEQ, _MEMBER = range(1, 7)


class Votes(NamedTuple):
    """Contributions of leaves to targets; a leaf may have several, or none."""

    leaves: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    width: int
    """Number of targets."""


@dataclass
class Trees:
    """Nodes of all trees, leaves included. Leaves lead to themselves."""

    roots: np.ndarray
    features: np.ndarray
    thresholds: np.ndarray
    modes: np.ndarray
    """Indices into MODES; any number for leaves."""
    after_true: np.ndarray
    after_false: np.ndarray
    missing: np.ndarray
    """Whether NaN takes the true branch."""
    members: Sequence[Sequence[float]]
    """The sets of MEMBER nodes, in order."""
    votes: Votes

    @property
    def is_leaf(self) -> np.ndarray:
        """Return which nodes are leaves."""
        own = np.arange(len(self.modes))
        return (self.after_true == own) & (self.after_false == own)


def cycle() -> ArtifactError:
    """Build the error for nodes that are no trees."""
    return ArtifactError("the nodes of a decision tree form a cycle, or it has several roots")


def _unique(numbers: np.ndarray, end: int) -> np.ndarray:
    if 16 * len(numbers) < end:
        return np.unique(numbers)
    mask = np.zeros(end, bool)
    mask[numbers] = True
    return np.flatnonzero(mask)


def depth_of(roots: np.ndarray, first: np.ndarray, second: np.ndarray) -> int:
    """Return the largest number of comparisons from a root to a leaf. Raises ArtifactError for a cycle of nodes."""
    reached, steps = _unique(roots, len(first)), 0
    while True:
        reached = reached[(first[reached] != reached) | (second[reached] != reached)]
        if not len(reached):
            return steps
        reached, steps = _unique(np.concatenate([first[reached], second[reached]]), len(first)), steps + 1
        if steps > len(first):
            raise cycle()


def owners_of(trees: Trees) -> np.ndarray | None:
    """Return the tree of each node, -1 for none. None where trees share nodes."""
    owners = np.full(len(trees.modes), -1)
    nodes, own = trees.roots, np.arange(len(trees.roots))
    while len(nodes):
        owners[nodes] = own
        inner = ~trees.is_leaf[nodes]
        nodes = np.concatenate([trees.after_true[nodes[inner]], trees.after_false[nodes[inner]]])
        own = np.concatenate([own[inner]] * 2)
        if (owners[nodes] >= 0).any():
            return None
    return owners


class Comparisons(NamedTuple):
    """Nodes that all ask whether a feature is at most a threshold; NaN is not, unless it is ``missing``."""

    features: np.ndarray
    thresholds: np.ndarray
    first: np.ndarray
    second: np.ndarray
    missing: np.ndarray


def comparisons_of(trees: Trees, dtype: np.dtype[Any]) -> Comparisons:
    """Return the nodes of trees with thresholds of the features' type. Nodes keep their numbers; others follow.

    ``x < t`` is ``x <= p``, where ``p`` is the number before ``t``. ``x == t`` is two nodes, ``x <= t`` and then
    ``x <= p``, and a set is a chain of such pairs.
    """
    modes = np.where(trees.is_leaf, 0, trees.modes)
    thresholds = trees.thresholds.astype(dtype)
    below = np.isin(modes, (_LT, _GTE))
    thresholds[below] = _before(thresholds[below])
    swapped = np.isin(modes, (_GTE, _GT))
    first = np.where(swapped, trees.after_false, trees.after_true)
    second = np.where(swapped, trees.after_true, trees.after_false)
    plain = Comparisons(trees.features, thresholds, first, second, trees.missing ^ swapped)
    equal = np.flatnonzero(np.isin(modes, (_EQ, _NEQ, _MEMBER)))
    return _with_equalities(plain, equal, modes[equal], trees.members) if len(equal) else plain


def _before(numbers: np.ndarray) -> np.ndarray:
    """Return the next smaller numbers; NaN, which nothing is at most, before the smallest."""
    return np.where(np.isneginf(numbers), np.nan, np.nextafter(numbers, numbers.dtype.type(-np.inf)))


def _with_equalities(
    nodes: Comparisons, equal: np.ndarray, modes: np.ndarray, members: Sequence[Sequence[float]]
) -> Comparisons:
    """Return nodes whose numbers are in ``equal`` as pairs of comparisons, a pair for each member of a set."""
    sets = [list(m) or [np.nan] for m in members]
    counts = np.ones(len(equal), np.int64)
    counts[modes == _MEMBER] = [len(m) for m in sets]
    of = np.repeat(np.arange(len(equal)), counts)
    values = nodes.thresholds[equal][of]
    values[modes[of] == _MEMBER] = [v for m in sets for v in m]
    total, count = len(nodes.features), len(of)
    begins = np.r_[True, of[1:] != of[:-1]]
    heads, tails = np.where(begins, equal[of], total + 2 * np.arange(count)), total + 2 * np.arange(count) + 1
    is_not = modes[of] == _NEQ
    hit = np.where(is_not, nodes.second[equal][of], nodes.first[equal][of])
    miss = np.where(is_not, nodes.first[equal][of], nodes.second[equal][of])
    after = np.where(np.r_[begins[1:], True], miss, np.r_[heads[1:], 0])

    def extended(old: np.ndarray, head: Any, tail: Any) -> np.ndarray:
        new = np.concatenate([old, np.zeros(2 * count, old.dtype)])
        new[heads], new[tails] = head, tail
        return new

    features = nodes.features[equal][of]
    return Comparisons(
        extended(nodes.features, features, features),
        extended(nodes.thresholds, values, _before(values)),
        extended(nodes.first, tails, after),
        extended(nodes.second, after, hit),
        extended(nodes.missing, nodes.missing[equal][of] & begins & ~is_not, False),
    )


def records_of(nodes: Comparisons, words: np.ndarray, missing: bool) -> np.ndarray:
    """Return the records of nodes; ``words`` are the words of leaves, by the number of the node."""
    dtype = words.dtype
    own = np.arange(len(nodes.features))
    is_leaf = (nodes.first == own) & (nodes.second == own)
    records = np.empty((len(own), WORDS), dtype)
    records[:, 0] = np.where(is_leaf, 0, nodes.features * 2 + nodes.missing if missing else nodes.features)
    records[:, 1] = nodes.thresholds.view(dtype)
    records[: len(words), 1][is_leaf[: len(words)]] = words[is_leaf[: len(words)]]
    records[:, 2], records[:, 3] = (nodes.first - own) * WORDS, (nodes.second - own) * WORDS
    return records.reshape(-1)
