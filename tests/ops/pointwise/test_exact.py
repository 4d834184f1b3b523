"""The same bits in all executors, near the exact values."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import graphc
from graphc.codegen.machine.target import host_target
from graphc.ops.pointwise import exact
from graphc.tensors.random import sampling
from tests import native
from tests.ops.test_every_op import BACKENDS, run_eagerly, sample_graph

FUNCTIONS = {
    "exact_log": (mpmath.log, 1e-7, 40),
    "exact_exp": (mpmath.exp, -80, 80),
    "exact_cosine": (lambda v: mpmath.cos(2 * mpmath.pi * v), 0, 1),
    "exact_sine": (lambda v: mpmath.sin(2 * mpmath.pi * v), 0, 1),
}
OPS = {f.op.name: f.op for f in (exact.exact_log, exact.exact_exp, exact.exact_cosine, exact.exact_sine)}
SAMPLES = [(op, sample) for op in OPS.values() for sample in op.samples()]


@pytest.mark.parametrize("backend", [pytest.param(run, id=name) for name, run in BACKENDS])
def test_all_executors_give_the_same_bits(backend):
    for op, sample in SAMPLES:
        for result, expected in zip(backend(op, sample), run_eagerly(op, sample), strict=True):
            integer = f"i{expected.dtype.itemsize}"
            np.testing.assert_array_equal(result.view(integer), expected.view(integer), err_msg=op.name)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_native_code_gives_the_same_bits_on_many_numbers(name: str, dtype: type):
    _, low, high = FUNCTIONS[name]
    x = np.random.default_rng(4).uniform(low, high, 200_000).astype(dtype)
    expected = OPS[name].evaluate((x,), {})[0]
    outputs, _ = native.run_native(sample_graph(OPS[name], (x,), {}), (x,), target=host_target())
    np.testing.assert_array_equal(outputs[0], expected)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_are_near_the_exact_ones(name: str, dtype: type):
    function, low, high = FUNCTIONS[name]
    x = np.random.default_rng(5).uniform(low, high, 500).astype(dtype)
    result = OPS[name].evaluate((x,), {})[0]
    assert result.dtype == dtype
    expected = [float(function(mpmath.mpf(float(v)))) for v in x]
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(result, expected, rtol=100 * eps if name == "exact_exp" else 4 * eps, atol=4 * eps)


def test_quarters_of_a_turn():
    x = np.array([0.0, 0.25, 0.5, 0.75], np.float32)
    assert OPS["exact_cosine"].evaluate((x,), {})[0].tolist() == [1, 0, -1, 0]
    assert OPS["exact_sine"].evaluate((x,), {})[0].tolist() == [0, 1, 0, -1]


DRAWS = {
    "normal": lambda t: t.normal_(1.0, 2.0),
    "exponential": lambda t: t.exponential_(1.5),
    "log_normal": lambda t: t.log_normal_(0.5, 1.5),
    "cauchy": lambda t: t.cauchy_(),
    "geometric": lambda t: t.geometric_(0.3),
    "randn": lambda t: graphc.randn(*t.shape, dtype=t.dtype),
    "gumbel": lambda t: sampling.gumbel(tuple(t.shape), t.dtype),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", DRAWS)
def test_eager_and_compiled_draws_have_the_same_bits(name: str, dtype: str):
    draw, kind = DRAWS[name], getattr(graphc, dtype)
    graphc.manual_seed(11)
    eager = draw(graphc.empty(30_000, dtype=kind)).numpy().copy()
    graphc.manual_seed(11)
    compiled = graphc.compile(lambda: draw(graphc.empty(30_000, dtype=kind)))().numpy()
    np.testing.assert_array_equal(eager, compiled)
    assert np.isfinite(eager).all() and len(np.unique(eager)) > (10 if name == "geometric" else 20_000)
