"""JAX functions with loops and branches, and models, of which the tests keep the StableHLO text."""

from __future__ import annotations

import jax  # pyright: ignore[reportMissingImports]
import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
import numpy as np
from jax import lax  # pyright: ignore[reportMissingImports]

from tools.stablehlo.functions import KEY, case, floats, whole

MLP = [(floats(6, 8, seed=1), floats(8, seed=2)), (floats(8, 3, seed=3), floats(3, seed=4))]


def mlp(params, x):
    """Return the logits of a network of two layers."""
    *hidden, (last, bias) = params
    for w, b in hidden:
        x = jnp.tanh(x @ w + b)
    return x @ last + bias


# ---- control flow


@case(floats(6, 3))
def scan(x):
    return lax.scan(lambda c, y: (jnp.tanh(c + y), c * y), jnp.zeros(3), x)


@case(floats(6, 3))
def scan_gradient(x):
    def loss(x):
        carry, ys = lax.scan(lambda c, y: (jnp.tanh(c + y), c * y), jnp.ones(3), x, reverse=True)
        return carry.sum() + (ys**2).sum()

    return jax.value_and_grad(loss)(x)


@case(np.array(27))
def collatz(n):
    return lax.while_loop(
        lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0)
    )


@case(floats(4))
def fori(x):
    return lax.fori_loop(0, 10, lambda i, v: v * 0.9 + i, x), lax.fori_loop(
        0, x.astype(int).sum() + 5, lambda i, v: v + i, 0
    )


@case(floats(4), np.array(1))
def branches(x, i):
    return (
        lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
        lax.switch(i, [jnp.sin, jnp.cos, lambda v: v * 2], x),
        lax.switch(i + 5, [jnp.sin, jnp.cos], x),
        jax.vmap(lambda v: lax.cond(v > 0, lambda u: u * 2, lambda u: -u, v))(x),
    )


@case(floats(5))
def newton(x):
    def step(s):
        y = s[0] - (s[0] ** 3 - 2 - x) / (3 * s[0] ** 2)
        return y, jnp.max(jnp.abs(y - s[0])), s[2] + 1

    return lax.while_loop(lambda s: (s[1] > 1e-12) & (s[2] < 50), step, (jnp.full(5, 1.5), jnp.inf, 0))


@case(floats(3), np.array(0.1))
def lorenz(y, dt):
    """Solve the Lorenz equations with steps of Dormand and Prince's second order and a controlled size."""

    def slope(v):
        return jnp.array([10 * (v[1] - v[0]), v[0] * (28 - v[2]) - v[1], v[0] * v[1] - 8 / 3 * v[2]])

    def step(s):
        t, v, h = s
        h = jnp.minimum(h, 1.0 - t)
        k1 = slope(v)
        k2 = slope(v + h * k1)
        error = jnp.linalg.norm(h * (k2 - k1) / 2) / (1e-4 + 1e-3 * jnp.linalg.norm(v))
        accept = error < 1
        v = jnp.where(accept, v + h * (k1 + k2) / 2, v)
        return jnp.where(accept, t + h, t), v, h * jnp.clip(0.9 / jnp.sqrt(error), 0.2, 5)

    return lax.while_loop(lambda s: s[0] < 1.0, step, (0.0, y, dt))


# ---- transformations


@case(MLP, floats(5, 6))
def mlp_outputs(params, x):
    return {"logits": mlp(params, x), "probabilities": jax.nn.softmax(mlp(params, x))}


@case(MLP, floats(5, 6), whole(5, high=3))
def training_step(params, x, y):
    def loss(params):
        return -jnp.take_along_axis(jax.nn.log_softmax(mlp(params, x)), y[:, None], 1).mean()

    value, gradient = jax.value_and_grad(loss)(params)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)


@case(MLP, floats(6))
def jacobians(params, x):
    return jax.jacfwd(mlp, 1)(params, x), jax.jacrev(mlp, 1)(params, x), jax.hessian(lambda v: mlp(params, v).sum())(x)


@case(MLP, floats(5, 6))
def vmapped(params, x):
    return jax.vmap(lambda v: jax.grad(lambda u: jnp.sum(mlp(params, u) ** 2))(v))(x), jax.jvp(jnp.sin, (x,), (x,))


