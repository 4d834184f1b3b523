"""Large modules in parts: every function is in one of them, and linked together they do what the module does."""

from __future__ import annotations

import ctypes
import re

import pytest

from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.module import Function, LlvmModule
from graphc.codegen.llvm.split import MOST_PARTS, PART_LINES, split_module
from graphc.codegen.machine.target import host_target
from graphc.files.object_archive import split_objects
from graphc.runtime.loader import host, load_object

HEAD = f"""target triple = "{host_target().triple}"

declare i64 @llvm.smax.i64(i64, i64)
"""
POINTER = (("ptr", "%p"),)


def module(kernels: int, length: int) -> LlvmModule:
    """A module whose entry lets kernel i add i to a number, ``length`` times."""
    functions = []
    for k in range(kernels):
        steps = "\n".join(f"  %v{i + 1} = call i64 @llvm.smax.i64(i64 %v{i}, i64 %v{i})" for i in range(length - 1))
        body = f"""entry:
  %v0 = load i64, ptr %b0, align 8
{steps}
  %r = add i64 %v{length - 1}, {k}
  store i64 %r, ptr %b0, align 8
  ret void"""
        functions.append(Function(f"k{k}", (("ptr noalias nocapture", "%b0"),), body))
    calls = "\n".join(f"  call void @k{k}(ptr %p)" for k in range(kernels))
    functions.append(Function("work", POINTER, f"entry:\n{calls}\n  ret void", calls=True))
    start = "entry:\n  call void @work(ptr %p)\n  ret void"
    functions.append(Function("start", POINTER, start, local=False, calls=True))
    return LlvmModule((HEAD, *functions, 'attributes #0 = { nounwind "frame-pointer"="none" }\n'))


def test_small_modules_stay_whole():
    small = module(3, 10)
    assert split_module(small) == [small.text]


@pytest.mark.parametrize(("kernels", "length"), [(6, 600), (40, 500)])
def test_parts_hold_every_function_once(kernels: int, length: int):
    large = module(kernels, length)
    parts = split_module(large)
    assert len(parts) == min(MOST_PARTS, large.text.count("\n") // PART_LINES)
    names = [re.findall(r"define .*?@(\w+)\(", part) for part in parts]
    assert sorted(n for part in names for n in part) == sorted(["work", "start", *(f"k{i}" for i in range(kernels))])
    assert {"work", "start"} <= set(names[0])
    sizes = [part.count("\n") for part in parts]
    assert max(sizes) < 2 * min(sizes)


def test_parts_are_linked():
    """The code depends on the number of threads no more than on anything else."""
    large = module(12, 400)
    code = build_object(large, host_target())
    assert len(split_objects(code)) == len(split_module(large)) > 1
    number = ctypes.c_int64(30)
    load_object(code, "start", host()).entry(ctypes.addressof(number))
    assert number.value == 30 + sum(range(12))


def test_the_number_of_threads_does_not_change_the_code(monkeypatch: pytest.MonkeyPatch):
    codes = set()
    for threads in ("1", "3"):
        monkeypatch.setenv("GRAPHC_COMPILE_THREADS", threads)
        codes.add(build_object(module(12, 400), host_target()))
    assert len(codes) == 1


def test_functions_of_other_parts_may_be_far_away():
    """Nothing says that they are near, or their addresses would be taken by offsets of 32 bits."""
    texts = split_module(module(40, PART_LINES // 8))
    assert len(texts) > 1 and "declare void @k" in texts[0]
    assert not any("declare hidden" in text for text in texts)
