"""Scalar operations as instructions: every operation on every type, scalar and in lanes, at awkward operands."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graphc.base.dtypes import STORED, DType, bool_, float32, float64, int8, int32, int64, pair, uint8
from graphc.codegen.llvm.emit import emit_kernel
from graphc.codegen.llvm.scalar import literal, memory_type, register_type, splat_literal, suffix
from graphc.codegen.machine.target import Target, in_strict_order, target_named
from graphc.codegen.schedule.expansion.expand import EXPRESSIONS
from graphc.errors import GraphcError
from graphc.ir.kernel.index import Axis, as_index
from graphc.ir.kernel.large_angle import PARTS
from graphc.ir.kernel.scalar import SCALAR_OPS, result_type
from graphc.ir.kernel.statements import Buffer, Const, Kernel, Let, Load, Loop, Store
from graphc.ir.kernel.verify import verify_kernel
from tests.codegen.kernel_native import interpreted, native
from tests.ir.kernel.test_scalar import exact_fma, half_way
from tests.native import target_or_skip

DTYPES = (float32, float64, int64, int32, int8, uint8, bool_, *STORED)
LANES = 8


def awkward(dtype: DType) -> np.ndarray:
    """Values at which an operation is easily wrong."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "f":
        values = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.75, 1e30, -1e30, np.inf, -np.inf, np.nan, 255.0, -129.0, 2.0**31]
        return np.array(values, dtype.numpy)
    if dtype.kind == "p":
        return pair(*np.random.default_rng(0).standard_normal((2, 24)).astype(np.float32))
    if dtype.kind == "h":
        bits = [
            *range(0, 1 << 16, 1009),
            1,
            0x3FF,
            0x400,
            0x7BFF,
            0x7C00,
            0x7C01,
            0x7F7F,
            0x7F80,
            0x8000,
            0xFC00,
            0xFFC1,
        ]
        return np.array(bits, np.uint16).view(dtype.numpy)
    low = 0 if dtype.kind == "u" else -(2 ** (dtype.bits - 1))
    high = low + 2**dtype.bits - 1
    return np.array([low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 31, dtype.bits - 1, dtype.bits, 100], dtype.numpy)


POWERS = [0, 1, -1, 24, -24, 127, 128, -126, -127, -149, -150, 200, -252, 254]
"""Second operands of ldexp, twice the smallest to twice the largest exponent."""


def operands(op: str, types: tuple[DType, ...]) -> list[np.ndarray]:
    """Every combination of awkward values, repeated up to whole vectors."""
    values = [awkward(t) for t in types]
    if op == "ldexp":
        values[1] = np.array(POWERS, types[1].numpy)
    places = np.meshgrid(*(np.arange(len(v)) for v in values), indexing="ij")
    columns = [v[p.reshape(-1)] for v, p in zip(values, places, strict=True)]
    size = -(-len(columns[0]) // LANES) * LANES
    return [np.resize(c, size) for c in columns]


def kernel(op: str, types: tuple[DType, ...], result: DType, size: int, lanes: int) -> Kernel:
    """``out = op(in...)`` with ``lanes`` at a time (0: one after the other)."""
    outer, lane = Axis("i", size // max(1, lanes)), Axis("l", max(1, lanes))
    index = as_index(outer) * max(1, lanes) + (as_index(lane) if lanes else 0)
    loads = tuple(Load(f"x{k}", f"in{k}", index, t) for k, t in enumerate(types))
    body = (*loads, Let("y", op, tuple(x.name for x in loads), result), Store("out", index, "y"))
    inner = (Loop(lane, "vector", body),) if lanes else body
    buffers = (*(Buffer(f"in{k}", t, size, "in") for k, t in enumerate(types)), Buffer("out", result, size, "out"))
    found = Kernel("k", buffers, (Loop(outer, "serial", inner),))
    verify_kernel(found)
    return found


def cases() -> list[tuple[str, tuple[DType, ...], DType]]:
    found = []
    for name, op in SCALAR_OPS.items():
        if op.transcendental:
            continue
        for dtype, other in itertools.product(DTYPES, DTYPES):
            for types in signatures(name, dtype, other):
                try:
                    wanted = other if op.rule in ("cast", "bitcast") else None
                    found.append((name, types, result_type(name, types, wanted)))
                except GraphcError:
                    continue
    return list(dict.fromkeys(found))


def signatures(name: str, dtype: DType, other: DType) -> list[tuple[DType, ...]]:
    if name == "select":
        return [(bool_, dtype, dtype)]
    if name == "fma":
        return [(dtype, dtype, dtype)]
    return [(dtype,), (dtype, other)]


CASES = cases()


def test_the_cases_cover_every_operation():
    assert {name for name, _, _ in CASES} == {n for n, op in SCALAR_OPS.items() if not op.transcendental}
    assert {name for name, _ in EXPRESSIONS} >= {n for n, op in SCALAR_OPS.items() if op.transcendental}


@pytest.mark.sampled(50)
@pytest.mark.parametrize("name", sorted({name for name, _, _ in CASES}))
def test_operations_agree_with_their_references(name: str, machine: Target):
    for op, types, result in CASES:
        if op != name:
            continue
        arrays = operands(op, types)
        for lanes in (0, LANES):
            k = kernel(op, types, result, arrays[0].size, lanes)
            memory = {f"in{i}": a for i, a in enumerate(arrays)} | {"out": np.zeros(arrays[0].size, result.numpy)}
            with np.errstate(all="ignore"):
                expected = interpreted(k, memory)["out"]
            got = native(k, memory, machine)["out"]
            message = f"{op} {types} -> {result}, {lanes} lanes"
            if op in ("fma", "dot2", *PARTS):  # the reference rounds more or less often
                np.testing.assert_allclose(got, expected, rtol=2e-7, atol=1e-44, err_msg=message)
            else:
                np.testing.assert_array_equal(got, expected, err_msg=message)


@pytest.mark.parametrize("lanes", [0, LANES])
def test_strict_order_rounds_a_product_and_its_sum_once_without_an_instruction_for_it(lanes: int):
    arrays = half_way()
    memory = {f"in{i}": a for i, a in enumerate(arrays)} | {"out": np.zeros(len(arrays[0]), np.float32)}
    k = kernel("fma", (float32,) * 3, float32, len(arrays[0]), lanes)
    strict = in_strict_order(target_or_skip("sse2"))
    np.testing.assert_array_equal(native(k, memory, strict)["out"], exact_fma(*arrays))


def test_types():
    assert register_type(bool_) == "i1" and memory_type(bool_, 4) == "<4 x i8>"
    assert register_type(float32, 16) == "<16 x float>" and suffix(float64, 2) == "v2f64" and suffix(int8, 0) == "i8"


def test_literals():
    assert literal(Const(True, bool_)) == "true" and literal(Const(-3, int32)) == "-3"
    assert "0x3FF8000000000000" in literal(Const(1.5, float64))
    assert splat_literal(Const(0, int64), 4) == "splat (i64 0)"


def test_four_products_are_added_where_no_instruction_does_it():
    """A fifth one would shift by as many bits as there are, whose result LLVM leaves open."""
    text = emit_kernel(kernel("dot4", (int32, int32), int32, 4, 4), target_named("neon"), {}).text
    assert text.count("= mul <4 x i32>") == 4