@case(floats(2, 6, 8), floats(8, 24, seed=1) / 3)
def attention(x, w):
    q, k, v = jnp.split(x @ w, 3, -1)
    heads = [t.reshape(2, 6, 2, 4).transpose(0, 2, 1, 3) for t in (q, k, v)]
    scores = jnp.einsum("bhqd,bhkd->bhqk", heads[0], heads[1]) / 2
    scores = jnp.where(jnp.tril(jnp.ones((6, 6), bool)), scores, -jnp.inf)
    mixed = jnp.einsum("bhqk,bhkd->bqhd", jax.nn.softmax(scores), heads[2]).reshape(2, 6, 8)
    centred = mixed - mixed.mean(-1, keepdims=True)
    return jax.nn.gelu(centred / jnp.sqrt(mixed.var(-1, keepdims=True) + 1e-5))


@case(floats(3, 4, 5), floats(5, 4, 2, seed=1))
def einsums(x, y):
    return (
        jnp.einsum("abc,cbd->ad", x, y),
        jnp.einsum("abc,cbd->bda", x, y),
        jnp.tensordot(x, y, 1),
        jnp.vdot(x, x),
        (jnp.outer(x[0, 0], y[0, 0])),
        whole(3, 4) @ whole(4, 2),
    )


@case(floats(4, 6))
def activations(x):
    n = jax.nn
    return (
        n.relu(x),
        n.silu(x),
        n.elu(x),
        n.softplus(x),
        n.gelu(x, approximate=False),
        n.log_softmax(x),
        n.glu(x),
        n.selu(x),
    )


# ---- random numbers and models


@case(KEY)
def random_numbers(key):
    r = jax.random
    return (
        *(
            r.uniform(key, (7,)),
            r.normal(key, (3, 3)),
            r.bits(key, (5,), jnp.uint32),
            r.split(key, 3),
            r.randint(key, (6,), 0, 9),
        ),
        *(
            r.permutation(key, 8),
            r.bernoulli(key, 0.3, (6,)),
            r.exponential(key, (4,)),
            r.fold_in(key, 7),
            r.gumbel(key, (3,)),
        ),
        *(
            r.normal(key, (4,), jnp.float32),
            r.categorical(key, jnp.zeros((3, 4))),
        ),
        *(r.bits(key, (3,), jnp.uint64), r.bits(key, (3,), jnp.uint8), r.choice(key, 5, (3,))),
    )


@case(KEY)
def random_gamma(key):
    return jax.random.gamma(key, 2.5, (3,))


@case(floats(5, 3), {"w": floats(3, 12, seed=1), "u": floats(3, 12, seed=2), "b": floats(12, seed=3)})
def lstm(x, params):
    def step(state, v):
        h, c = state
        i, f, g, o = jnp.split(v @ params["w"] + h @ params["u"] + params["b"], 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (jnp.zeros(3), jnp.zeros(3)), x)


@case(floats(6), np.array(0.01), floats(3))
def adam(x, rate, unused):
    def step(state, i):
        p, m, v = state
        g = jax.grad(lambda p: jnp.sum((p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2))(p)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        update = rate * (m / (1 - 0.9 ** (i + 1))) / (jnp.sqrt(v / (1 - 0.999 ** (i + 1))) + 1e-8)
        return (p - update, m, v), None

    return lax.scan(step, (x, x * 0, x * 0), jnp.arange(20))[0]


@case(floats(4), floats(4, 4, seed=1))
def lqr(x, a):
    """Return the gains of a linear-quadratic regulator, and the states that it controls."""
    b = jnp.eye(4)[:, :2]

    def backward(p, _):
        gain = jnp.linalg.solve(jnp.eye(2) + b.T @ p @ b, b.T @ p @ a)
        return jnp.eye(4) + a.T @ p @ (a - b @ gain), gain

    _, gains = lax.scan(backward, jnp.eye(4), None, length=8)
    return lax.scan(lambda s, k: ((a - b @ k) @ s, s), x, gains[::-1]), gains


@case(floats(3, 5).astype(np.float32), floats(5, 2, seed=1).astype(np.float32))
def single_precision(x, w):
    return jnp.tanh(x @ w), jax.nn.softmax(x), x.sum(), (x @ w).astype(jnp.float64)
