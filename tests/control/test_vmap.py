"""vmap against loops: dimensions, nesting, derivatives inside and outside, modules, compiled, and against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.autograd import Function
from graphc.errors import AttributeValueError, IndexRangeError, ShapeError, TraceError
from graphc.nn import functional as F

RNG = np.random.default_rng(3)
X, W, Y = RNG.standard_normal((5, 4)), RNG.standard_normal((3, 4)), np.array([0, 2, 1, 1, 0])
RUNS = pytest.mark.parametrize("run", [lambda f: f, graphc.compile], ids=["eager", "compiled"])


def tensors(*arrays):
    return [graphc.from_numpy(np.array(a)) for a in arrays]


def close(actual, expected, tolerance=1e-9):
    actual, expected = (t.detach().numpy() if isinstance(t, graphc.Tensor) else t for t in (actual, expected))
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, tolerance, tolerance)


def loop(function, *batches):
    return graphc.stack([function(*(b[i] for b in batches)) for i in range(len(batches[0]))])


FUNCTIONS = {
    "elementwise": lambda x, y: x.exp() * x[0] + y,
    "softmax": lambda x, y: x.softmax(0) - x.var() + x.norm(),
    "order": lambda x, y: x.sort()[0] * x.cumsum(0) + x.topk(2)[0].sum() + x.argmax(),
    "index": lambda x, y: x[y] * x.gather(0, y.reshape(1)) + x.flip(0),
    "scatter": lambda x, y: (x * 0).scatter_add(0, y.reshape(1), x[1:2]).index_fill(0, y, 2),
    "loss": lambda x, y: F.cross_entropy(x.unsqueeze(0), y.unsqueeze(0)),
    "views": lambda x, y: x.reshape(2, 2).t().unsqueeze(1).expand(2, 3, 2).reshape(-1)[1::2],
    "joined": lambda x, y: graphc.cat([x, graphc.ones(2, dtype=graphc.float64), x * y]),
    "where": lambda x, y: graphc.where(x > 0, x, y.double()).clamp(-1, 1),
    "outer": lambda x, y: graphc.outer(x, x) @ x + graphc.eye(4, dtype=graphc.float64)[0],
    "conv": lambda x, y: F.conv2d(x.reshape(1, 1, 2, 2), x.reshape(1, 1, 2, 2), padding=1),
    "pool": lambda x, y: F.max_pool2d(x.reshape(1, 2, 2), 2) + F.avg_pool2d(x.reshape(1, 2, 2), 2),
    "scan": lambda x, y: graphc.scan(lambda c, v: (c * v, c + v), x[0], x)[1],
    "written": lambda x, y: (x * 1).mul_(2).index_put_((y,), x[0]),
    "constant": lambda x, y: graphc.arange(3) + 1,
}  # fmt: skip


@RUNS
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_as_a_loop(name: str, run):
    x, y = tensors(X, Y)
    close(run(graphc.vmap(FUNCTIONS[name]))(x, y), loop(FUNCTIONS[name], x, y))


@pytest.mark.sampled(50)
@RUNS
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in ("constant", "order")])
def test_derivatives_inside_and_outside(name: str, run):
    function = FUNCTIONS[name]
    x, y = tensors(X, Y)
    scalar = lambda x, y: (function(x, y) ** 2).sum()  # noqa: E731
    inside = run(graphc.vmap(graphc.grad(scalar)))(x, y)
    close(inside, loop(graphc.grad(scalar), x, y))
    close(run(graphc.grad(lambda x: graphc.vmap(scalar)(x, y).sum()))(x), inside)
    tangent = run(lambda x, t: graphc.jvp(lambda v: graphc.vmap(scalar)(v, y), (x,), (t,))[1])(x, x * x)
    close(tangent, (inside * x * x).sum(1))
    gradient = lambda x: graphc.vmap(graphc.grad(scalar))(x, y)  # noqa: E731
    second = run(lambda x: graphc.grad(lambda v: (gradient(v) * x).sum())(x))(x)
    close(run(lambda x: graphc.jvp(gradient, (x,), (x,))[1])(x), second, 1e-8)
    both = graphc.vmap(lambda x, y: graphc.jvp(lambda v: scalar(v, y), (x,), (x * x,))[1])
    close(run(both)(x, y), tangent)


@RUNS
def test_dimensions(run):
    x, w = tensors(X, W)
    close(run(graphc.vmap(lambda x, w: w @ x, in_dims=(0, None)))(x, w), X @ W.T)
    close(run(graphc.vmap(lambda x: x * 2, in_dims=1, out_dims=-1))(x), X * 2)
    close(run(graphc.vmap(lambda x: x * 2, in_dims=-1))(x), X.T * 2)
    close(
        run(graphc.vmap(lambda p: p["a"] * p["b"][0], in_dims=({"a": 0, "b": None},)))({"a": x, "b": [w]}),
        X[:, None, :] * W,
    )
    close(run(graphc.vmap(lambda p, k: p[0] + p[1] + k, in_dims=((0, None), None)))((x, w[0]), 2.0), X + W[0] + 2)
    first, rest = run(
        graphc.vmap(lambda x: (x.sum(), {"all": x, "fixed": w}), out_dims=(0, {"all": 1, "fixed": None}))
    )(x)
    close(first, X.sum(1))
    close(rest["all"], X.T)
    close(rest["fixed"], W)
    close(run(graphc.vmap(lambda x, scale: x * scale))(x, scale=x), X * X)


@RUNS
def test_nested(run):
    x, w = tensors(X, W)
    pairs = graphc.vmap(graphc.vmap(lambda a, b: (a * b).sum(), (None, 0)), (0, None))
    close(run(pairs)(x, w), X @ W.T)
    rows = graphc.vmap(lambda a: graphc.vmap(lambda b: a[:3] * b.sum())(w))
    close(run(rows)(x), X[:, None, :3] * W.sum(1)[:, None])


@RUNS
def test_gradients_per_example_of_a_model(run):
    model = nn.Sequential(nn.Conv2d(1, 2, 2), nn.Tanh(), nn.Flatten(), nn.Linear(18, 3)).double()
    parameters = dict(model.named_parameters())
    images, labels = graphc.from_numpy(RNG.standard_normal((5, 1, 4, 4))), tensors(Y)[0]

    def loss(parameters, image, label):
        output = graphc.func.functional_call(model, parameters, (image.unsqueeze(0),))
        return F.cross_entropy(output, label.unsqueeze(0))

    each = run(graphc.vmap(graphc.grad(loss), in_dims=(None, 0, 0)))(parameters, images, labels)
    for i in range(5):
        expected = graphc.grad(loss)(parameters, images[i], labels[i])
        for name in parameters:
            close(each[name][i], expected[name])


def test_weights_of_an_ensemble():
    models = [nn.Linear(4, 3).double() for _ in range(2)]
    weights = {name: graphc.stack([dict(m.named_parameters())[name] for m in models]) for name in ("weight", "bias")}
    x = tensors(X)[0]
    result = graphc.vmap(lambda p: graphc.func.functional_call(models[0], p, (x,)))(weights)
    close(result, graphc.stack([m(x) for m in models]))
    result.sum().backward()
    assert all(p.grad is not None for m in models for p in m.parameters())


def test_a_module_is_a_function_and_gets_its_gradients():
    model = nn.Linear(4, 2).double()
    x = tensors(X)[0]
    graphc.vmap(model)(x).sum().backward()
    result = model.weight.grad.clone()
    model.zero_grad()
    model(x).sum().backward()
    close(result, model.weight.grad)


class Cube(Function):
    """With a gradient of its own, five times too large."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x**3 * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return 15 * x**2 * w * g, 5 * x**3 * g


