"""Reductions, running sums and sorting against PyTorch: dimensions, keepdim, empty sizes, ties, special values."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.compare import Case, cases, check, normal, positive, spread, truth, whole

X, CUBE = spread(3, 5), spread(2, 3, 4)
DIMS = [None, 0, -1, (0, 2), (-1, 0), [1]]
NANS = np.array([[1.0, np.nan, 2.0], [np.nan, np.nan, np.nan], [3.0, -1.0, 0.5]])


@pytest.mark.parametrize("name", "sum mean amax amin var std logsumexp".split())
@pytest.mark.parametrize("dim", DIMS, ids=str)
@pytest.mark.parametrize("keepdim", [False, True])
def test_over_dimensions(name, dim, keepdim):
    if dim is None and name in ("amax", "amin", "logsumexp"):
        dim = (0, 1, 2)
    check(Case(name, lambda t, x: getattr(t, name)(x, dim, keepdim=keepdim), (CUBE,)))


@pytest.mark.parametrize("name", "prod argmax argmin any all".split())
@pytest.mark.parametrize("dim", [None, 0, -1, 1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_over_one_dimension(name, dim, keepdim):
    if dim is None and name != "prod":
        check(Case(name, lambda t, x: getattr(x, name)(), (CUBE,), order=0))
    elif dim is None:
        check(Case(name, lambda t, x: x.prod(), (CUBE,)))
    else:
        check(Case(name, lambda t, x: getattr(t, name)(x, dim=dim, keepdim=keepdim), (CUBE,)))


@pytest.mark.parametrize("name", "max min median kthvalue cummax cummin mode".split()[:-1])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_values_and_indices(name, dim):
    more = (2,) if name == "kthvalue" else ()
    check(Case(name, lambda t, x: tuple(getattr(t, name)(x, *more, dim)), (CUBE,)))
    if name[:3] != "cum":
        check(Case(name, lambda t, x: tuple(getattr(x, name)(*more, dim=dim, keepdim=True)), (CUBE,), order=0))


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("descending", [False, True])
def test_sorting(dim, descending):
    check(Case("sort", lambda t, x: tuple(t.sort(x, dim, descending)), (CUBE,)))
    check(Case("stable", lambda t, x: tuple(t.sort(x, dim=dim, descending=descending, stable=True)), (whole(3, 4, 6),)))
    check(Case("argsort", lambda t, x: t.argsort(x, dim=dim, descending=descending, stable=True), (whole(3, 4, 6),)))
    check(Case("topk", lambda t, x: tuple(t.topk(x, 2, dim=dim, largest=descending)), (spread(3, 4, 5),)))


@pytest.mark.parametrize(
    "case",
    cases(
        ("sum types", lambda t, x: (x.sum(), x.sum(0), x.prod(), x.cumsum(0), x.sum(dtype=t.float64)), (whole(5, 3, 4),)),
        ("sum of booleans", lambda t, x: (x.sum(), x.sum(1), x.any(), x.all(0), t.count_nonzero(x, dim=1)), (truth(3, 4),)),
        ("empty", lambda t, x: (x.sum(), x.sum(0), x.prod(1), x.mean(0), x.any(), x.all()), (normal(3, 0),), 1e-9, 1),
        ("empty other side", lambda t, x: (x.sum(0), x.amax(0), tuple(x.max(0)), x.argmax(0)), (normal(3, 0),), 1e-9, 1),
        ("scalars", lambda t, x: (x.sum(), x.mean(0), x.max(), x.amin(-1), x.prod(), x.std(unbiased=False)), (normal(),), 1e-9, 1),
        ("scalar positions", lambda t, x: (x.argmax(), x.argmin(0), tuple(x.max(0)), tuple(x.sort())), (normal(),), 1e-9, 0),
        ("mean dtype", lambda t, x: (t.mean(x, dtype=t.float32), x.mean(0, dtype=t.float64)), (whole(5, 3, 4),)),
        ("var corrections", lambda t, x: (x.var(1, correction=0), x.var(dim=0, unbiased=False), x.std(1, correction=2), x.var(), t.std(x, False)), (X,)),
        ("var_mean", lambda t, x: (tuple(t.var_mean(x)), tuple(t.std_mean(x, dim=1, keepdim=True)), tuple(t.var_mean(x, dim=(0, 1), correction=0))), (X,)),
        ("norms", lambda t, x: (x.norm(), x.norm(1), x.norm(2, 1), x.norm(3, dim=0), x.norm(float("inf")), x.detach().norm(0), x.norm(p=-float("inf"))), (X,)),
        ("norm of dims", lambda t, x: (t.norm(x, dim=(0, 2)), x.norm(p="fro", dim=(1, 2), keepdim=True)), (CUBE,)),
        ("norm at zero", lambda t, x: (x.norm(), x.norm(dim=1)), (np.array([[0.0, 0.0], [3.0, 4.0]]),), 1e-9, 1),
        ("max with ties", lambda t, x: (x.max(), x.amax(1), x.min(), x.amin((0, 1))), (whole(3, 4, 5).astype("float64"),), 1e-9, 1),
        ("extremes of integers", lambda t, x: (x.max(), tuple(x.min(1)), x.amax(0), x.argmax(), t.aminmax(x)), (whole(50, 3, 4),)),
        ("aminmax", lambda t, x: (tuple(t.aminmax(x)), tuple(t.aminmax(x, dim=1, keepdim=True))), (X,)),
        ("nan", lambda t, x: (x.sum(), x.max(), x.amin(1), x.argmax(1), tuple(x.max(1)), tuple(x.min(0))), (NANS,), 1e-9, 0),
        ("nansum", lambda t, x: (t.nansum(x), x.nansum(0), x.nansum(1, keepdim=True)), (NANS,), 1e-9, 1),
        ("nanmean", lambda t, x: (t.nanmean(x), x.nanmean(0)), (NANS,), 1e-9, 0),
        ("median of nan", lambda t, x: (x.median(), x.median(1).values, t.median(x, 0).values), (NANS,), 1e-9, 0),
        ("nanmedian", lambda t, x: (x.nanmedian(), t.nanmedian(x, 0).values, x.nanmedian(1, keepdim=True).values), (NANS,), 1e-9, 1),
        ("mode", lambda t, x, i: (t.mode(i).values, i.mode(0).values, i.mode(1, keepdim=True).values, x.mode().values), (X, whole(3, 5, 7)), 1e-9, 1),
        ("histc", lambda t, x: (t.histc(x, 5), x.histc(bins=4, min=-1, max=1), x.histc(3, min=0, max=0.5)), (X.copy(),), 1e-9, 0),
        ("median all", lambda t, x: (x.median(), t.median(x)), (X,)),
        ("sort nan", lambda t, x: (tuple(x.sort(dim=1, stable=True)), tuple(x.sort(dim=0, descending=True, stable=True))), (NANS,), 1e-9, 0),
        ("cumsum", lambda t, x: (x.cumsum(0), t.cumsum(x, -1), t.cumsum(x, dim=1, dtype=t.float64)), (CUBE,)),
        ("cumsum special", lambda t, x: (x.cumsum(0), x.cumsum(1)), (np.array([[1.0, np.inf, 2.0], [np.nan, 1.0, 2.0]]),), 1e-9, 0),
        ("cumprod", lambda t, x: (x.cumprod(0), t.cumprod(x, -1)), (positive(3, 4),)),
        ("cumprod zeros", lambda t, x: x.cumprod(0), (np.array([2.0, 0.0, 3.0, 0.0, 1.0]),), 1e-9, 1),
        ("cumprod integers", lambda t, x: x.cumprod(0), (whole(4, 5, low=1),)),
        ("logcumsumexp", lambda t, x: (t.logcumsumexp(x, 0), x.logcumsumexp(-1)), (normal(3, 4),)),
        ("cummax integers", lambda t, x: (tuple(x.cummax(0)), tuple(t.cummin(x, 1))), (whole(4, 5, 6),)),
        ("diff", lambda t, x: (x.diff(), t.diff(x, dim=0), t.diff(x, n=2), x.diff(prepend=x[:, :1])), (X,)),
        ("quantile", lambda t, x: (t.quantile(x, 0.3), x.quantile(0.6, dim=1), x.quantile(0.5, dim=0, keepdim=True)), (X,)),
        ("quantiles", lambda t, x, q: (t.quantile(x, q.detach()), x.quantile(q.detach(), dim=1)), (X, np.array([0.0, 0.25, 1.0])), 1e-9, 1),
        ("quantile modes", lambda t, x: [t.quantile(x, 0.37, interpolation=m) for m in ("lower", "higher", "nearest", "midpoint")], (X,)),
        ("softmax", lambda t, x: (t.softmax(x, 1), x.softmax(0), x.log_softmax(-1), t.log_softmax(x, dim=0)), (X,)),
        ("softmax dtype", lambda t, x: x.softmax(1, dtype=t.float64), (X,)),
        ("logsumexp infinities", lambda t, x: (t.logsumexp(x, 0), t.logsumexp(x, 1)), (np.array([[-np.inf, 1.0], [-np.inf, -np.inf]]),), 1e-9, 0),
        ("count_nonzero", lambda t, x: (t.count_nonzero(x), x.count_nonzero(dim=0)), (whole(3, 4, 5),)),
        ("dist", lambda t, x, y: (t.dist(x, y), x.dist(y, 1), t.dist(x, y, p=3)), (X, X + positive(3, 5))),
        ("renorm", lambda t, x: x.renorm(2, 0, 1.5), (X,), 1e-6),
        ("trapezoid", lambda t, y, x: (t.trapezoid(y), t.trapezoid(y, dx=0.5, dim=0), t.trapezoid(y, x)), (X, np.arange(5.0) ** 2)),
        ("cov", lambda t, x: (t.cov(x), x.corrcoef(), t.cov(x, correction=0), t.cov(x[0])), (X,)),
        ("unique", lambda t, x: (t.unique(x), *t.unique(x, return_inverse=True, return_counts=True), t.unique(x, dim=0)), (whole(4, 5, 3),)),
        ("bincount", lambda t, x, w: (t.bincount(x), x.bincount(minlength=9), t.bincount(x, w.detach())), (whole(5, 12), normal(12)), 1e-9, 0),
        ("searchsorted", lambda t, s, x: (t.searchsorted(s, x), t.searchsorted(s, x, right=True), t.bucketize(x, s)), (np.array([0.0, 1, 1, 3]), np.array([[-1.0, 0, 1], [2, 3, 4]])), 1e-9, 0),
        ("searchsorted rows", lambda t, s, x: t.searchsorted(s, x, side="right"), (np.sort(normal(3, 6)), normal(3, 4)), 1e-9, 0),
        ("equal", lambda t, x: (t.equal(x, x.clone()), t.equal(x, x + 1), t.allclose(x, x + 1e-9)), (X,), 1e-9, 0),
        ("msort", lambda t, x: t.msort(x), (X,)),
    ),
)  # fmt: skip
def test_expressions(case):
    check(case)
