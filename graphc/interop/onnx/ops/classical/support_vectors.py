"""Rules of ai.onnx.ml's support vector machines: kernels, one-against-one votes, and coupled probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from graphc.base.errors import AttributeValueError
from graphc.control.while_loop import while_loop
from graphc.interop.onnx.elements import FLOAT
from graphc.interop.onnx.ops.classical.features import DOMAIN, labelled, post_transformed
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.nn import functional as F
from graphc.tensors.creation import full, tensor, zeros
from graphc.tensors.free_functions import cat, stack, where
from graphc.tensors.tensor import Tensor

CLIP = 1e-7
"""Smallest probability of a class against another one, as in LIBSVM."""
STEPS, PRECISION = 100, 0.005
"""Limit of the steps that couple probabilities, and the error of a probability at which they end, times the number of
classes, as in LIBSVM."""


def _kernel(x: Tensor, vectors: Tensor, kind: str, parameters: Sequence[float]) -> Tensor:
    """Return the kernel of each row with each support vector: [rows, vectors]."""
    gamma, coefficient, degree = parameters or (0.0, 0.0, 0.0)
    if kind == "RBF":
        differences = x.unsqueeze(1) - vectors
        return ((differences * differences).sum(-1) * -gamma).exp()
    products = F.linear(x, vectors)
    if kind == "LINEAR":
        return products
    if kind == "POLY":
        return (products * gamma + coefficient) ** degree
    if kind == "SIGMOID":
        return (products * gamma + coefficient).tanh()
    raise AttributeValueError(f"kernel_type {kind!r}", remedy="use LINEAR, POLY, RBF or SIGMOID")


def _rows(x: Value) -> Tensor:
    rows = x.tensor.to("float32")
    return rows.unsqueeze(0) if rows.ndim == 1 else rows


@op("SVMRegressor", domain=DOMAIN, values=True)
def svm_regressor(
    X: Value,
    *,
    coefficients: Sequence[float],
    rho: Sequence[float],
    kernel_params: Sequence[float] = (),
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    support_vectors: Sequence[float] = (),
) -> Value:
    """Return the weighted sum of kernels with all support vectors. With ``one_class``, return its sign: 1 or -1."""
    x, weights = _rows(X), tensor(list(coefficients))
    if n_supports:
        vectors = tensor(list(support_vectors)).reshape(n_supports, -1)
        score = F.linear(_kernel(x, vectors, kernel_type, kernel_params), weights.unsqueeze(0)) + rho[0]
    else:
        score = F.linear(x, weights.unsqueeze(0)) + rho[0]
    if one_class:
        return Value(FLOAT, where(score > 0, 1.0, -1.0))
    return Value(FLOAT, post_transformed(score, post_transform))


@op("SVMClassifier", domain=DOMAIN, values=True)
def svm_classifier(
    X: Value,
    *,
    coefficients: Sequence[float],
    rho: Sequence[float],
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    kernel_params: Sequence[float] = (),
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: Sequence[float] = (),
    prob_b: Sequence[float] = (),
    support_vectors: Sequence[float] = (),
    vectors_per_class: Sequence[int] = (),
) -> tuple[Value, Value]:
    """Return labels, and scores: probabilities of classes, or the decisions between each two classes.

    A pair of classes has a decision of its own, and the class with the most votes wins. Without support vectors, each
    class has a linear score.
    """
    count, x = max(len(classlabels_strings or classlabels_ints), 1), _rows(X)
    if not sum(vectors_per_class):
        scores = F.linear(x, tensor(list(coefficients)).reshape(count, -1)) + rho[0]
        return _result(scores.argmax(-1), scores, classlabels_strings, classlabels_ints, post_transform)
    vectors = tensor(list(support_vectors)).reshape(sum(vectors_per_class), -1)
    kernels = _kernel(x, vectors, kernel_type, kernel_params)
    decisions = F.linear(kernels, tensor(_pair_weights(coefficients, vectors_per_class))) + tensor(list(rho))
    classes = _votes(decisions, count).argmax(-1)
    if prob_a:
        pairs = (-(decisions * tensor(list(prob_a)) + tensor(list(prob_b)))).sigmoid()
        scores = _coupled(pairs.clamp(CLIP, 1 - CLIP), count)
    elif count == 2:
        scores = cat([-decisions, decisions], 1)
    else:
        scores = decisions
    return _result(classes, scores, classlabels_strings, classlabels_ints, post_transform)


def _result(
    classes: Tensor, scores: Tensor, texts: Sequence[str], numbers: Sequence[int], transform: str
) -> tuple[Value, Value]:
    return labelled(classes, texts, numbers), Value(FLOAT, post_transformed(scores, transform))


def _pair_weights(coefficients: Sequence[float], vectors_per_class: Sequence[int]) -> np.ndarray:
    """Return the weights of all support vectors in the decision of each pair of classes: [pairs, vectors]."""
    counts = list(vectors_per_class)
    ends = np.cumsum(counts)
    table = np.asarray(coefficients, np.float32).reshape(len(counts) - 1, -1)
    rows = np.zeros((len(counts) * (len(counts) - 1) // 2, table.shape[1]), np.float32)
    for row, (a, b) in zip(rows, combinations(range(len(counts)), 2), strict=True):
        of_a, of_b = slice(ends[a] - counts[a], ends[a]), slice(ends[b] - counts[b], ends[b])
        row[of_a], row[of_b] = table[b - 1, of_a], table[a, of_b]
    return rows


def _votes(decisions: Tensor, count: int) -> Tensor:
    """Count the pairs that each class wins: [rows, classes]."""
    pairs = list(combinations(range(count), 2))
    first, second = np.zeros((2, count, len(pairs)), np.float32)
    for number, (a, b) in enumerate(pairs):
        first[a, number] = second[b, number] = 1
    won = (decisions > 0).to("float32")
    return F.linear(won, tensor(first)) + F.linear(1 - won, tensor(second))


def _coupled(pairs: Tensor, count: int) -> Tensor:
    """Return probabilities of classes from those of each class against each other one.

    Minimizes the squared contradictions (Wu, Lin and Weng, 2004), one class after the other, until a step changes
    nothing by more than the precision. A row keeps its probabilities once it has reached the precision.
    """
    against = _matrix(pairs, count)
    diagonal = (against * against).sum(1)
    q = -(against.transpose(1, 2) * against)
    eye = tensor(np.eye(count, dtype=np.float32))
    q = q * (1 - eye) + diagonal.unsqueeze(-1) * eye

    def gaps(p: Tensor) -> tuple[Tensor, Tensor]:
        slope = (q * p.unsqueeze(1)).sum(-1)
        total = (p * slope).sum(-1, True)
        return slope, total

    def is_open(p: Tensor) -> Tensor:
        slope, total = gaps(p)
        return (slope - total).abs().amax(-1, True) >= PRECISION / count

    def step(state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        number, p = state
        return number + 1, where(is_open(p), _swept(p, *gaps(p), q, count), p)

    start = full(pairs.shape[:1], 1 / count).unsqueeze(-1).expand(pairs.shape[0], count)
    most = max(STEPS, count)
    return while_loop(
        lambda state: (state[0] < most) & is_open(state[1]).any(), step, (zeros((), dtype="int64"), start + 0.0)
    )[1]


def _matrix(pairs: Tensor, count: int) -> Tensor:
    """Return the probability of class ``i`` against class ``j``: [rows, i, j], 0 on the diagonal."""
    numbers = {pair: i for i, pair in enumerate(combinations(range(count), 2))}
    columns = []
    for i in range(count):
        for j in range(count):
            column = pairs[:, numbers[min(i, j), max(i, j)]] if i != j else pairs[:, 0] * 0
            columns.append(1 - column if i > j else column)
    return stack(columns, 1).reshape(pairs.shape[0], count, count)


def _swept(p: Tensor, slope: Tensor, total: Tensor, q: Tensor, count: int) -> Tensor:
    """Improve the probability of one class after the other."""
    for t in range(count):
        own, unit = q[:, t, t].unsqueeze(-1), tensor(np.eye(count, dtype=np.float32)[t])
        change = (total - slope[:, t : t + 1]) / own
        scale = 1 + change
        total = (total + change * (change * own + 2 * slope[:, t : t + 1])) / (scale * scale)
        slope = (slope + change * q[:, t]) / scale
        p = (p + change * unit) / scale
    return p
