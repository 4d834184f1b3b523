"""Instructions of riscv64: those that can pause do."""

from __future__ import annotations

import pytest
from llvmlite import binding

from graphc.codegen.llvm.build import emit_assembly
from graphc.codegen.llvm.thread_pool import emit_pool
from graphc.codegen.machine.riscv64.facts import FAMILY, describe
from graphc.codegen.machine.riscv64.instructions import GO_ON, PAUSE


@pytest.mark.skipif(binding.llvm_version_info[0] < 22, reason="LLVM 20 has no instruction that pauses RISC-V")
def test_a_processor_pauses_where_it_can():
    plain = FAMILY.named["rv64gc"]
    assert plain.instruction("pause") is GO_ON
    able = describe(plain.triple, plain.cpu, f"{plain.features},+zihintpause")
    assert able.instruction("pause") is PAUSE
    assert "\tpause\n" in emit_assembly(emit_pool(able), able)
    assert "\tpause\n" not in emit_assembly(emit_pool(plain), plain)