@RUNS
def test_custom_functions_keep_their_gradient(run):
    x, w = tensors(X, W[0])
    inside = run(graphc.vmap(graphc.grad(lambda x, w: Cube.apply(x, w).sum(), argnums=(0, 1)), (0, None)))(x, w)
    close(inside[0], 15 * X**2 * W[0])
    close(inside[1], 5 * X**3)
    gradient = graphc.grad(lambda x, w: graphc.vmap(Cube.apply, (0, None))(x, w).sum(), argnums=(0, 1))
    outside = run(gradient)(x, w)
    close(outside[0], 15 * X**2 * W[0])
    close(outside[1], 5 * (X**3).sum(0))


def test_a_pull_back_of_many_weights():
    x = tensors(X[0])[0]
    _, pull = graphc.vjp(lambda x: x.cumsum(0) ** 2, x)
    (result,) = graphc.vmap(pull)(graphc.eye(4).double())
    close(result, graphc.jacrev(lambda x: x.cumsum(0) ** 2)(x))
    leaf = x.clone().requires_grad_()
    y = leaf**2
    rows = graphc.vmap(lambda v: graphc.autograd.grad(y, leaf, v, retain_graph=True)[0])(graphc.eye(4).double())
    close(rows, np.diag(2 * X[0]))


@RUNS
def test_random_numbers(run):
    x = tensors(X)[0]
    drop = lambda x: F.dropout(x * 0 + 1, 0.5)  # noqa: E731
    with pytest.raises(TraceError, match="draws random numbers"):
        graphc.vmap(drop)(x)
    same = run(graphc.vmap(lambda x: x * 0 + graphc.rand(4), randomness="same"))(x).numpy()
    assert (same == same[0]).all()
    other = graphc.vmap(lambda x: x * 0 + graphc.rand(4), randomness="different")
    first, second = run(other)(x).numpy(), run(other)(x).numpy()
    assert len(np.unique(first)) == 20 and not (first == second).any()
    with pytest.raises(AttributeValueError, match="randomness must be one of"):
        graphc.vmap(drop, randomness="some")


