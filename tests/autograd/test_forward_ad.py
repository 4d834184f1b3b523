"""Forward mode against finite differences: every kind of operation, views, writes, levels, traces, custom functions."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.autograd import Function, forward_ad
from graphc.eager.dispatcher import EAGER
from graphc.errors import ArgumentError, DTypeError, GradientError, ShapeError, TraceError
from graphc.ir.op import REGISTRY
from graphc.nn import functional as F

RNG = np.random.default_rng(8)
X, T = (graphc.from_numpy(RNG.uniform(0.2, 0.9, (3, 4))) for _ in range(2))
STEP = 1e-6


def test_the_known_path_has_what_users_name():
    assert graphc.autograd.forward_ad is forward_ad
    assert set(forward_ad.__all__) == {"UnpackedDualTensor", "dual_level", "make_dual", "unpack_dual"}


def pushed(function, x, t):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(function(forward_ad.make_dual(x, t))).tangent


def difference(function, x, t):
    return (function(x + STEP * t) - function(x - STEP * t)) / (2 * STEP)


def close(actual, expected, tolerance=1e-6):
    np.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), tolerance, tolerance)


FUNCTIONS = {
    "elementwise": lambda x: x.exp() * x.sin() / (x + 1) + x**3 - x.atan2(x * x),
    "broadcast": lambda x: x * x[0] + x[:, :1],
    "where": lambda x: graphc.where(x > 0.5, x * 2, x * x).clamp(0.3, 1.2).maximum(x[1]),
    "reductions": lambda x: x.sum(0) + x.mean() + x.prod(1).sum() + x.max() + x.var(0) + x.norm() + x.amin(0),
    "order": lambda x: x.sort(1)[0] * x.cumsum(0) + x.topk(4, 1)[0] + x.cumprod(1),
    "views": lambda x: x.t().reshape(2, 6)[:, ::2].unsqueeze(1).expand(2, 3, 3).flip(0).flatten()[2:7] ** 2,
    "joined": lambda x: graphc.cat([x, x * 2], 1).split(3, 1)[1] * F.pad(x, (0, 0, 1, 0))[:3, :3],
    "products": lambda x: graphc.einsum("ij,kj->ik", x, x * x) @ x,
    "indices": lambda x: x[graphc.tensor([0, 2, 2])] * x.gather(1, graphc.tensor([[0, 1, 2, 3]] * 3)),
    "strided": lambda x: x.as_strided((2, 3), (3, 1), 1) ** 2,
    "convolution": lambda x: F.conv2d(x.reshape(1, 1, 3, 4), x[:2, :2].reshape(1, 1, 2, 2)).relu(),
    "pooling": lambda x: F.max_pool2d(x.reshape(1, 1, 3, 4), 2) + F.avg_pool2d((x * x).reshape(1, 1, 3, 4), 2),
    "losses": lambda x: F.cross_entropy(x, graphc.tensor([0, 3, 1])) + F.mse_loss(x, x * x) + F.kl_div(x, x.exp()),
    "softmax": lambda x: x.softmax(1) * x.log_softmax(0) + F.gelu(x) + F.layer_norm(x, (4,)),
    "no gradient": lambda x: x * x.detach() + x.round(),
    "scan": lambda x: graphc.scan(lambda c, row: (c * row, c + row), x[0] * 2, x)[1],
}  # fmt: skip


def detached(x):
    """Return the function with its detached factor as a constant, for finite differences."""
    return x * X + X.round()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_are_directional_derivatives(name: str):
    function = FUNCTIONS[name]
    expected = difference(detached if name == "no gradient" else function, X, T)
    close(pushed(function, X, T), expected)
    with graphc.no_grad():
        close(pushed(function, X, T), expected)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("order", "no gradient")])
def test_orders_mix(name: str):
    """Forward over forward, forward over reverse, reverse over forward."""
    function = FUNCTIONS[name]
    inner = lambda x: pushed(function, x, T)  # noqa: E731
    second = difference(inner, X, T)
    close(pushed(inner, X, T), second, 1e-5)
    gradient = graphc.grad(lambda x: (function(x) ** 2).sum())
    close(pushed(gradient, X, T), difference(gradient, X, T), 1e-5)
    backwards = graphc.grad(lambda x: inner(x).sum())(X)
    close((backwards * T).sum(), second.sum(), 1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_code_takes_the_same_tangents(name: str):
    function = FUNCTIONS[name]
    native = graphc.compile(lambda x, t: pushed(function, x, t))
    close(native(X, T), pushed(function, X, T), 1e-9)


def test_every_op_with_a_gradient_has_a_tangent():
    """The samples of the ops; the tangent is the gradient the other way round: <w, J t> = <w J, t>."""
    covered = set()
    for op in REGISTRY.values():
        if op.vjp is None or op.samples is None or op.name in ("call", "scan"):
            continue
        sample = next((s for s in op.samples() if s.differentiable and all(a.size for a in s.operands)), None)
        if sample is None:
            continue
        operands = [graphc.from_numpy(a.copy()) for a in sample.operands]
        floats = [i for i, o in enumerate(operands) if o.dtype.kind == "f"]
        tangents = [graphc.from_numpy(RNG.standard_normal(o.shape).astype(o.dtype.numpy)) for o in operands]
        leaves = [o.clone().requires_grad_() if i in floats else o for i, o in enumerate(operands)]

        def results(values, op=op, attrs=sample.attrs):
            outputs_of_op = EAGER.apply(op, values, attrs)
            return [
                r
                for r in (outputs_of_op if isinstance(outputs_of_op, tuple) else (outputs_of_op,))
                if r.dtype.kind == "f"
            ]

        with forward_ad.dual_level() as level:
            duals = [forward_ad.make_dual(o, tangents[i]) if i in floats else o for i, o in enumerate(operands)]
            found = [forward_ad.unpack_dual(r, level=level).tangent for r in results(duals)]
        outputs = [r for r in results(leaves) if r.requires_grad]
        if not outputs:
            assert all(f is None or not f.numpy().any() for f in found), op.name
            continue
        weights = [graphc.from_numpy(RNG.standard_normal(r.shape).astype(r.dtype.numpy)) for r in outputs]
        gradients = graphc.autograd.grad(outputs, [leaves[i] for i in floats], weights, materialize_grads=True)
        backward = sum((g * tangents[i]).sum().item() for g, i in zip(gradients, floats, strict=True))
        forward = sum((f * w).sum().item() for f, w in zip(found, weights, strict=True) if f is not None)
        assert forward == pytest.approx(backward, rel=1e-4, abs=1e-4), op.name
        covered.add(op.name)
    assert len(covered) > 40


def write(x):
    y = x * 2
    rows, flat = y[1:], y.reshape(-1)
    rows.mul_(x[1:])
    y[0] = y[0] * y[1]
    flat.sin_()
    y.unsqueeze_(1)
    y[0, 0, 1] = 0.5
    return y.sum(1) + rows.sum() + flat[:4]


def test_writes_reach_the_tangents_of_bases_and_views():
    expected = difference(write, X, T)
    close(pushed(write, X, T), expected)
    close(graphc.compile(lambda x, t: pushed(write, x, t))(X, T), expected)
    x = X.clone().requires_grad_()
    close(pushed(write, x, T), expected)


def test_a_written_constant_has_no_tangent_left():
    def function(x):
        y = x * 1
        y.copy_(graphc.ones(3, 4, dtype=graphc.float64))
        z = graphc.zeros(3, 4, dtype=graphc.float64)
        z.copy_(x)
        return y, z

    with forward_ad.dual_level():
        y, z = (forward_ad.unpack_dual(r).tangent for r in function(forward_ad.make_dual(X, T)))
    assert not y.numpy().any()
    close(z, T)


def test_detach_ends_a_tangent():
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(forward_ad.make_dual(X, T).detach()).tangent is None


def test_levels():
    with pytest.raises(GradientError, match="only inside of a dual level"):
        forward_ad.make_dual(X, T)
    with forward_ad.dual_level() as outer:
        a = forward_ad.make_dual(X, T)
        with forward_ad.dual_level() as inner:
            b = forward_ad.make_dual(a, T * 2)
            both = b * b
            assert forward_ad.unpack_dual(both, level=outer).tangent is not None
            close(forward_ad.unpack_dual(forward_ad.unpack_dual(both).tangent, level=outer).tangent, 4 * T * T)
            plain = forward_ad.unpack_dual(b)
            assert forward_ad.unpack_dual(plain.primal).tangent is None
            close(forward_ad.unpack_dual(plain.primal, level=outer).tangent, T)
        with pytest.raises(GradientError, match="only inside"):
            forward_ad.unpack_dual(b, level=inner)
        close(forward_ad.unpack_dual(b).tangent, T)


def test_tangents_fit_their_tensors():
    with forward_ad.dual_level():
        with pytest.raises(ShapeError, match=r"shape \[3\] does not fit"):
            forward_ad.make_dual(X, X[:, 0])
        with pytest.raises(DTypeError, match="f32 does not fit"):
            forward_ad.make_dual(X, T.float())
        with pytest.raises(DTypeError, match="i64"):
            forward_ad.make_dual(graphc.arange(3), graphc.arange(3))
        with pytest.raises(ArgumentError, match="two tensors"):
            forward_ad.make_dual(X, 1.0)


def test_a_dual_stays_connected_for_gradients():
    x = X.clone().requires_grad_()
    t = T.clone().requires_grad_()
    with forward_ad.dual_level():
        primal, tangent = forward_ad.unpack_dual((forward_ad.make_dual(x, t) ** 3).sum())
    (primal + tangent).backward()
    close(x.grad, 3 * X**2 + 6 * X * T)
    close(t.grad, 3 * X**2)


def test_leaves_get_gradients_with_tangents():
    x = X.clone().requires_grad_()
    with forward_ad.dual_level():
        ((x * forward_ad.make_dual(X, T)) ** 2).sum().backward()
        result = forward_ad.unpack_dual(x.grad)
    close(result.primal, 2 * X**3)
    close(result.tangent, 4 * X * X * T)


def test_models_take_tangents_of_parameters_and_run_compiled_parts_as_python():
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 2)).double()
    native = graphc.compile(model)
    native(X)
    for module in (model, native):
        with forward_ad.dual_level():
            tangent = forward_ad.unpack_dual(module(forward_ad.make_dual(X, T))).tangent
        close(tangent, difference(lambda x: model(x), X, T))
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(native(X)).tangent is None


def test_a_tensor_with_a_tangent_does_not_slip_into_a_trace():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, T)
        with pytest.raises(TraceError, match="would lose it"):
            graphc.trace(lambda x: x * dual, X)


class Cube(Function):
    """Its jvp is three times too large, to be told from what ops would give."""

    @staticmethod
    def forward(ctx, x, power):
        result = x**power
        ctx.power = power
        ctx.save_for_backward(x)
        ctx.save_for_forward(x, result)
        return result, result * 2

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return ctx.power * x ** (ctx.power - 1) * (g + 2 * h), None

    @staticmethod
    def jvp(ctx, t, power):
        assert power is None
        x, result = ctx.saved_tensors
        tangent = 3 * ctx.power * result / x * t
        return tangent, tangent * 2


class Product(Function):
    """With setup_context, and tangents of one operand only."""

    @staticmethod
    def forward(a, b):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def vjp(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a

    @staticmethod
    def jvp(ctx, t, s):
        a, b = ctx.saved_tensors
        return t * b + a * s


class Scaled(Function):
    """In instance style."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor

    def backward(self, g):
        return g * self.factor

    def jvp(self, t):
        return t * self.factor


