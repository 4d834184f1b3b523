"""The probe of the machine's peak: it computes what it says and has the loop that it counts."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

from graphc.codegen.llvm.build import build_object, emit_assembly
from graphc.codegen.machine.probe import PEAK, chains, emit_peak, flops_per_round
from graphc.codegen.machine.target import host_target, named_targets, target_named
from graphc.runtime.loader import host, load_object


@pytest.mark.parametrize("name", [name for name, target in named_targets().items() if target.gpu is None])
def test_every_target_builds(name: str):
    target = target_named(name)
    assert build_object(emit_peak(target), target)
    assert flops_per_round(target) == 2 * chains(target) * target.vector_bytes // 4


def test_the_loop_has_all_operations_and_spills_nothing():
    target = target_named("avx512")
    text = emit_assembly(emit_peak(target), target)
    assert len(re.findall(r"\bvfn?m\w+", text)) == chains(target)
    assert "rsp" not in text


def test_result():
    target = host_target()
    library = load_object(build_object(emit_peak(target), target), PEAK, host())
    rounds, result = np.array([3], np.int64), np.zeros(64, np.float32)
    table = (ctypes.c_size_t * 2)(rounds.ctypes.data, result.ctypes.data)
    library.entry(ctypes.addressof(table))
    lanes = target.vector_bytes // 4
    expected = sum(i + 1 + 3 for i in range(chains(target)))
    np.testing.assert_allclose(result[:lanes], expected, rtol=1e-5)
