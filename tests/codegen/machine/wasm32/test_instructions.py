"""The multiply-add of relaxed SIMD, in Node: rounded once, for any number of elements."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphc.codegen.link.wasm_module import link_wasm
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.instruction import lanes_of
from graphc.codegen.machine.target import host_target, target_named
from tests.codegen.link.wasm_objects import call_module
from tests.codegen.machine.test_instructions import CASES, Case, text_of_case

MADDS = [case for case in CASES if case.instruction.name == "fma"]


@pytest.mark.skipif(not host_target().fma, reason="this processor has no multiply-add")
@pytest.mark.parametrize("case", MADDS, ids=str)
def test_products_are_not_rounded_before_the_sum(case: Case, tmp_path: Path):
    lanes, double = max(lanes_of(case.kind), 1), "double" in case.kind
    bits = 27 if double else 12
    x = 1 + np.arange(1, lanes + 1) * 2.0**-bits
    z = -(1 + 2 * np.arange(1, lanes + 1) * 2.0**-bits)
    code = link_wasm([build_object(text_of_case(case), target_named("wasm-relaxed"))], ["f"])
    array, step = ("Float64Array", 128) if double else ("Float32Array", 64)
    expression = f"""(() => {{
      const at = (k) => new {array}(e.memory.buffer, 1024 + k * {step * 2}, {lanes});
      at(0).set({json.dumps([*x])}); at(1).set({json.dumps([*x])}); at(2).set({json.dumps([*z])});
      e.f(1024, {1024 + 2 * step}, {1024 + 4 * step}, {1024 + 6 * step});
      return [...at(3)];
    }})()"""
    assert call_module(code, tmp_path, expression) == [(k * 2.0**-bits) ** 2 for k in range(1, lanes + 1)]
