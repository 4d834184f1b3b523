"""Rules of ai.onnx.ml's ensembles of decision trees, which all samples descend together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArtifactError, AttributeValueError
from graphc.interop.onnx.elements import FLOAT
from graphc.interop.onnx.graph import TensorAttribute
from graphc.interop.onnx.ops.classical.features import DOMAIN, labelled, post_transformed
from graphc.interop.onnx.ops.classical.tree_records import (
    MODES,
    Trees,
    Votes,
    comparisons_of,
    cycle,
    depth_of,
    owners_of,
    records_of,
)
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.ops.pointwise.bits import bitcast
from graphc.ops.selection.descent import WORDS, descend
from graphc.ops.selection.index import gather
from graphc.tensors.creation import from_numpy, full_like
from graphc.tensors.free_functions import cat, where
from graphc.tensors.tensor import Tensor

Attributes = Mapping[str, Any]
JOINED = "graphc"
"""Domain of the operator that joins several ensembles."""
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


# ---- TreeEnsemble


def _newest_result(scores: Tensor, attributes: Attributes) -> tuple[Value, ...]:
    return (Value.of(post_transformed(scores, POST_TRANSFORMS[attributes.get("post_transform", 0)])),)


def _read_newest(
    *,
    leaf_targetids: Sequence[int],
    leaf_weights: TensorAttribute,
    membership_values: TensorAttribute | None = None,
    n_targets: int,
    nodes_falseleafs: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: TensorAttribute | None = None,
    nodes_missing_value_tracks_true: Sequence[int] = (),
    nodes_modes: TensorAttribute,
    nodes_splits: TensorAttribute,
    nodes_trueleafs: Sequence[int],
    nodes_truenodeids: Sequence[int],
    tree_roots: Sequence[int],
    **_: Any,
) -> Trees:
    """Read trees whose inner nodes and leaves are numbered across all trees."""
    inner, leaves = len(nodes_featureids), len(leaf_targetids)
    own = np.arange(inner, inner + leaves)
    modes = nodes_modes.array.astype(np.int64)
    return Trees(
        np.array(tree_roots, np.int64),
        _extended(nodes_featureids, leaves, np.int64),
        _extended(nodes_splits.array, leaves, np.float64),
        _extended(modes, leaves, np.int64),
        np.concatenate([np.array(nodes_truenodeids) + inner * np.array(nodes_trueleafs), own]),
        np.concatenate([np.array(nodes_falsenodeids) + inner * np.array(nodes_falseleafs), own]),
        _extended(nodes_missing_value_tracks_true or [0] * inner, leaves, bool),
        _members(membership_values)[: np.count_nonzero(modes == MODES.index("MEMBER"))],
        Votes(own, np.array(leaf_targetids, np.int64), leaf_weights.array, n_targets),
    )


def _extended(numbers: Any, leaves: int, dtype: Any) -> np.ndarray:
    """Append zeros for the leaves to the numbers of the nodes."""
    return np.concatenate([np.asarray(numbers, dtype), np.zeros(leaves, dtype)])


def _members(values: TensorAttribute | None) -> list[list[float]]:
    """Return the sets of nodes. NaN separates the sets in the file."""
    sets: list[list[float]] = [[]]
    for value in [] if values is None else values.array.tolist():
        if value != value:
            sets.append([])
        else:
            sets[-1].append(value)
    return sets


# ---- the operators before TreeEnsemble


def _numbers(attributes: Attributes, name: str) -> np.ndarray:
    """Return the real numbers of an attribute, which may be a tensor. Empty where it is left out."""
    attribute = attributes.get(f"{name}_as_tensor", attributes.get(name, ()))
    return np.asarray(attribute.array if isinstance(attribute, TensorAttribute) else attribute, np.float64)


class _NodeNames:
    """Lookup of nodes by the numbers of their trees and their numbers within these."""

    def __init__(self, trees: Sequence[int], nodes: Sequence[int]):
        self._trees, self.of_nodes = np.unique(np.asarray(trees, np.int64), return_inverse=True)
        numbers = np.asarray(nodes, np.int64)
        self._least, self._most = numbers.min(initial=0), numbers.max(initial=0)
        keys = self._keys(self.of_nodes, numbers)
        self._order = np.argsort(keys, kind="stable")
        self._sorted = keys[self._order]

    def _keys(self, trees: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        return trees * (self._most - self._least + 1) + numbers - self._least

    def trees_of(self, numbers: Sequence[int]) -> np.ndarray:
        """Return the indices of trees. Raises ArtifactError for a tree that is missing."""
        wanted = np.asarray(numbers, np.int64)
        indices = np.searchsorted(self._trees, wanted).clip(max=len(self._trees) - 1)
        return self._valid(indices, self._trees[indices] == wanted)

    def find(self, trees: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return the positions of nodes, by indices of trees. Raises ArtifactError for a node that is missing."""
        keys = self._keys(trees, numbers)
        indices = np.searchsorted(self._sorted, keys).clip(max=len(self._sorted) - 1)
        inside = (numbers >= self._least) & (numbers <= self._most)
        return self._order[self._valid(indices, inside & (self._sorted[indices] == keys))]

    @staticmethod
    def _valid(indices: np.ndarray, valid: np.ndarray) -> np.ndarray:
        if not valid.all():
            raise ArtifactError("a decision tree refers to a node that it does not have")
        return indices


