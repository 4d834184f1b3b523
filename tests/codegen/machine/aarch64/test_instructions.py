"""Instructions of aarch64: what all of its processors have."""

from __future__ import annotations

from graphc.codegen.machine.aarch64.facts import FAMILY


def test_every_processor_widens_f16_and_pauses():
    neon = FAMILY.named["neon"]
    assert neon.instruction("widen", "<4 x float>") and neon.instruction("pause")
    assert neon.instruction("dot4", "<4 x i32>") is None
