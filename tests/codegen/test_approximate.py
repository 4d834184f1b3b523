"""Vector math against numpy in f64, mpmath, and numpy's own tables of exactly rounded results."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from graphc.codegen.approximate import expand
from graphc.dtypes import float32
from graphc.ir.index import Axis, as_index
from graphc.ir.kernel import Acc, Buffer, Kernel, Let, Load, Loop, Read, Store, Update, walk
from graphc.ir.kernel_interpret import run_kernel
from graphc.ir.kernel_verify import verify_kernel
from graphc.ir.scalar import SCALAR_OPS
from tests.codegen.lanes import evaluate, expanded, kernel_of, operation, runnable, ulps

TABLES = Path(np.__file__).parent / "_core" / "tests" / "data"
_erf = SCALAR_OPS["erf"].reference

# Largest error in units in the last place that each function may have.
LIMITS_F32 = {"exp": 0.9, "expm1": 1.6, "log": 0.95, "log1p": 1.55, "tanh": 2.1, "erf": 1.85}
EXACT_F32 = {name: _erf if name == "erf" else getattr(np, name) for name in LIMITS_F32}
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, -1e-38, 3.4e38, -3.4e38, 2.0**-126]
EDGES_F32 = {
    "exp": [88.72283, 88.72284, 88.73, 89.5, -87.33655, -87.4, -103.0, -103.97, -103.98, -104.5],
    "expm1": [88.72283, 88.72284, 88.73, 88.4, -17.3, -17.4, -20.5, 0.34657359, -0.34657359],
    "log": [np.nextafter(np.float32(1), np.float32(k)) for k in (0, 2)],
    "log1p": [np.nextafter(np.float32(-1), np.float32(k)) for k in (0, -2)] + [2.0**127, 2.3e38],
    "tanh": [9.01, 9.02, 9.1, -100.0],
    "erf": [3.91, 3.92, 3.93, -100.0],
}


def every(stride: int) -> np.ndarray:
    """Every ``stride``-th f32 there is, NaNs included."""
    return np.arange(0, 1 << 32, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("name", LIMITS_F32)
def test_f32_is_near_the_exact_value_everywhere(name: str):
    rng = np.random.default_rng(7)
    usual = rng.uniform(-12, 12, 200_000)
    x = np.concatenate([every(4099), *(np.array(v, np.float32) for v in (usual, SPECIAL, EDGES_F32[name]))])
    with np.errstate(all="ignore"):
        exact = EXACT_F32[name](x.astype(np.float64))
    errors = ulps(evaluate(operation(name), [float32], [x]), exact)
    worst = int(np.argmax(errors))
    assert errors[worst] <= LIMITS_F32[name], f"{name}({x[worst]!r}) is {errors[worst]:.3f} ULP off"


def table(name: str, dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs and correctly rounded results of numpy's table, both as floats, and the bits of the results."""
    path = TABLES / f"umath-validation-set-{name}.csv"
    integer = {"np.float32": np.uint32, "np.float64": np.uint64}[dtype]
    with path.open() as file:
        lines = [line for line in file if line.startswith(dtype)]
    rows = [(int(row[1], 16), int(row[2], 16)) for row in csv.reader(lines)]
    inputs, outputs = (np.array(column, dtype=integer) for column in zip(*rows, strict=True))
    kind = np.dtype(dtype.removeprefix("np."))
    return inputs.view(kind), outputs.view(kind), outputs


def bit_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How many floats lie between a and b; NaN is at distance 0 from NaN and far from all others."""
    integer = np.dtype(f"i{a.dtype.itemsize}")
    low = np.iinfo(integer).min
    x, y = (np.where(v.view(integer) < 0, low - v.view(integer), v.view(integer)).astype(object) for v in (a, b))
    distance = np.abs(x - y).astype(np.float64)
    nan = np.isnan(a) | np.isnan(b)
    return np.where(nan, np.where(np.isnan(a) & np.isnan(b), 0, np.inf), distance)


@pytest.mark.parametrize("name", [n for n in LIMITS_F32 if n != "erf"])
def test_f32_agrees_with_the_tables_of_numpy(name: str):
    x, want, _ = table(name, "np.float32")
    assert x.size > 100
    distance = bit_distance(evaluate(operation(name), [float32], [x]), want)
    assert distance.max() <= np.ceil(LIMITS_F32[name])


@pytest.mark.parametrize("name", LIMITS_F32)
@pytest.mark.parametrize("level", ["avx2", "avx512"])
def test_levels_of_one_machine_agree(name: str, level: str):
    target = runnable(level)
    if target is None:
        pytest.skip(f"this machine does not run {level}")
    x = np.concatenate([every(40_009), np.array(SPECIAL + EDGES_F32[name], np.float32)])
    np.testing.assert_array_equal(
        evaluate(operation(name), [float32], [x], target), evaluate(operation(name), [float32], [x])
    )


@pytest.mark.parametrize("name", LIMITS_F32)
def test_the_interpreter_of_kernels_agrees(name: str):
    x = np.concatenate([np.random.default_rng(3).uniform(-9, 9, 242), SPECIAL]).astype(np.float32)
    kernel = expanded(operation(name), [float32], float32, x.size // 16, 16)
    out = np.empty_like(x)
    run_kernel(kernel, {"in0": x, "out": out})
    np.testing.assert_array_equal(out, evaluate(operation(name), [float32], [x]))


def test_a_kernel_without_transcendentals_stays_itself():
    kernel = kernel_of(lambda nest, x: x * 2.0 + 1.0, [float32], float32, 4, 16)
    assert expand(kernel) is kernel


def test_an_expression_used_twice_is_built_once():
    kernel = kernel_of(lambda nest, x: nest.op("exp", x) + nest.op("tanh", x), [float32], float32, 1, 16)
    twice = kernel_of(lambda nest, x: nest.op("expm1", x) + nest.op("exp", x), [float32], float32, 1, 16)
    lets = [s for s, _ in walk(expand(kernel).body) if isinstance(s, Let)]
    assert len({(s.op, s.args, s.dtype.name) for s in lets}) == len(lets)
    shared = [s for s, _ in walk(expand(twice).body) if isinstance(s, Let)]
    alone = sum(
        sum(isinstance(s, Let) for s, _ in walk(expand(kernel_of(operation(n), [float32], float32, 1, 16)).body))
        for n in ("exp", "expm1")
    )
    assert len(shared) < alone + 1


def test_results_reach_stores_updates_and_accumulators_in_nested_loops():
    i, k = Axis("i", 3), Axis("k", 4)
    inner = Loop(
        k,
        "reduce",
        (
            Load("a1", "in", as_index(i) * 4 + as_index(k), float32),
            Let("e", "exp", ("a1",), float32),
            Update("sum", "e"),
        ),
    )
    outer = Loop(
        i,
        "parallel",
        (
            Load("first", "in", as_index(i) * 4, float32),
            Let("start", "tanh", ("first",), float32),
            Acc("sum", float32, "add", "start"),
            inner,
            Read("total", "sum"),
            Let("result", "log", ("total",), float32),
            Store("out", as_index(i), "result"),
        ),
    )
    kernel = Kernel("nested", (Buffer("in", float32, 12, "in"), Buffer("out", float32, 3, "out")), (outer,))
    changed = expand(kernel)
    verify_kernel(changed)
    x = np.linspace(-1, 2, 12, dtype=np.float32)
    out, want = np.empty(3, np.float32), np.empty(3, np.float32)
    run_kernel(changed, {"in": x, "out": out})
    run_kernel(kernel, {"in": x, "out": want})
    np.testing.assert_allclose(out, want, rtol=1e-6)