def test_writes_to_tensors_outside():
    x = tensors(X)[0]
    count, total = graphc.zeros(1), graphc.zeros(4, dtype=graphc.float64)

    def counted(x):
        count.add_(1)
        return x * 2

    close(graphc.vmap(counted)(x), X * 2)
    assert count.item() == 1
    with pytest.raises(TraceError, match="differ between the entries"):
        graphc.vmap(lambda x: total.add_(x))(x)


def test_what_is_wrong_is_said():
    x, w = tensors(X, W)
    with pytest.raises(ShapeError, match="different sizes: 3, 5"):
        graphc.vmap(lambda x, w: x)(x, w)
    with pytest.raises(ShapeError, match="without dimensions"):
        graphc.vmap(lambda x: x)(x[0, 0])
    with pytest.raises(AttributeValueError, match="no argument is batched"):
        graphc.vmap(lambda x: x, in_dims=(None,))(x)
    with pytest.raises(AttributeValueError, match="in_dims has 1 entries for 2"):
        graphc.vmap(lambda x, w: x, in_dims=(0,))(x, w)
    with pytest.raises(AttributeValueError, match="in_dims must be an int or a tuple"):
        graphc.vmap(lambda x: x, in_dims="0")(x)
    with pytest.raises(AttributeValueError, match="in_dims is '0'"):
        graphc.vmap(lambda x: x, in_dims=("0",))(x)
    with pytest.raises(AttributeValueError, match="out_dims has 2 entries for 1"):
        graphc.vmap(lambda x: (x,), out_dims=(0, 0))(x)
    with pytest.raises(AttributeValueError, match="out_dims is None"):
        graphc.vmap(lambda x: x, out_dims=None)(x)
    with pytest.raises(IndexRangeError):
        graphc.vmap(lambda x: x, in_dims=2)(x)
    with pytest.raises(TraceError, match="needs the values"):
        graphc.vmap(lambda x: x if x.sum() > 0 else -x)(x)


def test_the_same_as_pytorch(torch):

    def run(library, functional):
        x, w, y = (library.from_numpy(a.copy()) for a in (X, W, Y))
        cross = library.nn.functional.cross_entropy
        loss = lambda w, x, y: cross((w @ x).unsqueeze(0), y.unsqueeze(0))  # noqa: E731
        v = functional.vmap
        return [
            v(functional.grad(loss), in_dims=(None, 0, 0))(w, x, y),
            v(lambda x: x.softmax(0), in_dims=1, out_dims=1)(x),
            v(functional.jacrev(lambda x: w @ x))(x),
            v(functional.hessian(lambda x: (w @ x).tanh().prod()))(x),
            v(lambda x: functional.jvp(lambda x: x.sin(), (x,), (x,))[1])(x),
            v(v(lambda a, b: a * b), in_dims=(None, 0))(x[:3], library.stack([w, w])),
        ]

    from_graphc = run(graphc, graphc.func)
    for a, b in zip(from_graphc, run(torch, torch.func), strict=True):
        close(a, b.numpy())


@pytest.mark.parametrize("size", [1, 3, 4, 20])
def test_chunks(size):
    x, w = graphc.randn(3, 10), graphc.randn(3)

    def function(tree, w):
        return (tree["x"] * w).sum(), tree["x"] + w

    expected = graphc.vmap(function, in_dims=({"x": 1}, None), out_dims=(0, 1))({"x": x}, w)
    result = graphc.vmap(function, in_dims=({"x": 1}, None), out_dims=(0, 1), chunk_size=size)({"x": x}, w)
    for a, b in zip(result, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)
    compiled = graphc.compile(graphc.vmap(lambda x: (x**2).sum(), chunk_size=size))
    np.testing.assert_allclose(compiled(x).numpy(), (x.numpy() ** 2).sum(1), rtol=1e-5)


def test_chunks_pass_gradients_and_refuse_what_they_cannot_do():
    x = graphc.randn(5, 2).requires_grad_()
    graphc.vmap(lambda v: (v**3).sum(), chunk_size=2)(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * x.detach().numpy() ** 2, rtol=1e-5)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(AttributeValueError, match="chunk_size"):
            graphc.vmap(lambda v: v, chunk_size=wrong)
    with pytest.raises(AttributeValueError, match="its own random numbers"):
        graphc.vmap(lambda v: v, randomness="same", chunk_size=2)
    jacobian = graphc.compile(graphc.jacrev(lambda v: v**2, chunk_size=2))
    np.testing.assert_allclose(jacobian(graphc.ones(5)).numpy(), 2 * np.eye(5), rtol=1e-6)
