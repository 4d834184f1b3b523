"""Rules of ai.onnx.ml's ensembles of decision trees, which all samples descend in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphc.base.errors import ArtifactError, AttributeValueError
from graphc.interop.onnx.elements import FLOAT
from graphc.interop.onnx.graph import TensorAttribute
from graphc.interop.onnx.ops.classical.features import DOMAIN, labelled, post_transformed
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.tensors.creation import from_numpy
from graphc.tensors.free_functions import cat, where
from graphc.tensors.tensor import Tensor

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
"""Comparisons of features with thresholds, in the order of TreeEnsemble's codes."""
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass(slots=True)
class Trees:
    """Nodes of all trees, leaves included. Leaves lead to themselves."""

    roots: np.ndarray
    features: np.ndarray
    thresholds: np.ndarray
    modes: np.ndarray
    """Indices into MODES."""
    after_true: np.ndarray
    after_false: np.ndarray
    missing: np.ndarray
    """Whether NaN takes the true branch."""
    members: np.ndarray
    """The sets of MEMBER nodes, padded with NaN: [nodes, size]."""
    weights: np.ndarray
    """Contribution of each leaf to each target, NaN for none: [nodes, targets]."""

    def depth(self) -> int:
        """Return the largest number of comparisons from a root to a leaf. Raises ArtifactError for a cycle of nodes."""
        reached, steps = np.unique(self.roots), 0
        while True:
            after = np.unique(np.concatenate([self.after_true[reached], self.after_false[reached]]))
            if np.array_equal(after, self.after_true[after]) and np.array_equal(after, self.after_false[after]):
                return steps + (not np.array_equal(after, reached))
            reached, steps = after, steps + 1
            if steps > len(self.modes):
                raise _circle()


def _circle() -> ArtifactError:
    return ArtifactError("the nodes of a decision tree form a cycle, or it has several roots")


def _leaves(trees: Trees, x: Tensor) -> Tensor:
    """Return the leaf that each sample of x [n, features] reaches in each tree: i64[n, trees]."""
    tables = {name: from_numpy(getattr(trees, name)) for name in ("features", "after_true", "after_false", "modes")}
    thresholds = from_numpy(trees.thresholds).to(x.dtype)
    node = from_numpy(trees.roots).unsqueeze(0).expand(x.shape[0], len(trees.roots))
    kinds = sorted(set(trees.modes.tolist()))
    for _ in range(trees.depth()):
        feature = x.gather(1, tables["features"][node])
        outcomes = [_compared(trees, kind, feature, thresholds, node) for kind in kinds]
        goes = outcomes[0]
        for kind, outcome in zip(kinds[1:], outcomes[1:], strict=True):
            goes = where(tables["modes"][node].eq(kind), outcome, goes)
        if trees.missing.any():
            goes = goes | (feature.ne(feature) & from_numpy(trees.missing)[node])
        node = where(goes, tables["after_true"][node], tables["after_false"][node])
    return node


def _compared(trees: Trees, kind: int, feature: Tensor, thresholds: Tensor, node: Tensor) -> Tensor:
    if MODES[kind] == "MEMBER":
        return feature.unsqueeze(-1).eq(from_numpy(trees.members).to(feature.dtype)[node]).any(-1)
    with_ = thresholds[node]
    compare = {"LEQ": feature.le, "LT": feature.lt, "GTE": feature.ge, "GT": feature.gt, "EQ": feature.eq}
    return compare[MODES[kind]](with_) if kind < len(compare) else feature.ne(with_)


def _scores(trees: Trees, x: Tensor, aggregate: str) -> Tensor:
    """Return the aggregate of all trees: [n, targets]."""
    if aggregate not in AGGREGATES:
        raise AttributeValueError(f"aggregate_function {aggregate!r}", remedy=f"use one of {', '.join(AGGREGATES)}")
    leaves = _leaves(trees, x)
    if aggregate in ("SUM", "AVERAGE"):
        total = from_numpy(np.nan_to_num(trees.weights)).to(x.dtype)[leaves].sum(1)
        return total if aggregate == "SUM" else total / len(trees.roots)
    none = np.inf if aggregate == "MIN" else -np.inf
    contributions = from_numpy(np.nan_to_num(trees.weights, nan=none)).to(x.dtype)[leaves]
    extreme = contributions.amin(1) if aggregate == "MIN" else contributions.amax(1)
    return where(extreme.eq(none), 0.0, extreme)


@op("TreeEnsemble", domain=DOMAIN, since=5, values=True)
def tree_ensemble(
    X: Value,
    *,
    aggregate_function: int = 1,
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
    post_transform: int = 0,
    tree_roots: Sequence[int],
) -> Value:
    """Aggregate (sum, average, minimum or maximum) the weights of the reached leaves for each row: [n, targets]."""
    inner, leaves = len(nodes_featureids), len(leaf_targetids)
    own = np.arange(inner, inner + leaves)
    modes = nodes_modes.array.astype(np.int64)
    weights = np.full((inner + leaves, n_targets), np.nan)
    weights[own, list(leaf_targetids)] = leaf_weights.array
    trees = Trees(
        np.array(tree_roots, np.int64),
        _extended(nodes_featureids, leaves, np.int64),
        _extended(nodes_splits.array, leaves, np.float64),
        _extended(modes, leaves, np.int64),
        np.concatenate([np.array(nodes_truenodeids) + inner * np.array(nodes_trueleafs), own]),
        np.concatenate([np.array(nodes_falsenodeids) + inner * np.array(nodes_falseleafs), own]),
        _extended(nodes_missing_value_tracks_true or [0] * inner, leaves, bool),
        _members(membership_values, modes, inner + leaves),
        weights,
    )
    scores = _scores(trees, X.tensor, AGGREGATES[aggregate_function])
    return Value(X.element, post_transformed(scores, POST_TRANSFORMS[post_transform]))


