"""Options of functions that scripts seldom use, and operands that only calls give."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from tests.conformance.compare import Case, cases, check, check_error, normal, positive, spread, whole

ROWS, SORTED = spread(3, 5), np.sort(spread(3, 4), -1)
COUNTS, SHARES = whole(4, 6, low=1), positive(6)
IMAGE, POINTS = normal(2, 3, 5, 4), normal(2, 3, 2, 2) * 0.7
VOLUME, PLACES = normal(1, 2, 4, 3, 5), normal(1, 2, 3, 2, 3) * 0.7


def _grids(t, image, points, modes):
    return [
        t.nn.functional.grid_sample(image, points, mode, padding, corners)
        for mode in modes
        for padding in ("zeros", "border", "reflection")
        for corners in (False, True)
    ]


ORDER = np.argsort(ROWS, -1)
VALUES = cases(
    ("searchsorted", lambda t, s, x: [t.searchsorted(s, x, side=side) for side in ("left", "right")], (SORTED, ROWS)),
    ("i32", lambda t, s, x: [t.searchsorted(s, x, out_int32=True), t.bucketize(x, s[0], out_int32=True)], (SORTED, ROWS)),
    ("sorter", lambda t, s, o, x: t.searchsorted(s, x, sorter=o, right=True), (ROWS, ORDER, SORTED)),
    ("cdist", lambda t, a, b: [t.cdist(a, b, 2.0, m) for m in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")], (normal(3, 4), normal(2, 4)), 1e-9, 1),
    ("cov by counts", lambda t, x, n: [t.cov(x, fweights=n), t.cov(x, correction=0, fweights=n)], (normal(3, 6), COUNTS)),
    ("cov by weights", lambda t, x, w: [t.cov(x, aweights=w), t.cov(x[0], aweights=w)], (normal(3, 6), SHARES)),
    ("cov by both", lambda t, x, n, w: t.cov(x, fweights=n, aweights=w), (normal(3, 6), COUNTS, SHARES)),
    ("cubic grids", lambda t, x, g: _grids(t, x, g, ["bicubic"]), (IMAGE, POINTS), 1e-9, 1),
    ("grids of volumes", lambda t, x, g: _grids(t, x, g, ["bilinear", "nearest"]), (VOLUME, PLACES), 1e-9, 1),
    ("no combinations", lambda t, x: t.combinations(x, 3).sum(), (normal(2),)),
    ("class alone", lambda t, x, c: [t.nn.functional.multi_margin_loss(x, c), t.nn.functional.multilabel_margin_loss(x, c)], (normal(), whole(1))),
    ("alpha dropout at rest", lambda t, x: t.nn.functional.feature_alpha_dropout(x, 0.5, training=False), (normal(4),)),
    ("narrow from a tensor", lambda t, x, n: [x.narrow(1, n, 2), t.narrow(x, -1, n, 1)], (normal(3, 4), np.array(-2))),
    ("whole addbmm", lambda t, b, x, y: [t.addbmm(b.to(d), x.to(d), y.to(d)) for d in (t.int8, t.uint8, t.int32)], (whole(5, 3, 4), whole(5, 2, 3, 5), whole(5, 2, 5, 4))),
    ("whole bilinear", lambda t, x, y, w: [t.nn.functional.bilinear(x.to(d), y.to(d), w.to(d)) for d in (t.int8, t.int32)], (whole(4, 2, 3), whole(4, 2, 4), whole(4, 5, 3, 4))),
    ("addr of booleans", lambda t, x, y: [t.addr(x.bool(), y[0].bool(), y[1].bool(), beta=b) for b in (0, 1)], (whole(2, 3, 3), whole(2, 2, 3))),
)  # fmt: skip
ERRORS = cases(
    ("two numbers", lambda t: t.maximum(2, 3), ()),
    ("a number alone", lambda t: t.eq(2, 2), ()),
    ("side", lambda t, x: t.searchsorted(x, x, side="middle"), (normal(3),)),
    ("both sides", lambda t, x: t.searchsorted(x, x, side="left", right=True), (normal(3),)),
    ("sorter of fractions", lambda t, x: t.searchsorted(x, x, sorter=x), (normal(3),)),
    ("boundaries", lambda t, x: t.bucketize(x, x), (normal(3, 4),)),
    ("compute mode", lambda t, x: t.cdist(x, x, compute_mode="fast"), (normal(3, 4),)),
    ("counts below zero", lambda t, x, n: t.cov(x, fweights=n), (normal(3), np.array([1, -1, 1]))),
    ("counts of fractions", lambda t, x: t.cov(x, fweights=x), (positive(3),)),
    ("weights of another size", lambda t, x, w: t.cov(x, aweights=w), (normal(3), positive(2))),
    ("cubic volumes", lambda t, x, g: t.nn.functional.grid_sample(x, g, "bicubic"), (VOLUME, PLACES)),
    ("margin", lambda t, x: t.nn.functional.triplet_margin_loss(x, x, x, margin=-1.0), (normal(3, 4),)),
    ("margin of a distance", lambda t, x: t.nn.functional.triplet_margin_with_distance_loss(x, x, x, margin=0.0), (normal(3, 4),)),
    ("pool of nothing", lambda t, x: t.nn.functional.max_pool1d(x, 1), (normal(2, 0, 4),)),
    ("no shifts", lambda t, x: x.roll(()), (normal(3),)),
    ("start of a truth", lambda t, x: t.narrow(x, 0, t.tensor(True), 1), (normal(3),)),
    ("renorm of a vector", lambda t, x: t.renorm(x, 2.0, 0, 1.0), (normal(3),)),
    ("nothing to join", lambda t: t.cat(()), ()),
    ("weights of classes", lambda t, x, c, w: t.nn.functional.multi_margin_loss(x, c, weight=w), (normal(2, 3), whole(3, 2), normal(4))),
)  # fmt: skip


@pytest.mark.parametrize("case", VALUES)
def test_options(case: Case):
    check(case)


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_calls(case: Case):
    check_error(case)


def test_bags_by_frequency_are_sums_of_embeddings_by_frequency():
    weights = [graphc.from_numpy(normal(5, 3)).requires_grad_() for _ in range(2)]
    places, chosen = graphc.from_numpy(whole(5, 4, 3)), graphc.from_numpy(normal(4, 3))
    bags = graphc.nn.functional.embedding_bag(places, weights[0], scale_grad_by_freq=True, mode="sum")
    rows = graphc.nn.functional.embedding(places, weights[1], scale_grad_by_freq=True)
    for result, weight in zip((bags, rows.sum(1)), weights, strict=True):
        (result * chosen).sum().backward()
        assert weight.grad is not None
    np.testing.assert_allclose(weights[0].grad.numpy(), weights[1].grad.numpy(), rtol=1e-12)


OPEN = {
    "narrow": (lambda x, n: x.narrow(0, n, 2), (normal(5, 2), np.array(-3))),
    "linspace": (lambda a, b: graphc.linspace(a, b, 5, dtype=graphc.float64), (np.array(0.5), np.array(3.0))),
    "whole linspace": (lambda a, b: graphc.linspace(a, b, 5, dtype=graphc.int64), (np.array(0.5), np.array(9.0))),
    "logspace": (lambda a: graphc.logspace(a, 3, 4, 2.0, dtype=graphc.float64), (np.array(0.5),)),
}
for _way in ("linear", "lower", "higher", "nearest", "midpoint"):
    OPEN[f"quantile {_way}"] = (
        lambda x, q, way=_way: (x.quantile(q, 1, interpolation=way), x.quantile(q[0], interpolation=way)),
        (normal(3, 5), np.array([0.0, 0.3, 0.75, 1.0])),
    )


@pytest.mark.parametrize("name", OPEN)
def test_operands_that_calls_give(name: str):
    function, arrays = OPEN[name]
    operands = [graphc.from_numpy(a.copy()) for a in arrays]
    expected, found = function(*operands), graphc.compile(function)(*operands)
    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (expected, found)), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-12)


def test_a_place_that_a_call_gives_must_be_inside():
    narrow = graphc.compile(lambda x, n: x.narrow(0, n, 2))
    with pytest.raises(IndexError):
        narrow(graphc.ones(4), graphc.tensor(3))


def test_a_share_that_a_call_gives_has_a_gradient():
    x, q = graphc.tensor([1.0, 2.0, 4.0], dtype=graphc.float64), graphc.tensor(0.75, dtype=graphc.float64)
    q.requires_grad_()
    graphc.compile(lambda x, q: x.quantile(q))(x, q).backward()
    assert q.grad is not None and q.grad.item() == 4.0
