"""Facts of GPUs."""

from __future__ import annotations

import pytest

from graphc.base.errors import CompileError
from graphc.codegen.machine.cuda.costs import CUDA
from graphc.codegen.machine.cuda.facts import FAMILY, NAMES, SHARED_BYTES, is_gpu
from graphc.codegen.machine.target import named_targets, target_machine, target_named
from graphc.ir.kernel.statements import WARP


@pytest.mark.parametrize("name", NAMES)
def test_every_architecture_is_a_target(name: str):
    found = target_named(name)
    assert is_gpu(found) and found.cpu == name and found.costs is CUDA and found.fma
    assert named_targets()[name] is FAMILY.named[name]


def test_processors_are_none():
    assert not any(is_gpu(target_named(name)) for name in ("host", "avx2", "neon"))
    assert SHARED_BYTES % (4 * WARP) == 0


@pytest.mark.parametrize("name", NAMES)
def test_what_a_gpu_has_is_one_record(name: str):
    found = target_named(name).gpu
    assert found is not None and found.warp == WARP and found.block_threads % WARP == 0
    assert SHARED_BYTES < found.block_shared < found.processor_shared
    assert found.processor_registers >= 255 * 256 and found.memory_rate > 1e12
    with pytest.raises(CompileError, match="CUDA C, not LLVM's"):
        target_machine(target_named(name))


def test_facts_of_gpus_are_no_part_of_what_names_a_target():
    """They follow from the architecture, and names of files in the cache are made of targets' texts."""
    assert "processors" not in repr(target_named("sm_90"))
    assert target_named("avx2").gpu is None