def _read(attributes: Attributes, prefix: str, targets: int) -> Trees:
    """Read trees whose nodes are numbered within each tree, and their votes for targets or classes."""
    names = _NodeNames(attributes["nodes_treeids"], attributes["nodes_nodeids"])
    kinds = np.array(attributes["nodes_modes"])
    own = np.arange(len(kinds))
    inner = own[kinds != "LEAF"]

    def after(field: str) -> np.ndarray:
        positions = own.copy()
        positions[inner] = names.find(names.of_nodes[inner], np.asarray(attributes[field], np.int64)[inner])
        return positions

    followed, otherwise = after("nodes_truenodeids"), after("nodes_falsenodeids")
    is_root = np.ones(len(own), bool)
    is_root[followed[inner]] = is_root[otherwise[inner]] = False
    roots = np.flatnonzero(is_root)
    if len(roots) != names.of_nodes.max(initial=-1) + 1:
        raise cycle()
    modes = np.zeros(len(kinds), np.int64)
    for kind in np.unique(kinds[inner]):
        modes[kinds == kind] = MODES.index(kind.removeprefix("BRANCH_"))
    missing = np.zeros(len(own), bool)
    tracks = attributes.get("nodes_missing_value_tracks_true") or missing
    missing[inner] = np.asarray(tracks, bool)[inner]
    votes = Votes(
        names.find(
            names.trees_of(attributes[f"{prefix}_treeids"]), np.asarray(attributes[f"{prefix}_nodeids"], np.int64)
        ),
        np.asarray(attributes[f"{prefix}_ids"], np.int64),
        _numbers(attributes, f"{prefix}_weights"),
        targets,
    )
    features, thresholds = np.asarray(attributes["nodes_featureids"], np.int64), _numbers(attributes, "nodes_values")
    return Trees(roots, features, thresholds, modes, followed, otherwise, missing, (), votes)


def _read_regressor(attributes: Attributes) -> Trees:
    return _read(attributes, "target", attributes["n_targets"])


def _regressor_result(scores: Tensor, attributes: Attributes) -> tuple[Value, ...]:
    base = _numbers(attributes, "base_values")
    result = post_transformed(_based(scores, base), attributes.get("post_transform", "NONE"))
    return (Value(FLOAT, result.to("float32")),)


def _based(scores: Tensor, base: np.ndarray) -> Tensor:
    return scores + from_numpy(base).to(scores.dtype) if base.size else scores


