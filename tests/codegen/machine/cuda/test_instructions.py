"""Instructions of GPUs."""

from __future__ import annotations

from graphc.codegen.machine.cuda.instructions import INSTRUCTIONS
from graphc.codegen.machine.target import target_named


def test_kernels_ask_for_none_by_name():
    assert INSTRUCTIONS == ()
    assert target_named("sm_90").instruction("widen", "float") is None
