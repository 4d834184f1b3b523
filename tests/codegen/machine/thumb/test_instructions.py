"""Products of bytes on Cortex-M: SMLAD for pairs, and for quads after two instructions that widen bytes."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from graphc.codegen.machine.target import target_named
from graphc.codegen.machine.thumb.facts import FAMILY
from graphc.compiler.stages import Stages
from tests.passes.graph_text import graph_of

DENSE = """
graph @f(%x: u8[{rows},64], %w: i8[64,16]) -> (i32[{rows},16]) {{
  %y = byte_matmul(%x, %w) : i32[{rows},16]
  return %y
}}
"""
PRODUCTS = re.compile(r"^\s+(smlad|mla|mul|smulbb|smlabb|uxtb16|sxtb16)(?:\.w)?\s", re.MULTILINE)


def counts(rows: int, target: str) -> Counter[str]:
    stages = Stages(graph_of(DENSE.format(rows=rows)), target=target_named(target), tuned={})
    return Counter(PRODUCTS.findall(stages.asm))


@pytest.mark.parametrize("target", FAMILY.named)
def test_many_results_of_each_weight_are_sums_of_pairs(target: str):
    products = counts(32, target)
    assert set(products) == {"smlad"}


@pytest.mark.parametrize("target", FAMILY.named)
def test_few_results_are_sums_of_quads_whose_bytes_are_widened_in_registers(target: str):
    products = counts(1, target)
    assert set(products) == {"smlad", "uxtb16", "sxtb16"}
    assert products["sxtb16"] == products["smlad"] > products["uxtb16"]
