"""Kernels that differ in sizes alone: one function computes what each of them does."""

from __future__ import annotations

import ctypes
import re
from dataclasses import replace

import numpy as np

from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.module import Function, LlvmModule
from graphc.codegen.llvm.run_time_sizes import MOST_SIZES, with_run_time_sizes
from graphc.codegen.llvm.split import UNIT_LINES, split_module
from graphc.codegen.machine.target import host_target
from graphc.runtime.loader import host, load_object

HEAD = f'target triple = "{host_target().triple}"\n'
END = 'attributes #0 = { nounwind "frame-pointer"="none" }\n'
POINTER = (("ptr noalias nocapture", "%b0"),)


def kernel(name: str, count: int, stride: int, value: int = 7) -> Function:
    """A kernel that adds ``value`` to every ``stride``-th of numbers, ``count`` times, in a loop of many lines."""
    filling = "\n".join(f"  %t{i} = xor i64 %t{i - 1}, %i" for i in range(1, 2 * (UNIT_LINES // 2) + 1))
    body = f"""entry:
  br label %L
L:
  %i = phi i64 [ 0, %entry ], [ %n, %L ]
  %at = mul nuw nsw i64 %i, {stride}
  %p = getelementptr inbounds i64, ptr %b0, i64 %at
  %t0 = load i64, ptr %p, align 8
{filling}
  %r = or i64 %t{2 * (UNIT_LINES // 2)}, {value}
  store i64 %r, ptr %p, align 8
  %n = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %n, {count}
  br i1 %more, label %L, label %E
E:
  ret void"""
    return Function(name, POINTER, body)


def program(*kernels: Function) -> LlvmModule:
    calls = "\n".join(f"  call void @{k.name}(ptr %p)" for k in kernels)
    start = Function("start", (("ptr", "%p"),), f"entry:\n{calls}\n  ret void", local=False, calls=True)
    return LlvmModule((HEAD, *kernels, start, END))


def run(module: LlvmModule) -> np.ndarray:
    numbers = np.zeros(100, np.int64)
    library = load_object(build_object(module, host_target()), "start", host())
    library.entry(ctypes.c_void_p(numbers.ctypes.data))
    return numbers


def test_one_function_does_what_each_kernel_does():
    module = program(kernel("k0", 3, 5), kernel("k1", 9, 2), kernel("k2", 4, 25))
    shared = with_run_time_sizes(module)
    assert [f.name for f in shared.functions] == ["k0.sized", "k0", "k1", "k2", "start"]
    calls = re.findall(r"call void @k0\.sized\(ptr %b0, i64 (\d+), i64 (\d+)\)", shared.text)
    assert calls == [("5", "3"), ("2", "9"), ("25", "4")]
    np.testing.assert_array_equal(run(shared), run(module))
    assert [u.name for u in split_module(shared) if u.is_shared] == ["k0.sized"]


def test_other_numbers_are_no_sizes():
    """Kernels that differ elsewhere stay different, and so do first iterations and steps."""
    module = program(kernel("k0", 3, 5), kernel("k1", 9, 2, value=8))
    shared = with_run_time_sizes(module)
    assert [f.name for f in shared.functions] == ["k0.sized", "k0", "k1.sized", "k1", "start"]
    assert "add nuw nsw i64 %i, 1\n" in shared.text and "phi i64 [ 0, %entry ]" in shared.text
    np.testing.assert_array_equal(run(shared), run(module))


def test_short_functions_and_those_of_many_sizes_keep_them():
    long = kernel("k0", 3, 5)
    lines = "\n".join(f"  %s{i} = mul i64 %i, {i + 2}" for i in range(MOST_SIZES))
    many = replace(long, body=long.body.replace("  %at = ", f"{lines}\n  %at = "))
    short = Function("k1", POINTER, "entry:\n  %x = mul i64 3, 4\n  ret void")
    module = program(many, short)
    assert with_run_time_sizes(module) == module
