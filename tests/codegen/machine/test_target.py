"""Targets: names, facts of their vector units, and the machines that LLVM makes of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphc.base.dtypes import bool_, float32, float64, int8
from graphc.codegen import machine
from graphc.codegen.machine.target import Target, families, host_target, named_targets, target_machine, target_named
from graphc.errors import CompileError


@pytest.mark.parametrize(
    "name,lanes,registers,masked",
    [
        ("avx512", 16, 32, True),
        ("avx2", 8, 16, True),
        ("sse2", 4, 16, False),
        ("neon", 4, 32, False),
        ("neon-dotprod", 4, 32, False),
    ],
)
def test_named_targets(name: str, lanes: int, registers: int, masked: bool):
    target = target_named(name)
    assert (target.lanes(float32), target.registers, target.masked) == (lanes, registers, masked)
    assert target.lanes(float64) == lanes // 2 and target.lanes(int8) == target.lanes(bool_) == lanes * 4
    assert target.fma == (name != "sse2")


def test_integers_may_have_registers_of_their_own():
    assert target_named("cortex-m4").registers_of(float32) == 16 and target_named("cortex-m4").registers_of(int8) == 6
    assert target_named("avx2").registers_of(float32) == target_named("avx2").registers_of(int8) == 16


def test_every_name_has_a_machine():
    for name in (name for name, target in named_targets().items() if target.gpu is None):
        assert target_machine(target_named(name)).triple.startswith(target_named(name).triple.split("-")[0])


def test_host_is_this_machine():
    assert target_named("host") is host_target()
    assert host_target().vector_bytes in (16, 32, 64)


def test_unknown_target():
    with pytest.raises(CompileError, match="unknown target 'pdp11'") as caught:
        target_named("pdp11")
    assert "avx2" in str(caught.value.remedy)


def test_a_triple_without_a_backend():
    target = Target(triple="pdp11-unknown-none", registers=8)
    with pytest.raises(CompileError, match="no target for pdp11"):
        target_machine(target)


def test_features_are_whole_words():
    assert target_named("avx2").has("avx") and not target_named("sse2").has("sse")


def test_a_family_is_a_package_beside_the_others():
    """Nothing names the packages: what lies in the folder is found."""
    folder = Path(machine.__file__).parent
    packages = {path.parent.name for path in folder.glob("*/facts.py")}
    assert packages == {"x86_64", "aarch64", "riscv32", "riscv64", "thumb", "wasm32", "cuda"} and len(
        families()
    ) == len(packages)
    sources = [p.read_text() for p in folder.glob("*.py")]
    assert not any(f"machine.{name}" in source for name in packages for source in sources)


def test_facts_of_other_architectures_are_not_imported_for_this_machine():
    code = "import sys; from graphc.codegen.machine.target import host_target; host_target(); "
    code += "print(sum(name.startswith('graphc.codegen.machine.') and name.endswith('.facts') for name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "1"
