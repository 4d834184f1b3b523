"""Instructions of x86-64: which features bring them."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.x86_64.facts import FAMILY, describe

TRIPLE = "x86_64-unknown-linux-gnu"
SHORT = "+avx512f,+avx512vl"


@pytest.mark.parametrize(
    ("name", "kind", "features", "there"),
    [
        ("dot4", "<16 x i32>", SHORT, False),
        ("dot4", "<16 x i32>", "+avx512vnni", False),
        ("dot4", "<16 x i32>", f"{SHORT},+avx512bw", True),
        ("dot4", "<16 x i32>", f"{SHORT},+avx512vnni", True),
        ("dot4", "<8 x i32>", "+sse2", False),
        ("dot4", "<8 x i32>", "+avx2,+fma", True),
        ("dot4", "<8 x i32>", "+avxvnni", True),
        ("dot4", "<4 x i32>", "", True),
        ("dot4", "<2 x i32>", f"{SHORT},+avx512vnni", False),
        ("dot2", "<8 x float>", SHORT, False),
        ("dot2", "<8 x float>", f"{SHORT},+avx512bf16", True),
        ("nibble", "<16 x float>", "+avx512f", True),
        ("nibble", "<8 x float>", SHORT, False),
        ("nibble", "<16 x float>", "+avx2,+fma", False),
        ("widen", "<8 x float>", "+avx2,+fma", False),
        ("widen", "<8 x float>", "+avx2,+fma,+f16c", True),
        ("widen", "float", "+avx512f", True),
        ("ldexp", "<16 x float>", SHORT, True),
        ("ldexp", "<8 x float>", SHORT, False),
        ("ldexp by integer", "<8 x float>", SHORT, True),
        ("ldexp by integer", "<8 x float>", "+avx2,+fma", False),
    ],
)
def test_features_of_their_own_bring_instructions(name: str, kind: str, features: str, there: bool):
    assert (describe(TRIPLE, "", features).instruction(name, kind) is not None) is there


def test_every_processor_has_a_fence_and_a_pause():
    assert FAMILY.named["sse2"].instruction("fence") and FAMILY.named["sse2"].instruction("pause")


@pytest.mark.parametrize(
    ("kind", "features", "mnemonic"),
    [
        ("<16 x i32>", f"{SHORT},+avx512bw", "vpmaddwd"),
        ("<16 x i32>", f"{SHORT},+avx512bw,+avx512vnni", "vpdpbusd"),
        ("<8 x i32>", "+avx2,+avxvnni", "vpdpbusd"),
        ("<8 x i32>", "+avx2", "vpmaddwd"),
    ],
)
def test_bytes_are_multiplied_by_one_instruction_where_there_is_one(kind: str, features: str, mnemonic: str):
    instruction = describe(TRIPLE, "", features).instruction("dot4", kind)
    assert instruction is not None and mnemonic in instruction.mnemonics
