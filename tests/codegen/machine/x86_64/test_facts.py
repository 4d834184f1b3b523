"""Facts of x86-64: what features say about vectors."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.x86_64.facts import FAMILY, describe

TRIPLE = "x86_64-unknown-linux-gnu"


@pytest.mark.parametrize(
    ("features", "same"),
    [
        ("+sse2,+sse4.1", "sse2"),
        ("+avx,+avx2", "sse2"),  # no fused multiply-add
        ("+avx2,+fma,+f16c", "avx2"),
        ("+avx2,+fma,+f16c,+avx512f", "avx2"),  # no short vectors of AVX-512, as on Knights Landing
        ("+avx2,+fma,+avx512f,+avx512vl", "avx512"),
    ],
)
def test_features_decide_which_vectors_there_are(features: str, same: str):
    found, named = describe(TRIPLE, "", features), FAMILY.named[same]
    for fact in ("vector_bytes", "registers", "streams", "masked", "fma", "l1_bytes", "l2_bytes"):
        assert getattr(found, fact) == getattr(named, fact), fact
    assert found.costs == named.costs


@pytest.mark.parametrize("feature", ["avx512vnni,+avx512vl", "avxvnni"])
def test_bytes_are_widened_where_no_instruction_multiplies_quads(feature: str):
    plain = describe(TRIPLE, "", "+avx2,+fma")
    assert plain.costs.rewrites.byte_pairs
    assert not describe(TRIPLE, "", f"+avx2,+fma,+{feature}").costs.rewrites.byte_pairs


def test_threads_wait_by_the_system_call_of_linux_and_cycles_are_counted():
    waits = FAMILY.named["sse2"].waits
    assert waits is not None and waits.futex == 202
    assert FAMILY.named["sse2"].cycle_fence


def test_code_for_macos_is_that_of_avx2_without_threads():
    macos, linux = FAMILY.named["macos-avx2"], FAMILY.named["avx2"]
    assert macos.costs == linux.costs and macos.features == linux.features
    assert macos.waits is None and macos.detection("detect") == linux.detection("detect") != ""
    assert "macos-avx512" not in FAMILY.named
