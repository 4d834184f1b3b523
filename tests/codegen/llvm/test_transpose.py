"""Registers transposed and interleaved by shuffles, for every width and element type."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from graphc.base.dtypes import DType, bool_, float32, float64, int8, int64
from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.function import FunctionWriter
from graphc.codegen.llvm.module import Function, LlvmModule
from graphc.codegen.llvm.scalar import memory_type
from graphc.codegen.llvm.transpose import interleave_registers, transpose_registers, turning_function
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import host_target
from graphc.runtime.loader import host, load_object


@pytest.mark.parametrize("dtype", [float32, float64, int64, int8, bool_])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_columns_become_rows(lanes: int, dtype: DType):
    f = FunctionWriter({})
    kind = memory_type(dtype, lanes)
    places = [f.line(f"getelementptr i8, ptr %b, i64 {i * lanes * dtype.itemsize}") for i in range(lanes)]
    rows = [f.line(f"load {kind}, ptr {p}, align 1") for p in places]
    for place, column in zip(places, transpose_registers(f, rows, dtype), strict=True):
        f.statement(f"store {kind} {column}, ptr {place}, align 1")
    text = f"define void @{ENTRY}(ptr %b) {{\nentry:\n{f.text()}\n  ret void\n}}\n"
    library = load_object(build_object(text, host_target()), ENTRY, host())
    square = (np.arange(lanes * lanes) % 100).astype(np.int8).astype(dtype.numpy).reshape(lanes, lanes)
    expected = square.T.copy()
    library.entry(ctypes.c_void_p(square.ctypes.data))
    np.testing.assert_array_equal(square, expected)
    shuffles = f.text().count("shufflevector")
    assert shuffles == lanes * (lanes.bit_length() - 1), "log2(lanes) rounds of one shuffle per register"


@pytest.mark.parametrize("dtype", [float32, float64, int64, int8, bool_])
@pytest.mark.parametrize(("copies", "lanes"), [(2, 4), (3, 4), (4, 4), (2, 16), (3, 8), (4, 16)])
def test_elements_by_turns(copies: int, lanes: int, dtype: DType):
    f = FunctionWriter({})
    kind = memory_type(dtype, lanes)
    places = [f.line(f"getelementptr i8, ptr %b, i64 {i * lanes * dtype.itemsize}") for i in range(copies)]
    registers = [f.line(f"load {kind}, ptr {p}, align 1") for p in places]
    for i, place in enumerate(places):
        mixed = interleave_registers(f, registers, i * lanes, lanes, dtype)
        f.statement(f"store {kind} {mixed}, ptr {place}, align 1")
    text = f"define void @{ENTRY}(ptr %b) {{\nentry:\n{f.text()}\n  ret void\n}}\n"
    library = load_object(build_object(text, host_target()), ENTRY, host())
    rows = (np.arange(copies * lanes) % 100).astype(np.int8).astype(dtype.numpy).reshape(copies, lanes)
    expected = rows.T.reshape(copies, lanes).copy()
    library.entry(ctypes.c_void_p(rows.ctypes.data))
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("dtype", [float32, float64, int8])
@pytest.mark.parametrize("lanes", [4, 16])
def test_the_turning_function_copies_between_rows_of_other_lengths(lanes: int, dtype: DType):
    turning = turning_function(dtype, lanes)
    size = dtype.itemsize
    call = f"call void @{turning.name}(ptr %b, i64 {(lanes + 3) * size}, ptr %y, i64 {(lanes + 1) * size})"
    place = f"%y = getelementptr i8, ptr %b, i64 {lanes * (lanes + 3) * size}"
    entry = Function(ENTRY, (("ptr", "%b"),), f"entry:\n  {place}\n  {call}\n  ret void", local=False, calls=True)
    library = load_object(
        build_object(LlvmModule((turning, entry, "attributes #0 = { nounwind }\n")), host_target()), ENTRY, host()
    )
    data = (np.arange(lanes * (2 * lanes + 4)) % 100).astype(dtype.numpy)
    source = data[: lanes * (lanes + 3)].reshape(lanes, lanes + 3)
    expected = data.copy()
    expected[source.size :].reshape(lanes, lanes + 1)[:, :lanes] = source[:, :lanes].T
    library.entry(ctypes.c_void_p(data.ctypes.data))
    np.testing.assert_array_equal(data, expected)