def _classes(attributes: Attributes) -> tuple[Sequence[str], Sequence[int]]:
    return attributes.get("classlabels_strings", ()), attributes.get("classlabels_int64s", ())


def _read_classifier(attributes: Attributes) -> Trees:
    texts, numbers = _classes(attributes)
    return _read(attributes, "class", len(texts or numbers))


def _classifier_result(scores: Tensor, attributes: Attributes) -> tuple[Value, ...]:
    """Return labels and scores of classes. With votes for one of two classes, the other's score follows from it."""
    transform, base = attributes.get("post_transform", "NONE"), _numbers(attributes, "base_values")
    texts, numbers = _classes(attributes)
    voted = attributes["voted"]
    if len(texts or numbers) == 2 and len(voted) == 1:
        one = _based(scores[:, voted[0]].unsqueeze(1), base[-1:])
        indices, scores = _of_two(one, attributes["is_probability"], transform)
    else:
        scores = _based(scores, base)
        indices, scores = scores.argmax(-1), post_transformed(scores, transform)
    return labelled(indices, texts, numbers), Value(FLOAT, scores.to("float32"))


def _of_two(score: Tensor, is_probability: bool, post_transform: str) -> tuple[Tensor, Tensor]:
    """Return the index of the class and both scores, by the score of the second class.

    The score is a probability, or a number around 0.
    """
    indices = (score > (0.5 if is_probability else 0.0)).to("int64").squeeze(1)
    if post_transform == "LOGISTIC":
        probability = score.sigmoid()
        return indices, cat([1 - probability, probability], 1)
    return indices, post_transformed(cat([1 - score if is_probability else -score, score], 1), post_transform)


# ---- the operators


class Ensemble(NamedTuple):
    """Form of trees in an operator's attributes."""

    read: Callable[[Attributes], Trees]
    aggregate: Callable[[Attributes], str]
    result: Callable[[Tensor, Attributes], tuple[Value, ...]]
    """Function from scores [rows, targets] and the attributes to the results."""


ENSEMBLES = {
    "TreeEnsemble": Ensemble(
        lambda attributes: _read_newest(**attributes),
        lambda attributes: AGGREGATES[attributes.get("aggregate_function", 1)],
        _newest_result,
    ),
    "TreeEnsembleClassifier": Ensemble(_read_classifier, lambda _: "SUM", _classifier_result),
    "TreeEnsembleRegressor": Ensemble(
        _read_regressor, lambda attributes: attributes.get("aggregate_function", "SUM"), _regressor_result
    ),
}
_OF_TREES = ("nodes_", "target_", "class_", "leaf_", "membership_", "tree_")
"""Beginnings of the names of attributes that only describe trees."""