@pytest.mark.parametrize("run", [lambda f: f, graphc.compile], ids=["eager", "compiled"])
def test_custom_functions_use_their_jvp(run):
    cube = run(lambda x, t: pushed(lambda v: sum(Cube.apply(v, 3)), x, t))
    close(cube(X, T), 27 * X**2 * T)
    product = run(lambda x, t: pushed(lambda v: Product.apply(v, x) + Product.apply(x, v * v), x, t))
    close(product(X, T), X * T + 2 * X * X * T)
    close(run(lambda x, t: pushed(lambda v: Scaled(4.0)(v), x, t))(X, T), 4 * T)
    twice = run(lambda x, t: pushed(lambda y: pushed(lambda v: Product.apply(v, v * v), y, t), x, t))
    close(twice(X, T), 6 * X * T * T)
    mixed = run(lambda x, t: graphc.grad(lambda y: pushed(lambda v: Cube.apply(v, 3)[0], y, t).sum())(x))
    close(mixed(X, T), 18 * X * T)


def test_zeros_and_none_for_missing_tangents():
    tangents = []

    class Seen(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.set_materialize_grads(False)
            return a * b

        @staticmethod
        def jvp(ctx, t, s):
            tangents.append(s)
            return t

    pushed(lambda v: Seen.apply(v, X), X, T)
    assert tangents == [None]


def test_custom_functions_without_jvp_say_so():
    class Plain(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with pytest.raises(GradientError, match="Plain has no jvp"):
        pushed(Plain.apply, X, T)
    with forward_ad.dual_level():
        close(Plain.apply(X), X * 2)


@pytest.mark.parametrize("answer", [lambda t: (t, t), lambda t: t[0], lambda t: 1.0])
def test_a_jvp_returns_one_tangent_of_the_right_shape_per_result(answer):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def jvp(ctx, t):
            return answer(t)

    with pytest.raises(GradientError, match=r"Wrong\.jvp returned"):
        pushed(Wrong.apply, X, T)
