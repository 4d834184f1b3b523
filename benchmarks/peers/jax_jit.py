"""JAX: plain functions over the weights' names, each call one ``jax.jit``; training steps donate their state."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.harness import framework as fw
from benchmarks.harness.prepared import CHECKED_STEPS, NotProvidedError, Prepared
from benchmarks.models import more, standard
from benchmarks.workloads import Workload

Params = dict[str, jax.Array]
Forward = Callable[[Params, jax.Array, "jax.Array | None"], jax.Array]
"""``forward(params, x, key)``; the key of the random bits is None in evaluation mode."""
Step = Callable[..., tuple[jax.Array, Params, list[Params]]]

jax.config.update("jax_cpu_enable_async_dispatch", False)


def linear(params: Params, name: str, x: jax.Array) -> jax.Array:
    return x @ params[f"{name}.weight"] + params[f"{name}.bias"]


def drop(x: jax.Array, key: jax.Array | None, shape: tuple[int, ...]) -> jax.Array:
    """Zero half of `x`, in blocks that broadcast from `shape`, and double the rest."""
    return x if key is None else jnp.where(jax.random.bernoulli(key, 0.5, shape), 2 * x, 0)


def policy(params: Params, x: jax.Array, key: jax.Array | None) -> jax.Array:
    del key
    return linear(params, "net.4", jnp.tanh(linear(params, "net.2", jnp.tanh(linear(params, "net.0", x)))))


def mlp(params: Params, x: jax.Array, key: jax.Array | None) -> jax.Array:
    del key
    return linear(params, "net.4", jax.nn.relu(linear(params, "net.2", jax.nn.relu(linear(params, "net.0", x)))))


def net(params: Params, x: jax.Array, key: jax.Array | None) -> jax.Array:
    keys = (None, None) if key is None else jax.random.split(key)

    def convolve(name: str, x: jax.Array) -> jax.Array:
        y = lax.conv_general_dilated(x, params[f"{name}.weight"], (1, 1), "VALID")
        return y + params[f"{name}.bias"][:, None, None]

    def pool(x: jax.Array) -> jax.Array:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    x = jax.nn.relu(pool(convolve("conv1", x)))
    x = convolve("conv2", x)
    x = jax.nn.relu(pool(drop(x, keys[0], (*x.shape[:2], 1, 1))))
    x = jax.nn.relu(linear(params, "fc1", x.reshape(-1, 320)))
    return jax.nn.log_softmax(linear(params, "fc2", drop(x, keys[1], x.shape)))


def normalise(params: Params, name: str, x: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    scale = lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return centred * scale * params[f"{name}.weight"] + params[f"{name}.bias"]


def attend(params: Params, name: str, x: jax.Array, heads: int) -> jax.Array:
    batch, length, width = x.shape

    def split(projected: str) -> jax.Array:
        return (
            linear(params, f"{name}.{projected}", x).reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)
        )

    scores = split("query") @ split("key").swapaxes(-1, -2) / math.sqrt(width // heads)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
    y = jax.nn.softmax(scores) @ split("value")
    return linear(params, f"{name}.out", y.transpose(0, 2, 1, 3).reshape(batch, length, width))


def gpt(params: Params, ids: jax.Array, key: jax.Array | None) -> jax.Array:
    del key
    x = params["tokens.weight"][ids] + params["positions.weight"][: ids.shape[1]]
    for index in range(4):
        name = f"blocks.{index}"
        x = x + attend(params, name, normalise(params, f"{name}.norm1", x), 8)
        inner = jax.nn.gelu(linear(params, f"{name}.up", normalise(params, f"{name}.norm2", x)), approximate=False)
        x = x + linear(params, f"{name}.down", inner)
    return linear(params, "head", normalise(params, "norm", x))


FORWARDS: dict[object, Forward] = {
    standard.build_policy: policy,
    standard.build_mlp: mlp,
    standard.build_net: net,
    standard.build_gpt: gpt,
    more.build_long_gpt: gpt,
}
EMBEDDINGS = ("tokens.weight", "positions.weight")


def prepare(workload: Workload, folder: Path, threads: int, variant: str = "") -> Prepared:
    """Compile the forward function, or the whole training step."""
    del threads, variant  # XLA takes threads from the environment and the cores it may use.
    forward = FORWARDS.get(getattr(workload, "build", None))
    if forward is None:
        raise NotProvidedError("not written for this model")
    params = load_params(folder)
    inputs = [jnp.asarray(array) for array in workload.draw_inputs()]
    if workload.train:
        return _prepare_step(workload, forward, params, inputs)
    start = time.perf_counter()
    compiled = jax.jit(lambda params, x: forward(params, x, None))
    numbers = np.asarray(compiled(params, inputs[0]))
    first_call_s = time.perf_counter() - start
    return Prepared(lambda: compiled(params, inputs[0]).block_until_ready(), numbers, first_call_s)


def make_step(workload: Workload, forward: Forward, random: bool) -> Step:
    """Return ``step(params, slots, count, x, y) -> loss, params, slots`` as one compiled function."""

    def loss(params: Params, count: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        output = forward(params, x, jax.random.fold_in(jax.random.key(0), count) if random else None)
        rows = output.reshape(-1, output.shape[-1])
        logs = rows if workload.log_probabilities else jax.nn.log_softmax(rows)
        return -jnp.take_along_axis(logs, y.reshape(-1, 1), axis=1).mean()

    def sgd(params: Params, grads: Params, slots: list[Params], count: jax.Array) -> tuple[Params, list[Params]]:
        del count
        momentum = {name: 0.9 * slots[0][name] + grads[name] for name in params}
        return {name: params[name] - 0.01 * momentum[name] for name in params}, [momentum]

    def adam(params: Params, grads: Params, slots: list[Params], count: jax.Array) -> tuple[Params, list[Params]]:
        first = {name: 0.9 * slots[0][name] + 0.1 * grads[name] for name in params}
        second = {name: 0.999 * slots[1][name] + 0.001 * grads[name] ** 2 for name in params}
        rate, correction = 0.001 / (1 - 0.9**count), 1 / jnp.sqrt(1 - 0.999**count)
        new = {
            name: params[name] - rate * first[name] / (correction * jnp.sqrt(second[name]) + 1e-8) for name in params
        }
        return new, [first, second]

    update = sgd if workload.optimizer == "sgd" else adam

    def step(params: Params, slots: list[Params], count: jax.Array, x: jax.Array, y: jax.Array):
        value, grads = jax.value_and_grad(loss)(params, count, x, y)
        return value, *update(params, grads, slots, count)

    return jax.jit(step, donate_argnums=(0, 1))


def load_params(folder: Path) -> Params:
    """Return the weights by name; those of linear layers are [inputs, outputs], JAX's usual and faster layout."""
    with np.load(folder / fw.WEIGHTS) as arrays:
        return {
            name: jnp.asarray(arrays[name].T if arrays[name].ndim == 2 and name not in EMBEDDINGS else arrays[name])
            for name in arrays.files
        }


def _prepare_step(workload: Workload, forward: Forward, params: Params, inputs: list[jax.Array]) -> Prepared:
    x, y = inputs
    slots_needed = 1 if workload.optimizer == "sgd" else 2

    def start_over(random: bool) -> Callable[[], jax.Array]:
        step = make_step(workload, forward, random)
        state = {name: jnp.array(value, copy=True) for name, value in params.items()}
        slots = [{name: jnp.zeros_like(value) for name, value in params.items()} for _ in range(slots_needed)]
        count = 0

        def call() -> jax.Array:
            nonlocal state, slots, count
            count += 1
            value, state, slots = step(state, slots, jnp.float32(count), x, y)
            return value.block_until_ready()

        return call

    start = time.perf_counter()
    call = start_over(random=False)
    losses = [float(call())]
    first_call_s = time.perf_counter() - start
    losses.extend(float(call()) for _ in range(CHECKED_STEPS - 1))
    if workload.dropout:
        call = start_over(random=True)
        call()
    return Prepared(call, np.array(losses), first_call_s)
