"""Derivatives of compiled functions of any order, against those of the functions themselves and against torch."""

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.autograd import grad, gradcheck, gradgradcheck
from graphc.errors import GradientError
from graphc.func import functional

F64 = graphc.float64


def agree(a, b, rtol=1e-9):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=rtol, atol=1e-12)


def both(make, run):
    """Return the results of ``run`` for a function and for the same one compiled, from the same seed."""
    found = []
    for compiled in (False, True):
        graphc.manual_seed(0)
        target = make()
        graphc.manual_seed(1)
        found.append(run(graphc.compile(target) if compiled else target, target))
    for a, b in zip(*found, strict=True):
        agree(a, b)


def smooth():
    w = graphc.randn(3, 3, dtype=F64).requires_grad_()

    def function(x):
        return (graphc.tanh(x @ w) ** 2).sum()

    function.w = w
    return function


def test_third_derivatives():
    def run(f, target):
        x = graphc.tensor(np.linspace(-1, 1, 6).reshape(2, 3)).requires_grad_()
        found, y = [], f(x)
        for _ in range(3):
            (g,) = grad(y, x, create_graph=True)
            found.append(g)
            y = (g**2).sum()
        return [*found, *grad(y, target.w)]

    both(smooth, run)


def test_third_derivatives_and_products_with_hessians_as_torch(torch):
    values = np.linspace(-1, 1, 5)

    def run(lib, function):
        x = lib.tensor(values).requires_grad_()
        v = lib.tensor(values[::-1].copy())
        y = function(x)
        (g,) = lib.autograd.grad(y, x, create_graph=True)
        (hv,) = lib.autograd.grad((g * v).sum(), x, create_graph=True)
        (third,) = lib.autograd.grad((hv * v).sum(), x)
        return [t.detach().numpy() for t in (g, hv, third)]

    mine = run(graphc, graphc.compile(lambda x: (graphc.sin(x) * graphc.exp(x) + x**3).prod()))
    theirs = run(torch, lambda x: (torch.sin(x) * torch.exp(x) + x**3).prod())
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def network():
    layers = [nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Tanh(), nn.Dropout(0.4), nn.Flatten(), nn.Linear(64, 1)]
    return nn.Sequential(*layers).double()


def test_double_backward_of_a_module_with_batch_norm_and_dropout():
    def run(call, model):
        x = graphc.tensor(np.random.default_rng(0).standard_normal((5, 2, 6, 6))).requires_grad_()
        for _ in range(2):
            (g,) = grad(call(x).sum(), x, create_graph=True)
            ((g.flatten(1).norm(dim=1) - 1) ** 2).mean().backward()
        return [x.grad, *[p.grad for p in model.parameters() if p.grad is not None], *model.buffers()]

    both(network, run)


def test_a_state_that_is_written_and_read():
    class Power(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(graphc.randn(3, 3, dtype=F64))
            self.register_buffer("u", graphc.ones(3, dtype=F64))

        def forward(self, x):
            u = (self.w @ self.u).detach()
            self.u.copy_(u / u.norm())
            return ((x * u) @ self.w).tanh().sum()

    def run(call, model):
        x = graphc.tensor(np.linspace(-1, 1, 6).reshape(2, 3)).requires_grad_()
        found = []
        for _ in range(3):
            (g,) = grad(call(x), x, create_graph=True)
            found += grad((g**2).sum(), [x, model.w])
        return [*found, model.u]

    both(Power, run)


def test_a_physics_informed_network_is_trained():
    def run(call, model):
        optimizer = graphc.optim.Adam(model.parameters(), lr=1e-2)
        x = graphc.linspace(0, 1, 12).double().reshape(-1, 1).requires_grad_()
        for _ in range(4):
            u = call(x)
            (first,) = grad(u.sum(), x, create_graph=True)
            (second,) = grad(first.sum(), x, create_graph=True)
            loss = ((second + u) ** 2).mean() + (u[0] ** 2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [loss, *model.parameters()]

    both(lambda: nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)).double(), run)


