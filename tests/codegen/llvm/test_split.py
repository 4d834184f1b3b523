"""Modules in units: every function is in one of them, and linked together they do what the module does."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.module import Function, LlvmModule
from graphc.codegen.llvm.split import UNIT_LINES, split_module
from graphc.codegen.machine.target import host_target, target_named
from graphc.codegen.proof.object_code import read_object_code
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


def test_short_functions_stay_in_one_unit():
    (unit,) = split_module(module(3, 10))
    assert not unit.is_shared
    assert re.findall(r"define .*?@(\w+)\(", unit.text) == ["k0", "k1", "k2", "work", "start"]


@pytest.mark.parametrize(("kernels", "length"), [(6, 600), (40, UNIT_LINES)])
def test_units_hold_every_function_once(kernels: int, length: int):
    first, *others = split_module(module(kernels, length))
    names = [name for unit in others for name in re.findall(r"define .*?@(\w+)\(", unit.named_text)]
    assert len(names) == len(others)
    short = re.findall(r"define .*?@(\w+)\(", first.text)
    assert short == (["start"] if kernels >= UNIT_LINES else ["work", "start"])
    assert [name for name in names if name.startswith("k")] == [f"k{i}" for i in range(kernels)]
    assert sorted(short + names) == sorted(["work", "start", *(f"k{i}" for i in range(kernels))])


def test_units_are_equal_where_only_names_differ():
    """Also where other kernels of their programs need other declarations."""
    one, other = module(2, 100).functions[0], replace(module(1, 100).functions[0], name="a_longer_name")
    more = "declare i64 @llvm.smin.i64(i64, i64)\n"
    texts = [split_module(LlvmModule(items))[-1].text for items in ((HEAD, one), (HEAD, more, other))]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["k", "k" * 64, "k" * 65, "k.streamed"])
def test_object_code_gets_the_name_of_its_function(name: str):
    function = replace(module(1, 100).functions[0], name=name)
    unit = split_module(LlvmModule((HEAD, function, 'attributes #0 = { nounwind "frame-pointer"="none" }\n')))[-1]
    named, renamed = build_object(unit.named_text, host_target()), unit.named(build_object(unit.text, host_target()))
    assert read_object_code(renamed).functions == read_object_code(named).functions
    assert list(read_object_code(renamed).functions) == [name]


def test_functions_that_others_call_are_visible_to_them():
    """A short function in the first unit, and a long one in a unit of its own."""
    helper = replace(module(1, 2).functions[0], name="helper")
    kernel = module(1, 100).functions[0]
    kernel = replace(kernel, body=kernel.body.replace("  ret void", "  call void @helper(ptr %b0)\n  ret void"))
    start = Function("start", POINTER, "entry:\n  call void @k0(ptr %p)\n  ret void", local=False, calls=True)
    code = build_object(LlvmModule((HEAD, helper, kernel, start, "attributes #0 = { nounwind }\n")), host_target())
    assert len(split_objects(code)) == 2
    number = ctypes.c_int64(30)
    load_object(code, "start", host()).entry(ctypes.addressof(number))
    assert number.value == 30


class Objects:
    """Cache of object code that records what it is asked for."""

    def __init__(self):
        self.objects: dict[str, bytes] = {}
        self.asked: list[str] = []

    def load(self, keys: Sequence[str]) -> dict[str, bytes]:
        self.asked += keys
        return {key: self.objects[key] for key in keys if key in self.objects}

    def store(self, objects: Mapping[str, bytes]) -> None:
        assert not self.objects.keys() & objects.keys()
        self.objects |= objects


def test_cached_kernels_are_not_built_again():
    """The object code stays the same; the functions that only one program has are not cached."""
    objects = Objects()
    large = module(6, 100)
    code = build_object(large, host_target(), cache=objects)
    assert len(objects.objects) == 6 == len(set(objects.asked))
    objects.objects = dict.fromkeys(objects.objects, b"cached")
    assert split_objects(build_object(large, host_target(), cache=objects))[1:] == [b"cached"] * 6
    assert code == build_object(large, host_target(), cache=Objects()) == build_object(large, host_target())
    build_object(module(6, 101), target_named("sse2"), cache=objects)
    build_object(large, target_named("sse2"), cache=objects)
    assert len(objects.objects) == 18


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
    texts = [unit.text for unit in split_module(module(10, 100))]
    assert len(texts) > 1 and "declare void @k" in texts[0]
    assert not any("declare hidden" in text for text in texts)
