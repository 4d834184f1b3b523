"""ONNX operators of ai.onnx.ml that are sums of decision trees, which samples go down side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphc.base.errors import ArtifactError, AttributeValueError
from graphc.interop.onnx.elements import FLOAT
from graphc.interop.onnx.graph import TensorAttribute
from graphc.interop.onnx.ops.features import DOMAIN, labelled, post_transformed
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.tensors.creation import from_numpy
from graphc.tensors.free_functions import cat, where
from graphc.tensors.tensor import Tensor

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
"""Comparisons of features with thresholds, in the order of TreeEnsemble's numbers for them."""
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass(slots=True)
class Trees:
    """Nodes of all trees, leaves among them: these lead to themselves."""

    roots: np.ndarray
    features: np.ndarray
    thresholds: np.ndarray
    modes: np.ndarray
    """Numbers of MODES."""
    after_true: np.ndarray
    after_false: np.ndarray
    missing: np.ndarray
    """Whether NaN goes where the comparison is true."""
    members: np.ndarray
    """The sets of MEMBER nodes, filled up with NaN: [nodes, size]."""
    weights: np.ndarray
    """What each leaf gives to each target, NaN where it gives nothing: [nodes, targets]."""

    def depth(self) -> int:
        """The largest number of comparisons from a root to a leaf. Raises ArtifactError where nodes go round."""
        reached, steps = np.unique(self.roots), 0
        while True:
            after = np.unique(np.concatenate([self.after_true[reached], self.after_false[reached]]))
            if np.array_equal(after, self.after_true[after]) and np.array_equal(after, self.after_false[after]):
                return steps + (not np.array_equal(after, reached))
            reached, steps = after, steps + 1
            if steps > len(self.modes):
                raise _circle()


def _circle() -> ArtifactError:
    return ArtifactError("the nodes of a decision tree go round in a circle, or it has several roots")


def _leaves(trees: Trees, x: Tensor) -> Tensor:
    """The leaf that each sample of x [n, features] reaches in each tree: i64[n, trees]."""
    tables = {name: from_numpy(getattr(trees, name)) for name in ("features", "after_true", "after_false", "modes")}
    thresholds = from_numpy(trees.thresholds).to(x.dtype)
    node = from_numpy(trees.roots).unsqueeze(0).expand(x.shape[0], len(trees.roots))
    kinds = sorted(set(trees.modes.tolist()))
    for _ in range(trees.depth()):
        feature = x.gather(1, tables["features"][node])
        given = [_compared(trees, kind, feature, thresholds, node) for kind in kinds]
        goes = given[0]
        for kind, found in zip(kinds[1:], given[1:], strict=True):
            goes = where(tables["modes"][node].eq(kind), found, goes)
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
    """What all trees say: [n, targets]."""
    if aggregate not in AGGREGATES:
        raise AttributeValueError(f"aggregate_function {aggregate!r}", remedy=f"one of {', '.join(AGGREGATES)}")
    leaves = _leaves(trees, x)
    if aggregate in ("SUM", "AVERAGE"):
        total = from_numpy(np.nan_to_num(trees.weights)).to(x.dtype)[leaves].sum(1)
        return total if aggregate == "SUM" else total / len(trees.roots)
    none = np.inf if aggregate == "MIN" else -np.inf
    given = from_numpy(np.nan_to_num(trees.weights, nan=none)).to(x.dtype)[leaves]
    found = given.amin(1) if aggregate == "MIN" else given.amax(1)
    return where(found.eq(none), 0.0, found)


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
    """The sum (or average, least, largest) of what trees give for each row: [n, targets]."""
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
    """Numbers of nodes, and zeros of leaves."""
    return np.concatenate([np.asarray(numbers, dtype), np.zeros(leaves, dtype)])


def _members(values: TensorAttribute | None, modes: np.ndarray, count: int) -> np.ndarray:
    """The set of each node. Sets are separated by NaN in the file."""
    sets: list[list[float]] = [[]]
    for value in [] if values is None else values.array.tolist():
        if value != value:
            sets.append([])
        else:
            sets[-1].append(value)
    found = np.full((count, max(map(len, sets)) or 1), np.nan)
    for node, members in zip(np.flatnonzero(modes == MODES.index("MEMBER")), sets, strict=False):
        found[node, : len(members)] = members
    return found


# ---- the operators before TreeEnsemble


def _numbers(attributes: dict[str, Any], name: str) -> np.ndarray:
    """Real numbers of an attribute, which may be a tensor; none where it is left out."""
    given = attributes.get(f"{name}_as_tensor", attributes.get(name, ()))
    return np.asarray(given.array if isinstance(given, TensorAttribute) else given, np.float64)


def _read(attributes: dict[str, Any], prefix: str, targets: int) -> Trees:
    """Trees of nodes with numbers of their own in each, and of votes for targets or classes."""
    names = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"], strict=True))
    places = {name: i for i, name in enumerate(names)}
    kinds = attributes["nodes_modes"]
    is_leaf = np.array([kind == "LEAF" for kind in kinds])
    own = np.arange(len(names))

    def after(field: str) -> np.ndarray:
        try:
            numbers = attributes[field]
            return np.array(
                [
                    i if leaf else places[tree, number]
                    for i, ((tree, _), number, leaf) in enumerate(zip(names, numbers, is_leaf, strict=True))
                ],
                np.int64,
            )
        except KeyError:
            raise ArtifactError("a decision tree names a node that it has not") from None

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
        place = places[tree, node], target
        weights[place] = weight if np.isnan(weights[place]) else weights[place] + weight
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
    found = post_transformed(_based(scores, base), post_transform)
    return Value(FLOAT, found.to("float32"))


def _real(x: Value) -> Tensor:
    return x.tensor if x.element.is_floating_point else x.tensor.to("float32")


def _based(scores: Tensor, base: np.ndarray) -> Tensor:
    return scores + from_numpy(base).to(scores.dtype) if base.size else scores


@op("TreeEnsembleClassifier", domain=DOMAIN, values=True)
def tree_ensemble_classifier(X: Value, *, post_transform: str = "NONE", **attributes: Any) -> tuple[Value, Value]:
    """Labels and scores of classes. Where votes are for one of two classes alone, the other's score follows."""
    texts, numbers = (attributes.get(f"classlabels_{kind}", ()) for kind in ("strings", "int64s"))
    count = len(texts or numbers)
    trees = _read(attributes, "class", count)
    base = _numbers(attributes, "base_values")
    scores = _scores(trees, _real(X), "SUM")
    if count == 2 and len(set(attributes["class_ids"])) == 1:
        one = _based(scores[:, attributes["class_ids"][0]].unsqueeze(1), base[-1:])
        places, scores = _of_two(one, bool((_numbers(attributes, "class_weights") >= 0).all()), post_transform)
    else:
        scores = _based(scores, base)
        places, scores = scores.argmax(-1), post_transformed(scores, post_transform)
    return labelled(places, texts, numbers), Value(FLOAT, scores.to("float32"))


def _of_two(score: Tensor, is_share: bool, post_transform: str) -> tuple[Tensor, Tensor]:
    """Which of two classes it is, and both scores, by the score of the second: a share of 1, or a number around 0."""
    places = (score > (0.5 if is_share else 0.0)).to("int64").squeeze(1)
    if post_transform == "LOGISTIC":
        share = score.sigmoid()
        return places, cat([1 - share, share], 1)
    return places, post_transformed(cat([1 - score if is_share else -score, score], 1), post_transform)
