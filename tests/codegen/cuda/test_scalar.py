"""Every scalar operation in CUDA C against its meaning, on edge values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from graphc.base.dtypes import (
    DType,
    bfloat16x2,
    bits_of,
    bool_,
    float32,
    float64,
    int8,
    int32,
    int64,
    numbers,
    pair,
    uint8,
)
from graphc.base.errors import CompileError
from graphc.codegen.cuda.scalar import expression
from graphc.codegen.schedule.expansion.expand import EXPRESSIONS
from graphc.ir.kernel.index import Axis, as_index
from graphc.ir.kernel.scalar import FIXED, SCALAR_OPS, ScalarOp, result_type
from graphc.ir.kernel.statements import Buffer, Kernel, Let, Load, Loop, Store
from graphc.runtime.devices.emulated import EmulatedDevice
from tests.codegen.cuda.running import launch_kernels

TYPES = (float32, float64, int8, int32, int64, uint8, bool_)
FLOATS = [0.0, -0.0, 1.0, -1.5, 2.5, 3.5, -3.25, 1e-40, 7e8, -3e9, 1e19, -1e30, np.inf, -np.inf, np.nan, 127.0, 255.5]
WHOLE = [0, 1, -1, 2, -7, 5, 31, 63, 64, 100, 127, -128, 255, 2**31 - 1, -(2**31), 2**62, -(2**63), 12345]


def values(dtype: DType) -> np.ndarray:
    """Edge values of a type."""
    if dtype.kind == "f":
        return np.array(FLOATS, dtype.numpy)
    return np.unique(np.array(WHOLE, np.int64).astype(dtype.numpy))


def applications() -> Iterator[tuple[ScalarOp, tuple[DType, ...], DType]]:
    """Operations that are left after expansion, with types of operands and result."""
    expanded = {name for name, _ in EXPRESSIONS}
    for op in SCALAR_OPS.values():
        if op.name in expanded:
            continue
        if op.rule == "fixed":
            yield op, *FIXED[op.name]
            continue
        for dtype in TYPES:
            if dtype.kind not in op.kinds or dtype.bits not in op.bits:
                continue
            if op.rule == "cast":
                for to in TYPES:
                    if to.kind in op.kinds and (op.name == "cast" or to.bits == dtype.bits):
                        yield op, (dtype,), to
                continue
            power = int32 if dtype is float32 else int64
            types = {"select": (bool_, dtype, dtype), "ldexp": (dtype, power)}.get(op.rule, (dtype,) * op.arity)
            yield op, types, result_type(op.name, types)


def operands(op: ScalarOp, types: tuple[DType, ...]) -> list[np.ndarray]:
    """All combinations of edge values; exponents that make sense."""
    rng = np.random.default_rng(0)
    each = [values(t) if t.name in {x.name for x in TYPES} else rng.integers(-(2**31), 2**31, 40) for t in types]
    if op.name == "dot2":  # of products that do not overflow
        halves = rng.standard_normal((2, 2, 40)).astype(np.float32)
        each = [pair(low, high) for low, high in halves]
    if op.name == "ldexp":
        each[1] = np.array([-200, -3, 0, 1, 127, 200])
    grids = np.meshgrid(*each, indexing="ij")
    return [np.ascontiguousarray(g.reshape(-1)).astype(t.numpy) for g, t in zip(grids, types, strict=True)]


def kernel_of(op: ScalarOp, types: tuple[DType, ...], result: DType, count: int) -> Kernel:
    axis = Axis("i", count)
    loads = [Load(f"a{k}", f"x{k}", as_index(axis), t) for k, t in enumerate(types)]
    body = (*loads, Let("v", op.name, tuple(x.name for x in loads), result), Store("y", as_index(axis), "v"))
    given = [Buffer(f"x{k}", t, count, "in") for k, t in enumerate(types)]
    return Kernel("k", (*given, Buffer("y", result, count, "out")), (Loop(axis, "grid", body),), threads=64)


def plain(array: np.ndarray) -> np.ndarray:
    """The elements as numbers; of pairs their bits."""
    return bits_of(array) if array.dtype == bfloat16x2.numpy else numbers(array)


def test_every_operation_means_what_the_table_says():
    kernels, arrays, expected, names = [], [], [], []
    for op, types, result in applications():
        given = operands(op, types)
        with np.errstate(all="ignore"):
            extra = [result] if op.rule == "cast" else []
            expected.append(np.asarray(op.reference(*given, *extra)).astype(result.numpy))
        kernels.append(kernel_of(op, types, result, len(given[0])))
        arrays.append({**{f"x{k}": a for k, a in enumerate(given)}, "y": np.zeros(len(given[0]), result.numpy)})
        names.append(f"{op.name}({', '.join(t.name for t in types)}) -> {result.name}")
    outputs = launch_kernels(EmulatedDevice(), kernels, arrays)
    assert len(names) > 150
    for name, left, expected_result in zip(names, outputs, expected, strict=True):
        tolerance = 1e-6 if name.startswith(("dot2", "fma", "rem(f", "reduce_large_rest")) else 0
        np.testing.assert_allclose(plain(left["y"]), plain(expected_result), rtol=tolerance, err_msg=name)


def test_operations_without_a_text_are_refused():
    with pytest.raises(CompileError, match="no text for exp of f32"):
        expression("exp", ["x"], [float32], float32)