class _Member:
    """Trees of one operator. A leaf holds its weight where each tree votes for one target; otherwise it holds the index
    of its row in a table of weights."""

    def __init__(self, name: str, attributes: Attributes):
        self.form = ENSEMBLES[name]
        self.trees, self.aggregate = self.form.read(attributes), self.form.aggregate(attributes)
        if self.aggregate not in AGGREGATES:
            remedy = f"use one of {', '.join(AGGREGATES)}"
            raise AttributeValueError(f"aggregate_function {self.aggregate!r}", remedy=remedy)
        self.nothing = {"MIN": np.inf, "MAX": -np.inf}.get(self.aggregate, 0.0)
        """Weight of a leaf without a vote."""
        self.attributes = {n: a for n, a in attributes.items() if not n.startswith(_OF_TREES)}
        votes = self.trees.votes
        self.attributes |= {"voted": np.unique(votes.targets), "is_probability": bool((votes.weights >= 0).all())}
        self.order = self._by_target()

    def _by_target(self) -> np.ndarray | None:
        """Return the trees of each target that has any, padded with -1: [targets, trees]. None where a tree votes for
        several, or a leaf several times."""
        votes, owners = self.trees.votes, owners_of(self.trees)
        if owners is None or len(np.unique(votes.leaves)) < len(votes.leaves):
            return None
        targets = np.full(len(self.trees.roots), votes.targets.min() if len(votes.targets) else 0)
        targets[owners[votes.leaves]] = votes.targets
        if (targets[owners[votes.leaves]] != votes.targets).any():
            return None
        self.present, counts = np.unique(targets, return_counts=True)
        order = np.full((len(counts), counts.max(initial=0)), -1)
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        order[np.repeat(np.arange(len(counts)), counts), np.arange(len(targets)) - starts] = np.argsort(
            targets, kind="stable"
        )
        return order

    def weights(self, dtype: np.dtype[Any]) -> np.ndarray:
        """Return the weights of nodes: [nodes, 1], or [nodes, targets] where trees vote for several."""
        votes, is_single = self.trees.votes, self.order is not None
        shape = len(self.trees.modes), 1 if is_single else votes.width
        table, voted = np.zeros(shape, dtype), np.zeros(shape, bool)
        cells = votes.leaves, votes.targets * (not is_single)
        np.add.at(table, cells, votes.weights.astype(dtype))
        voted[cells] = True
        return np.where(voted, table, dtype.type(self.nothing))


class Forest:
    """Ensembles that read the same features, and whose trees are descended together."""

    def __init__(self, nodes: Sequence[tuple[str, Attributes]]):
        self.members = [_Member(name, attributes) for name, attributes in nodes]
        self._tables: dict[Any, _Tables] = {}

    def tables(self, dtype: np.dtype[Any]) -> _Tables:
        """Return the operands of ``descend`` for features of a type."""
        if dtype not in self._tables:
            self._tables[dtype] = _Tables(self.members, dtype)
        return self._tables[dtype]


class _Tables:
    """Operands of ``descend`` for features of one type: first the trees whose leaves hold weights, then the others."""

    def __init__(self, members: Sequence[_Member], dtype: np.dtype[Any]):
        word = np.dtype(f"i{dtype.itemsize}")
        nodes = [comparisons_of(member.trees, dtype) for member in members]
        self.missing = any(bool(n.missing.any()) for n in nodes)
        self.depth = max(depth_of(m.trees.roots, n.first, n.second) for m, n in zip(members, nodes, strict=True))
        features = np.concatenate([n.features for n in nodes])
        self.least, self.most = int(features.min(initial=0)), int(features.max(initial=0))
        records: list[np.ndarray] = []
        tables: list[np.ndarray] = []
        roots: list[np.ndarray] = []
        start = rows = 0
        for member, own in zip(members, nodes, strict=True):
            weights = member.weights(dtype)
            order = np.arange(len(member.trees.roots)) if member.order is None else member.order.reshape(-1)
            if member.order is None:
                tables.append(
                    np.concatenate([np.full_like(weights[:1], member.nothing), weights[member.trees.is_leaf]])
                )
                words = (rows + np.cumsum(member.trees.is_leaf)).astype(word)
                rows += len(tables[-1])
            else:
                words = np.ascontiguousarray(weights[:, 0]).view(word)
            nothing = np.array([0, np.array(member.nothing, dtype).view(word), 0, 0], word)
            records += [records_of(own, words, self.missing), nothing]
            end = start + len(records[-2])
            roots.append(np.where(order < 0, end, start + WORDS * member.trees.roots[order]))
            start = end + WORDS
        if start > np.iinfo(word).max:
            raise ArtifactError(f"decision trees with {start // WORDS} nodes are too large")
        self.records = np.concatenate(records)
        chosen = sorted(range(len(members)), key=lambda number: members[number].order is None)
        self.roots = np.concatenate([roots[number] for number in chosen]).astype(word)
        ends = dict(zip(chosen, np.cumsum([len(roots[number]) for number in chosen]).tolist(), strict=True))
        self.spans = [(ends[number] - len(own), ends[number]) for number, own in enumerate(roots)]
        self.weighted = sum(len(own) for m, own in zip(members, roots, strict=True) if m.order is not None)
        width = max((table.shape[1] for table in tables), default=0)
        padded = [np.pad(table, ((0, 0), (0, width - table.shape[1]))) for table in tables]
        self.table = np.concatenate(padded) if padded else None


