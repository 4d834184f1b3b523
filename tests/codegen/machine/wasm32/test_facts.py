"""Facts of WebAssembly: vectors of 16 bytes, multiply-add in one variant only, no threads, static addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import graphc
from graphc.codegen.machine.target import target_named
from graphc.codegen.machine.wasm32.facts import FAMILY
from graphc.compiler.stages import Stages
from tests.compiler.graphs import mlp


def test_vectors_have_16_bytes_and_addresses_are_static():
    target = FAMILY.named["wasm"]
    assert (target.vector_bytes, target.registers, target.fma, target.masked) == (16, 12, False, False)
    assert target.is_wasm and target.relocation_model == "static" and not target.has_pool and target.reader is None
    assert not target_named("avx2").is_wasm and target_named("avx2").relocation_model == "pic"


def test_variants_have_multiply_add_or_no_vectors():
    texts = {name: Stages(mlp(), target=target).text("asm") for name, target in FAMILY.named.items()}
    assert [name for name, text in texts.items() if "call\tf32x4.relaxed_madd" in text] == ["wasm-relaxed"]
    assert [name for name, text in texts.items() if "f32x4" in text] == ["wasm", "wasm-relaxed"]
    assert "v128" not in texts["wasm-scalar"]


def test_products_take_vectors_and_call_no_function():
    text = Stages(mlp(), target=target_named("wasm")).text("asm")
    assert "f32x4.mul" in text and "f32x4.add" in text
    assert {*re.findall(r"^\s+call\s+([\w.]+)", text, re.MULTILINE)} <= {
        *re.findall(r"^([\w.]+):$", text, re.MULTILINE)
    }


def test_vectors_of_f32_become_f64_and_back_as_whole_vectors():
    text = assembly(lambda x: x.exp())
    assert "f64x2.promote_low_f32x4" in text and "f32x4.demote_f64x2_zero" in text
    assert "f64.promote_f32" not in text and "f32.demote_f64" not in text


def assembly(function: Callable[[Any], Any]) -> str:
    graph = graphc.trace(function, graphc.zeros(8, 16))
    return Stages(graph, target=target_named("wasm")).text("asm")