def _extended(numbers: Any, leaves: int, dtype: Any) -> np.ndarray:
    """Append zeros for the leaves to the numbers of the nodes."""
    return np.concatenate([np.asarray(numbers, dtype), np.zeros(leaves, dtype)])


def _members(values: TensorAttribute | None, modes: np.ndarray, count: int) -> np.ndarray:
    """Return the set of each node. NaN separates the sets in the file."""
    sets: list[list[float]] = [[]]
    for value in [] if values is None else values.array.tolist():
        if value != value:
            sets.append([])
        else:
            sets[-1].append(value)
    table = np.full((count, max(map(len, sets)) or 1), np.nan)
    for node, members in zip(np.flatnonzero(modes == MODES.index("MEMBER")), sets, strict=False):
        table[node, : len(members)] = members
    return table


# ---- the operators before TreeEnsemble


def _numbers(attributes: dict[str, Any], name: str) -> np.ndarray:
    """Return the real numbers of an attribute, which may be a tensor. Empty where it is left out."""
    attribute = attributes.get(f"{name}_as_tensor", attributes.get(name, ()))
    return np.asarray(attribute.array if isinstance(attribute, TensorAttribute) else attribute, np.float64)


def _read(attributes: dict[str, Any], prefix: str, targets: int) -> Trees:
    """Read trees whose nodes are numbered within each tree, and their votes for targets or classes."""
    names = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"], strict=True))
    node_indices = {name: i for i, name in enumerate(names)}
    kinds = attributes["nodes_modes"]
    is_leaf = np.array([kind == "LEAF" for kind in kinds])
    own = np.arange(len(names))

    def after(field: str) -> np.ndarray:
        try:
            numbers = attributes[field]
            return np.array(
                [
                    i if leaf else node_indices[tree, number]
                    for i, ((tree, _), number, leaf) in enumerate(zip(names, numbers, is_leaf, strict=True))
                ],
                np.int64,
            )
        except KeyError:
            raise ArtifactError("a decision tree refers to a node that it does not have") from None

    followed, otherwise = after("nodes_truenodeids"), after("nodes_falsenodeids")
    reached = set(followed[~is_leaf]) | set(otherwise[~is_leaf])
    roots = np.array([i for i in own if i not in reached], np.int64)
    if len(roots) != len(set(attributes["nodes_treeids"])):
        raise _circle()
    weights = np.full((len(names), targets), np.nan)
    votes = zip(
        attributes[f"{prefix}_treeids"],
        attributes[f"{prefix}_nodeids"],
        attributes[f"{prefix}_ids"],
        _numbers(attributes, f"{prefix}_weights"),
        strict=True,
    )
    for tree, node, target, weight in votes:
        vote = node_indices[tree, node], target
        weights[vote] = weight if np.isnan(weights[vote]) else weights[vote] + weight
    modes = [0 if kind == "LEAF" else MODES.index(kind.removeprefix("BRANCH_")) for kind in kinds]
    missing = attributes.get("nodes_missing_value_tracks_true") or [0] * len(names)
    return Trees(
        roots,
        np.asarray(attributes["nodes_featureids"], np.int64),
        _numbers(attributes, "nodes_values"),
        np.array(modes, np.int64),
        followed,
        otherwise,
        np.array(missing, bool) & ~is_leaf,
        np.full((len(names), 1), np.nan),
        weights,
    )


@op("TreeEnsembleRegressor", domain=DOMAIN, values=True)
def tree_ensemble_regressor(
    X: Value, *, n_targets: int, aggregate_function: str = "SUM", post_transform: str = "NONE", **attributes: Any
) -> Value:
    trees = _read(attributes, "target", n_targets)
    scores = _scores(trees, _real(X), aggregate_function)
    base = _numbers(attributes, "base_values")
    result = post_transformed(_based(scores, base), post_transform)
    return Value(FLOAT, result.to("float32"))


def _real(x: Value) -> Tensor:
    return x.tensor if x.element.is_floating_point else x.tensor.to("float32")


def _based(scores: Tensor, base: np.ndarray) -> Tensor:
    return scores + from_numpy(base).to(scores.dtype) if base.size else scores


@op("TreeEnsembleClassifier", domain=DOMAIN, values=True)
def tree_ensemble_classifier(X: Value, *, post_transform: str = "NONE", **attributes: Any) -> tuple[Value, Value]:
    """Return labels and scores of classes. With votes for one of two classes, the other's score follows from it."""
    texts, numbers = (attributes.get(f"classlabels_{kind}", ()) for kind in ("strings", "int64s"))
    count = len(texts or numbers)
    trees = _read(attributes, "class", count)
    base = _numbers(attributes, "base_values")
    scores = _scores(trees, _real(X), "SUM")
    if count == 2 and len(set(attributes["class_ids"])) == 1:
        one = _based(scores[:, attributes["class_ids"][0]].unsqueeze(1), base[-1:])
        indices, scores = _of_two(one, bool((_numbers(attributes, "class_weights") >= 0).all()), post_transform)
    else:
        scores = _based(scores, base)
        indices, scores = scores.argmax(-1), post_transformed(scores, post_transform)
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
