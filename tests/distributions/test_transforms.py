"""Transforms: inverses, Jacobian determinants against those of the gradients, shapes, composition."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.distributions as D
from graphc.distributions import constraints
from graphc.errors import ShapeError, UnsupportedError
from tests.distributions.cases import some

EACH = {
    "exp": D.ExpTransform(),
    "power": D.PowerTransform(gc.tensor(-1.5, dtype=gc.float64)),
    "sigmoid": D.SigmoidTransform(),
    "tanh": D.TanhTransform(),
    "softplus": D.SoftplusTransform(),
    "affine": D.AffineTransform(gc.tensor(0.3, dtype=gc.float64), gc.tensor(-2.0, dtype=gc.float64)),
    "composed": D.ComposeTransform([D.TanhTransform(), D.AffineTransform(2.0, 0.5), D.ExpTransform()]),
}


@pytest.mark.parametrize("name", EACH)
def test_functions_of_each_element(name: str):
    t = EACH[name]
    x = gc.tensor(some(7), requires_grad=True)
    y = t(x)
    (slope,) = gc.autograd.grad(y.sum(), x)
    np.testing.assert_allclose(t.inv(y).detach().numpy(), x.detach().numpy(), 1e-9)
    np.testing.assert_allclose(t.log_abs_det_jacobian(x, y).detach().numpy(), slope.abs().log().numpy(), 1e-8, 1e-9)
    backwards = t.inv.log_abs_det_jacobian(y, x).detach().numpy()
    np.testing.assert_allclose(backwards, -slope.abs().log().numpy(), 1e-8, 1e-9)
    assert (np.sign(slope.numpy()) == float(t.sign)).all() and t.inv.inv is t
    assert t.forward_shape((2, 7)) == (2, 7) == t.inv.forward_shape((2, 7))


def test_broken_sticks():
    t = D.StickBreakingTransform()
    x = gc.tensor(some(4, low=-2))
    y = t(x)
    assert abs(y.sum().item() - 1) < 1e-12 and (y.numpy() > 0).all()
    np.testing.assert_allclose(t.inv(y).numpy(), x.numpy(), 1e-10)
    np.testing.assert_allclose(t(gc.zeros(4)).numpy(), np.full(5, 0.2), 1e-6)
    matrix = gc.func.jacrev(lambda v: t(v).narrow(-1, 0, 4))(x).numpy()
    assert t.log_abs_det_jacobian(x, y).item() == pytest.approx(np.log(abs(np.linalg.det(matrix))), rel=1e-10)
    assert t.forward_shape((3, 4)) == (3, 5) and t.inverse_shape((3, 5)) == (3, 4)
    with pytest.raises(ShapeError, match="vectors"):
        t.forward_shape(())


def test_transforms_that_are_not_bijective():
    assert D.SoftmaxTransform()(gc.zeros(2, 4)).tolist() == [[0.25] * 4] * 2
    assert D.AbsTransform()(gc.tensor([-2.0])).item() == 2
    with pytest.raises(UnsupportedError, match="no log_abs_det_jacobian"):
        D.AbsTransform().log_abs_det_jacobian(gc.ones(1), gc.ones(1))
    with pytest.raises(UnsupportedError, match="not known to be monotonic"):
        _ = D.SoftmaxTransform().sign


def test_triangles():
    t, x = D.LowerCholeskyTransform(), gc.tensor(some(3, 3))
    y = t(x).numpy()
    assert (np.diag(y) > 0).all() and (np.triu(y, 1) == 0).all()
    np.testing.assert_allclose(t.inv(gc.tensor(y)).numpy(), np.tril(x.numpy()), 1e-12)


def test_the_last_pair_is_kept_on_demand():
    x = gc.tensor([30.0])
    kept, lost = D.TanhTransform(cache_size=1), D.TanhTransform()
    assert kept.inv(kept(x)) is x and not np.isfinite(lost.inv(lost(x)).item())


def test_independent_transforms_sum_over_dimensions():
    t = D.IndependentTransform(D.ExpTransform(), 1)
    x = gc.tensor(some(2, 3))
    assert t.domain.event_dim == t.codomain.event_dim == 1 and t.sign == 1
    np.testing.assert_allclose(t.log_abs_det_jacobian(x, t(x)).numpy(), x.sum(-1).numpy(), 1e-12)


def test_composed_transforms_count_dimensions():
    t = D.ComposeTransform([D.ExpTransform(), D.StickBreakingTransform()])
    x = gc.tensor(some(2, 3))
    y = t(x)
    assert (t.domain.event_dim, t.codomain.event_dim) == (1, 1) and y.shape == (2, 4)
    middle = x.exp()
    expected = x.sum(-1) + D.StickBreakingTransform().log_abs_det_jacobian(middle, y)
    np.testing.assert_allclose(t.log_abs_det_jacobian(x, y).numpy(), expected.numpy(), 1e-10)
    assert D.identity_transform(x) is x
    assert D.identity_transform.log_abs_det_jacobian(x, x).tolist() == np.zeros((2, 3)).tolist()


def test_transforms_are_equal_that_are_the_same_function():
    scale = gc.tensor([1.0, 2.0])
    same = [D.AffineTransform(0, scale), D.AffineTransform(0.0, scale.clone()), D.AffineTransform(0.0, scale, 1)]
    assert same[0] == same[1] and hash(same[0]) == hash(same[1]) and same[1] != same[2]
    assert D.PowerTransform(2.0) == D.PowerTransform(gc.tensor(2.0)) != D.PowerTransform(3.0)
    assert D.ExpTransform() == D.ExpTransform() != D.TanhTransform() and same[0].inv == same[1].inv != same[0]
    assert D.ComposeTransform(same[:1]) == D.ComposeTransform(same[1:2]) != D.ComposeTransform(same[1:])


def test_stretching_does_not_depend_on_the_place():
    x = gc.tensor([float("inf"), 1.0])
    assert D.AffineTransform(1.0, gc.tensor(1.0)).log_abs_det_jacobian(x, x).tolist() == [0, 0]
    assert D.identity_transform.log_abs_det_jacobian(x, x).tolist() == [0, 0]
    moved = D.TransformedDistribution(D.Normal(gc.zeros(2), 1.0), D.AffineTransform(1.0, 2.0))
    assert moved.log_prob(x)[0].item() == -np.inf


@pytest.mark.parametrize(
    "constraint",
    [
        constraints.real,
        constraints.positive,
        constraints.nonnegative,
        constraints.greater_than(2.0),
        constraints.less_than(-1.0),
        constraints.unit_interval,
        constraints.interval(-3.0, 5.0),
        constraints.half_open_interval(gc.tensor(1.0), gc.tensor(2.0)),
        constraints.simplex,
        constraints.lower_cholesky,
        constraints.real_vector,
        constraints.independent(constraints.positive, 1),
    ],
)
@pytest.mark.parametrize("find", [D.biject_to, D.transform_to])
def test_values_satisfy_the_constraint(constraint, find):
    t = find(constraint)
    x = gc.tensor(some(4, 4, low=-3))
    y = t(x)
    assert constraint.check(y).all().item() and t.codomain.event_dim == constraint.event_dim
    if t.bijective:
        np.testing.assert_allclose(t(t.inv(y)).numpy(), y.numpy(), 1e-8, 1e-12)


def test_what_has_no_transform():
    for constraint in (constraints.boolean, constraints.dependent, constraints.positive_definite):
        for find in (D.biject_to, D.transform_to):
            with pytest.raises(UnsupportedError, match="no transform"):
                find(constraint)