def _applied(x: Value, forest: Forest) -> tuple[Value, ...]:
    """Return the results of operators on the same features, whose trees are descended together."""
    features = x.tensor if x.element.is_floating_point else x.tensor.to("float32")
    tables, width = forest.tables(features.dtype.numpy), features.shape[1]
    if not 0 <= tables.least <= tables.most < width:
        raise ArtifactError(f"a decision tree compares feature {tables.most}, the input has {width}")
    records, roots = from_numpy(tables.records), from_numpy(tables.roots)
    words = descend(features, records, roots, depth=tables.depth, missing=tables.missing)
    single = bitcast(words[: tables.weighted], dtype=features.dtype)
    several = None if tables.table is None else gather(from_numpy(tables.table), words[tables.weighted :], axis=0)
    results: list[Value] = []
    for member, (begin, end) in zip(forest.members, tables.spans, strict=True):
        if member.order is not None:
            weights = _of_targets(member, single[begin:end])
        else:
            assert several is not None
            weights = several[begin - tables.weighted : end - tables.weighted, :, : member.trees.votes.width]
        results += member.form.result(_aggregated(member, weights), member.attributes)
    return tuple(results)


def _of_targets(member: _Member, weights: Tensor) -> Tensor:
    """Return the weights of trees, sorted by their target, as [trees, rows, targets]."""
    assert member.order is not None
    by_target = weights.reshape(*member.order.shape, -1)
    if len(member.present) == member.trees.votes.width:
        return by_target.permute(1, 2, 0)
    columns = {int(target): by_target[i].unsqueeze(-1) for i, target in enumerate(member.present)}
    none = full_like(columns[int(member.present[0])], member.nothing)
    return cat([columns.get(target, none) for target in range(member.trees.votes.width)], -1)


def _aggregated(member: _Member, weights: Tensor) -> Tensor:
    """Return the aggregate of the reached leaves of all trees: [rows, targets]."""
    if member.aggregate in ("SUM", "AVERAGE"):
        total = weights.sum(0)
        return total if member.aggregate == "SUM" else total / len(member.trees.roots)
    extreme = weights.amin(0) if member.aggregate == "MIN" else weights.amax(0)
    return where(extreme.eq(member.nothing), 0.0, extreme)


@op("TreeEnsemble", domain=DOMAIN, since=5, values=True)
def tree_ensemble(X: Value, **attributes: Any) -> Value:
    """Aggregate (sum, average, minimum or maximum) the weights of the reached leaves for each row: [n, targets]."""
    return _applied(X, Forest([("TreeEnsemble", attributes)]))[0]


@op("TreeEnsembleRegressor", domain=DOMAIN, values=True)
def tree_ensemble_regressor(X: Value, **attributes: Any) -> Value:
    return _applied(X, Forest([("TreeEnsembleRegressor", attributes)]))[0]


@op("TreeEnsembleClassifier", domain=DOMAIN, values=True)
def tree_ensemble_classifier(X: Value, **attributes: Any) -> tuple[Value, ...]:
    return _applied(X, Forest([("TreeEnsembleClassifier", attributes)]))


@op("TreeEnsembles", domain=JOINED, values=True)
def tree_ensembles(X: Value, *, forest: Forest) -> tuple[Value, ...]:
    """Return the results of several tree ensembles that read the same features. No file contains this operator:
    ``interop.onnx.forests`` writes it."""
    return _applied(X, forest)
