"""Rules of ai.onnx.ml's ensembles of decision trees, which all samples descend in parallel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArtifactError, AttributeValueError
from graphc.control.scan import scan
from graphc.interop.onnx.elements import FLOAT
from graphc.interop.onnx.graph import TensorAttribute
from graphc.interop.onnx.ops.classical.features import DOMAIN, labelled, post_transformed
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.ops.selection import index
from graphc.tensors.creation import from_numpy
from graphc.tensors.free_functions import cat, where
from graphc.tensors.tensor import Tensor

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
"""Comparisons of features with thresholds, in the order of TreeEnsemble's codes."""
Attributes = Mapping[str, Any]
JOINED = "graphc"
"""Domain of the operator that joins several ensembles."""
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
    """Return the leaf that each sample of x [n, features] reaches in each tree: i32[n, trees].

    The trees are data of one loop over levels, so the time to compile depends on neither their number nor their depth.
    """
    rows, width = x.shape
    if trees.features.size and not 0 <= trees.features.min() <= trees.features.max() < width:
        raise ArtifactError(f"a decision tree compares feature {trees.features.max()}, the input has {width}")
    elements, first = x.reshape(-1), index.iota(shape=(rows, 1), axis=0) * width
    modes = trees.modes.astype(np.int32)
    kinds = sorted(set(modes.tolist()))
    after = from_numpy(np.stack([trees.after_false, trees.after_true], 1).reshape(-1).astype(np.int32))

    def table(array: np.ndarray, node: Tensor) -> Tensor:
        return index.gather(from_numpy(array), node, axis=0)

    def descend(node: Tensor, _: Any) -> tuple[Tensor, Any]:
        feature = index.gather(elements, first + table(trees.features, node), axis=0)
        goes = _compared(trees, kinds[0], feature, table, node)
        for kind in kinds[1:]:
            goes = where(table(modes, node).eq(kind), _compared(trees, kind, feature, table, node), goes)
        if trees.missing.any():
            goes = goes | (feature.ne(feature) & table(trees.missing, node))
        return index.gather(after, node * 2 + goes.to("int32"), axis=0), ()

    roots = from_numpy(trees.roots.astype(np.int32)).unsqueeze(0).expand(rows, len(trees.roots))
    depth = trees.depth()
    return scan(descend, roots, None, length=depth)[0] if depth else roots


def _compared(
    trees: Trees, kind: int, feature: Tensor, table: Callable[[np.ndarray, Tensor], Tensor], node: Tensor
) -> Tensor:
    if MODES[kind] == "MEMBER":
        return feature.unsqueeze(-1).eq(table(trees.members.astype(feature.dtype.numpy), node)).any(-1)
    with_ = table(trees.thresholds.astype(feature.dtype.numpy), node)
    compare = {"LEQ": feature.le, "LT": feature.lt, "GTE": feature.ge, "GT": feature.gt, "EQ": feature.eq}
    return compare[MODES[kind]](with_) if kind < len(compare) else feature.ne(with_)


Contributions = Callable[[float], Tensor]
"""Weights of the reached leaves, [n, trees, targets], by the number in place of a missing weight."""


def _scores(trees: int, contributions: Contributions, aggregate: str) -> Tensor:
    """Return the aggregate of the reached leaves of all trees: [n, targets]."""
    if aggregate not in AGGREGATES:
        raise AttributeValueError(f"aggregate_function {aggregate!r}", remedy=f"use one of {', '.join(AGGREGATES)}")
    if aggregate in ("SUM", "AVERAGE"):
        total = contributions(0.0).sum(1) if trees > 1 else contributions(0.0).squeeze(1)
        return total if aggregate == "SUM" else total / trees
    none = np.inf if aggregate == "MIN" else -np.inf
    extreme = contributions(none).amin(1) if aggregate == "MIN" else contributions(none).amax(1)
    return where(extreme.eq(none), 0.0, extreme)


# ---- TreeEnsemble