def test_transforms():
    def run(f, target):
        x = graphc.tensor(np.linspace(-1, 1, 6).reshape(2, 3))
        v = graphc.ones(2, 3, dtype=F64) * 0.5
        value, first = graphc.value_and_grad(f)(x)
        hessian = graphc.func.jacrev(graphc.func.grad(f))(x)
        pulled = graphc.func.vjp(f, x)[1](graphc.tensor(2.0, dtype=F64))[0]
        pushed = graphc.func.jvp(f, (x,), (v,))
        forward = graphc.func.jacfwd(f)(x)
        both = graphc.func.hessian(f)(x)
        product = functional.hvp(f, x, v)[1]
        along = graphc.func.linearize(f, x)[1](v)
        third = graphc.func.jacrev(graphc.func.jacrev(graphc.func.grad(f)))(x)
        return [value, first, hessian, pulled, *pushed, forward, both, product, along, third]

    both(smooth, run)


def test_tangents_of_a_pullback():
    def run(f, target):
        x = graphc.tensor(np.linspace(-1, 1, 6).reshape(2, 3))
        _, pull = graphc.func.vjp(lambda x: f(x) * 2, x)
        return graphc.func.jvp(lambda w: pull(w)[0], (graphc.tensor(2.0, dtype=F64),), (graphc.tensor(3.0, dtype=F64),))

    both(smooth, run)


def test_finite_differences():
    f = graphc.compile(lambda x, y: (graphc.sin(x) @ y, (x * x).sum()))
    x = graphc.tensor(np.random.default_rng(0).standard_normal((2, 3))).requires_grad_()
    y = graphc.tensor(np.random.default_rng(1).standard_normal((3, 2))).requires_grad_()
    assert gradcheck(f, (x, y)) and gradgradcheck(f, (x, y))


def test_named_dimensions():
    f = graphc.compile(lambda x: (graphc.sin(x) * x).sum(), dims={"x": (graphc.Dim("n"),)})
    for n in (3, 5):
        x = graphc.linspace(-1, 1, n).double().requires_grad_()
        (g,) = grad(f(x), x, create_graph=True)
        (h,) = grad(g.sum(), x)
        agree(h, 2 * graphc.cos(x) - x * graphc.sin(x))


def test_only_what_is_needed_is_recorded():
    w = graphc.ones(3, dtype=F64).requires_grad_()
    x = graphc.ones(3, dtype=F64).requires_grad_()
    f = graphc.compile(lambda x: (x**3 * w).sum())
    (g,) = grad(f(x), x, create_graph=True)
    agree(grad(g.sum(), [x, w], retain_graph=True)[0], graphc.full((3,), 6.0, dtype=F64))
    agree(grad(g.sum(), w)[0], graphc.full((3,), 3.0, dtype=F64))
    with pytest.raises(GradientError, match="freed"):
        grad(g.sum(), w)


def test_gradients_that_stay_in_grad():
    x = graphc.ones(3, dtype=F64).requires_grad_()
    f = graphc.compile(lambda x: (x**3).sum())
    f(x).backward(create_graph=True)
    first, x.grad = x.grad, None
    agree(first, graphc.full((3,), 3.0, dtype=F64))
    first.sum().backward()
    agree(x.grad, graphc.full((3,), 6.0, dtype=F64))


def test_what_was_written_to_since_is_refused():
    x = graphc.ones(3, dtype=F64).requires_grad_()
    w = graphc.ones(3, dtype=F64)
    f = graphc.compile(lambda x: ((x + w) ** 2).sum())
    y = f(x)
    with graphc.no_grad():
        x.add_(1.0)
    with pytest.raises(GradientError, match="modified by an in-place operation"):
        grad(y, x, create_graph=True)
    (g,) = grad(f(x), x, create_graph=True)
    with graphc.no_grad():
        x.add_(1.0)
    with pytest.raises(GradientError, match="modified by an in-place operation"):
        grad(g.sum(), x)
