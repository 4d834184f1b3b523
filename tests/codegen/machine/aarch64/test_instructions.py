"""Instructions of aarch64: those that all of its processors have, and products of bytes by features."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from graphc.codegen.machine.aarch64.facts import FAMILY, describe
from graphc.codegen.machine.target import target_named
from graphc.compiler.stages import Stages
from tests.passes.graph_text import graph_of

DENSE = """
graph @f(%x: u8[64,256], %w: i8[256,64]) -> (i32[64,64]) {
  %y = byte_matmul(%x, %w) : i32[64,64]
  return %y
}
"""
CONVOLUTION = """
graph @f(%x: u8[1,32,16,16], %w: i8[32,32,3,3]) -> (i32[1,32,14,14]) {
  %y = byte_conv(%x, %w) {stride=[1,1], dilation=[1,1]} : i32[1,32,14,14]
  return %y
}
"""
PRODUCTS = re.compile(r"^\s+(usdot|sdot|smlal|mla|mul)\s+v", re.MULTILINE)


def test_every_processor_widens_f16_and_pauses():
    neon = FAMILY.named["neon"]
    assert neon.instruction("widen", "<4 x float>") and neon.instruction("pause")


@pytest.mark.parametrize(
    ("name", "kind", "features", "mnemonic"),
    [
        ("dot4", "<4 x i32>", "+neon", None),
        ("dot4", "<4 x i32>", "+dotprod,+neon", "sdot"),
        ("dot4", "<2 x i32>", "+dotprod,+neon", "sdot"),
        ("dot4", "<4 x i32>", "+dotprod,+i8mm,+neon", "usdot"),
        ("dot4", "<2 x i32>", "+i8mm", "usdot"),
        ("dot4", "<8 x i32>", "+dotprod,+i8mm", None),
        ("dot2i", "<4 x i32>", "", "smlal"),
        ("dot2i", "<2 x i32>", "", None),
    ],
)
def test_features_bring_products_of_bytes(name: str, kind: str, features: str, mnemonic: str | None):
    instruction = describe("aarch64-unknown-linux-gnu", "", features).instruction(name, kind)
    assert (instruction.mnemonics if instruction else None) == ((mnemonic,) if mnemonic else None)


@pytest.mark.parametrize("graph", [DENSE, CONVOLUTION], ids=["dense", "convolution"])
@pytest.mark.parametrize(
    ("target", "mnemonics"), [("neon-dotprod", {"sdot"}), ("neon-i8mm", {"usdot"}), ("neon", {"smlal"})]
)
def test_products_of_bytes_take_the_instruction_of_the_target(graph: str, target: str, mnemonics: set[str]):
    assembly = Stages(graph_of(graph), target=target_named(target), tuned={}).asm
    counts = Counter(PRODUCTS.findall(assembly))
    assert counts.most_common(1)[0][0] in mnemonics
    if target != "neon":
        assert set(counts) == mnemonics


def test_rows_of_a_register_block_share_the_second_sum_of_signed_products():
    """The block has 8 rows of 2 vectors: a product for each of its sums, and one for each vector of weights."""
    assembly = Stages(graph_of(DENSE), target=target_named("neon-dotprod"), tuned={}).asm
    assert PRODUCTS.findall(assembly).count("sdot") == 8 * 2 + 2
