"""Large products on the emulated device are those of the library's stand-in."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.compiler.device import compile_for_device
from graphc.nn import functional as F
from graphc.runtime.devices import emulated

SIZE = 128


def heads(x: gc.Tensor) -> gc.Tensor:
    return x.reshape(2, SIZE, 2, 64).transpose(1, 2)


FUNCTIONS = {
    "bias and relu": (lambda x, w, b: F.relu(x @ w + b), ((SIZE, SIZE), (SIZE, SIZE), (SIZE,)), 1),
    "something behind": (lambda x, w: F.gelu(x @ w.T), ((SIZE, SIZE), (SIZE, SIZE)), 1),
    "attention": (lambda q, k: heads(q) @ heads(k).transpose(-1, -2) * 0.125, ((2, SIZE, 128), (2, SIZE, 128)), 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_products_of_the_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, shapes, calls = FUNCTIONS[name]
    graph = gc.trace(function, *(gc.zeros(*s) for s in shapes))
    random = np.random.default_rng(1)
    given = [random.normal(size=s).astype(np.float32) for s in shapes]
    counted = []
    compute = emulated.compute_product
    monkeypatch.setattr(emulated, "compute_product", lambda *a: (counted.append(a), compute(*a)))
    found = compile_for_device(graph, "cuda-emu").run(given)[0]
    expected = load_compiled(compile_graph(graph)).run(given)[0]
    assert len(counted) == calls
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("tf32", ["off", "on"])
def test_tf32_only_where_it_is_asked_for(tf32: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHC_TF32", tf32)
    one = np.full((SIZE, SIZE), 1 + 2.0**-12, np.float32)
    graph = gc.trace(lambda x, w: x @ w, gc.zeros(SIZE, SIZE), gc.zeros(SIZE, SIZE))
    found = np.asarray(compile_for_device(graph, "cuda-emu").run([one, one])[0])
    assert (float(found[0, 0]) == SIZE) == (tf32 == "on")


def test_a_step_of_training_by_the_library() -> None:
    shapes = (SIZE, 96), (SIZE, 96), (SIZE,), (SIZE, SIZE)

    def gradients(x, w, b, y):
        error = F.relu(F.linear(x, w, b)) - y
        return gc.autograd.grad((error * error).mean(), (w, b, x))

    operands = [gc.zeros(*s) for s in shapes]
    for operand in operands[:3]:
        operand.requires_grad_()
    graph = gc.trace(gradients, *operands)
    random = np.random.default_rng(2)
    given = [random.normal(size=s).astype(np.float32) for s in shapes]
    expected = load_compiled(compile_graph(graph)).run(given)
    for a, b in zip(compile_for_device(graph, "cuda-emu").run(given), expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-4, atol=1e-5)
