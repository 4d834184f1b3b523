"""Detection of features in native code: what LLVM finds here is what the emitted functions find."""

from __future__ import annotations

import ctypes
import platform

import pytest
from llvmlite import binding

from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import host_target, named_targets, target_named
from graphc.codegen.machine.x86_64.detection import BITS, emit_detection
from graphc.runtime.loader import host, link_forever

on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is for x86-64")


def answer(features: str) -> bool:
    """Return the answer of the emitted function on this machine."""
    target = host_target()
    head = f'target triple = "{target.triple}"\n'
    text = head + emit_detection(features, "detect").replace("hidden ", "")
    address = link_forever(build_object(text, target), ("detect",), host())["detect"]
    return ctypes.CFUNCTYPE(ctypes.c_bool)(address)()


@on_x86
def test_each_feature_is_found_where_llvm_finds_it():
    here = binding.get_host_cpu_features()
    known = [name for name in BITS if name in here]
    assert len(known) > 20
    assert {name: answer(f"+{name}") for name in known} == {name: bool(here[name]) for name in known}


@on_x86
def test_all_features_of_a_target_are_asked_for():
    here = binding.get_host_cpu_features()
    for name in ("avx2", "avx512"):
        features = target_named(name).features
        assert answer(features) == all(here[f[1:]] for f in features.split(","))


def test_what_all_processors_have_needs_no_function():
    assert emit_detection("+sse2", "detect") == ""
    assert target_named("sse2").detection("detect") == ""
    assert target_named("neon").detection("detect") == ""
    assert "define hidden i1 @detect()" in target_named("avx2").detection("detect")


def test_all_features_of_named_targets_have_a_bit():
    for name, target in named_targets().items():
        if target.triple.startswith("x86_64") and not name.endswith("sse2"):
            assert {f[1:] for f in target.features.split(",")} <= BITS.keys()