def _newest_result(trees: int, contributions: Contributions, attributes: Attributes) -> tuple[Value, ...]:
    scores = _scores(trees, contributions, AGGREGATES[attributes.get("aggregate_function", 1)])
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
    weights = np.full((inner + leaves, n_targets), np.nan)
    weights[own, list(leaf_targetids)] = leaf_weights.array
    return Trees(
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


def _numbers(attributes: Attributes, name: str) -> np.ndarray:
    """Return the real numbers of an attribute, which may be a tensor. Empty where it is left out."""
    attribute = attributes.get(f"{name}_as_tensor", attributes.get(name, ()))
    return np.asarray(attribute.array if isinstance(attribute, TensorAttribute) else attribute, np.float64)


def _read(attributes: Attributes, prefix: str, targets: int) -> Trees:
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
    inner = [MODES.index(kind.removeprefix("BRANCH_")) for kind in kinds if kind != "LEAF"] or [0]
    modes = np.full(len(kinds), inner[0])
    modes[~is_leaf] = inner if not is_leaf.all() else []
    missing = attributes.get("nodes_missing_value_tracks_true") or [0] * len(names)
    return Trees(
        roots,
        np.asarray(attributes["nodes_featureids"], np.int64),
        _numbers(attributes, "nodes_values"),
        modes,
        followed,
        otherwise,
        np.array(missing, bool) & ~is_leaf,
        np.full((len(names), 1), np.nan),
        weights,
    )


def _read_regressor(attributes: Attributes) -> Trees:
    return _read(attributes, "target", attributes["n_targets"])


def _regressor_result(trees: int, contributions: Contributions, attributes: Attributes) -> tuple[Value, ...]:
    scores = _scores(trees, contributions, attributes.get("aggregate_function", "SUM"))
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


def _classifier_result(trees: int, contributions: Contributions, attributes: Attributes) -> tuple[Value, ...]:
    """Return labels and scores of classes. With votes for one of two classes, the other's score follows from it."""
    transform, base = attributes.get("post_transform", "NONE"), _numbers(attributes, "base_values")
    texts, numbers = _classes(attributes)
    scores = _scores(trees, contributions, "SUM")
    if len(texts or numbers) == 2 and len(set(attributes["class_ids"])) == 1:
        one = _based(scores[:, attributes["class_ids"][0]].unsqueeze(1), base[-1:])
        indices, scores = _of_two(one, bool((_numbers(attributes, "class_weights") >= 0).all()), transform)
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
    result: Callable[[int, Contributions, Attributes], tuple[Value, ...]]
    """Function from the number of trees, the weights of reached leaves, and the attributes to the results."""


ENSEMBLES = {
    "TreeEnsemble": Ensemble(lambda attributes: _read_newest(**attributes), _newest_result),
    "TreeEnsembleClassifier": Ensemble(_read_classifier, _classifier_result),
    "TreeEnsembleRegressor": Ensemble(_read_regressor, _regressor_result),
}


def _applied(x: Value, nodes: Sequence[tuple[str, Attributes]]) -> tuple[Value, ...]:
    """Return the results of operators on the same features, whose trees are descended together."""
    features = x.tensor if x.element.is_floating_point else x.tensor.to("float32")
    trees = [ENSEMBLES[name].read(attributes) for name, attributes in nodes]
    leaves = _leaves(_joined(trees), features)
    ends = np.cumsum([0, *(len(own.roots) for own in trees)]).tolist()
    widths = {own.weights.shape[1] for own in trees}
    weights = np.concatenate([np.pad(t.weights, ((0, 0), (0, max(widths) - t.weights.shape[1]))) for t in trees])
    shared: dict[float, Tensor] = {}

    def reached(none: float) -> Tensor:
        if none not in shared:
            filled = from_numpy(np.nan_to_num(weights, nan=none)).to(features.dtype)
            shared[none] = index.gather(filled, leaves, axis=0)
        return shared[none]

    results: list[Value] = []
    for i, (own, (name, attributes)) in enumerate(zip(trees, nodes, strict=True)):
        columns = slice(ends[i], ends[i + 1]), slice(own.weights.shape[1])

        def contributions(none: float, columns: tuple[slice, slice] = columns) -> Tensor:
            return reached(none)[:, *columns]

        results += ENSEMBLES[name].result(len(own.roots), contributions, attributes)
    return tuple(results)


def _joined(trees: Sequence[Trees]) -> Trees:
    """Return all trees as one table of nodes, without the weights of leaves."""
    if len(trees) == 1:
        return trees[0]
    starts = np.cumsum([0, *(len(own.modes) for own in trees)])[:-1]
    width = max(own.members.shape[1] for own in trees)
    padded = [np.pad(t.members, ((0, 0), (0, width - t.members.shape[1])), constant_values=np.nan) for t in trees]

    def rows(name: str, shifted: bool = False) -> np.ndarray:
        arrays = [getattr(own, name) for own in trees]
        return np.concatenate([a + s if shifted else a for a, s in zip(arrays, starts, strict=True)])

    return Trees(
        rows("roots", shifted=True),
        rows("features"),
        rows("thresholds"),
        rows("modes"),
        rows("after_true", shifted=True),
        rows("after_false", shifted=True),
        rows("missing"),
        np.concatenate(padded),
        np.empty((0, 0)),
    )


@op("TreeEnsemble", domain=DOMAIN, since=5, values=True)
def tree_ensemble(X: Value, **attributes: Any) -> Value:
    """Aggregate (sum, average, minimum or maximum) the weights of the reached leaves for each row: [n, targets]."""
    return _applied(X, [("TreeEnsemble", attributes)])[0]


@op("TreeEnsembleRegressor", domain=DOMAIN, values=True)
def tree_ensemble_regressor(X: Value, **attributes: Any) -> Value:
    return _applied(X, [("TreeEnsembleRegressor", attributes)])[0]


@op("TreeEnsembleClassifier", domain=DOMAIN, values=True)
def tree_ensemble_classifier(X: Value, **attributes: Any) -> tuple[Value, ...]:
    return _applied(X, [("TreeEnsembleClassifier", attributes)])


@op("TreeEnsembles", domain=JOINED, values=True)
def tree_ensembles(X: Value, *, nodes: Sequence[tuple[str, Attributes]]) -> tuple[Value, ...]:
    """Return the results of several tree ensembles that read the same features. No file contains this operator:
    ``interop.onnx.forests`` writes it."""
    return _applied(X, nodes)
