"""The rewriting of kernels, and that every machine computes the same numbers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from graphc.base.dtypes import DType, float32, float64
from graphc.codegen.link.builtins import builtin_text
from graphc.codegen.link.wasm_format import INSTRUCTIONS
from graphc.codegen.machine.target import named_targets, target_named
from graphc.codegen.schedule.expansion.expand import EXPRESSIONS, expand
from graphc.ir.kernel.index import Axis, as_index
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.large_angle import PARTS
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import Acc, Buffer, Const, Kernel, Let, Load, Loop, Read, Store, Update, walk
from graphc.ir.kernel.verify import verify_kernel
from tests.codegen.lanes import (
    assembly,
    count_operations,
    evaluate,
    every,
    expanded,
    kernel_of,
    operation,
    powers_of_two,
)
from tests.native import target_or_skip

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3.4e38, 88.9, -103.5, 1e-310, -745.0, 1e30]
operations = pytest.mark.parametrize(("name", "dtype"), EXPRESSIONS, ids=lambda v: str(v))


def operands(name: str, dtype: DType, count: int) -> list[np.ndarray]:
    """Arrays of all kinds of numbers, one per operand."""
    first = every((1 << 32) // count) if dtype is float32 else powers_of_two(-1074, 1023.9, count)
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.concatenate([first, np.linspace(-9, 9, count), SPECIAL]).astype(dtype.numpy)
    return [x, np.random.default_rng(6).permutation(x)][: SCALAR_OPS[name].arity]


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_every_transcendental_operation_has_an_expression(dtype: DType):
    names = {name for name, op in SCALAR_OPS.items() if op.transcendental}
    assert names == {name for name, of in EXPRESSIONS if of is dtype}


@operations
@pytest.mark.parametrize(("level", "count"), [("sse2", 500), ("avx2", 50_000), ("avx512", 50_000)])
def test_levels_of_one_machine_agree(name: str, dtype: DType, level: str, count: int):
    target = target_or_skip(level)
    arrays = operands(name, dtype, count)
    types = [dtype] * len(arrays)
    got, want = evaluate(operation(name), types, arrays, target), evaluate(operation(name), types, arrays)
    np.testing.assert_array_equal(got, want)


BARE = [name for name, target in named_targets().items() if target.is_bare]


@operations
@pytest.mark.parametrize("level", [name for name, target in named_targets().items() if target.gpu is None])
def test_code_calls_no_function_of_libm(name: str, dtype: DType, level: str):
    target = target_named(level)
    text = assembly(operation(name), [dtype] * SCALAR_OPS[name].arity, target)
    called = {n[target.is_macos :] for n in re.findall(r"^\s+(?:callq?|bl)\s+(\w+)", text, re.MULTILINE)}
    called -= {"lanes", *PARTS}  # in the module
    # SSE2 has neither a fused multiply-add of f64 nor a rounding instruction, and WebAssembly neither such a
    # multiply-add nor integers of 128 bits. Microcontrollers have no f64: compilers come with its arithmetic.
    rounding = {"fma", "roundeven", "roundevenf"}
    absent = {"sse2": rounding, **dict.fromkeys(BARE, rounding)}
    instructions = {name.partition(".")[0] for name in INSTRUCTIONS}  # the linker replaces calls of these
    absent |= {target: {"fma", "__multi3", *instructions} for target in ("wasm", "wasm-relaxed", "wasm-scalar")}
    if level in BARE:
        # graphc supplies arithmetic of floats to RISC-V.
        called = {n for n in called if not n.startswith("__aeabi_") and builtin_text(n, target.triple) is None}
    assert called <= absent.get(level.removeprefix("windows-"), set())


@operations
def test_the_interpreter_of_kernels_agrees(name: str, dtype: DType):
    if dtype is float64 or name in ("sin", "cos", "tan", "pow"):
        pytest.skip("numpy has no fused multiply-add of f64")
    arrays = [np.resize(a, 256) for a in operands(name, dtype, 120)]
    kernel = expanded(operation(name), [dtype] * len(arrays), dtype, 16, 16)
    out = np.empty_like(arrays[0])
    run_kernel(kernel, {"out": out} | {f"in{k}": a for k, a in enumerate(arrays)})
    native = evaluate(operation(name), [dtype] * len(arrays), arrays)
    np.testing.assert_array_equal(out, native)


def test_the_document_lists_the_number_of_operations():
    page = (Path(__file__).parents[4] / "docs" / "vector_math.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    table = [row for row in rows if len(row) == 7 and row[2].isdigit()]
    listed = {(row[0], dtype): int(row[at]) for row in table for dtype, at in ((float32, 2), (float64, 5))}
    counted = {
        (name, dtype): count_operations(expanded(operation(name), [dtype] * SCALAR_OPS[name].arity, dtype, 1, 16))
        for name, dtype in EXPRESSIONS
    }
    assert listed == counted


def test_a_kernel_without_transcendentals_stays_itself():
    kernel = kernel_of(lambda nest, x: x * 2.0 + 1.0, [float32], float32, 4, 16)
    assert expand(kernel) is kernel


def lets_of(build) -> list[Let]:
    """The operations that a kernel has after expansion."""
    return [s for s, _ in walk(expand(kernel_of(build, [float32], float32, 1, 16)).body) if isinstance(s, Let)]


def test_sine_and_cosine_of_one_number_share_the_reduction():
    both = lets_of(lambda nest, x: nest.op("sin", x) + nest.op("cos", x))
    assert len({(s.op, s.args, s.dtype.name) for s in both}) == len(both)
    assert len(both) < len(lets_of(operation("sin"))) + 12


def test_literal_operands_are_computed_at_once():
    kernel = Kernel(
        "literal",
        (Buffer("out", float32, 1, "out"),),
        (Let("v", "exp", (kernel_literal(0.5),), float32), Store("out", as_index(0), "v")),
    )
    (store,) = expand(kernel).body
    assert isinstance(store, Store) and store.value == kernel_literal(float(np.exp(np.float32(0.5))))


def kernel_literal(value: float) -> Const:
    return Const(value, float32)


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
