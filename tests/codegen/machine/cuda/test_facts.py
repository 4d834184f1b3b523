"""Facts of GPUs."""

from __future__ import annotations

import pytest

from graphc.codegen.machine.cuda.costs import CUDA
from graphc.codegen.machine.cuda.facts import FAMILY, NAMES, SHARED_BYTES, is_gpu
from graphc.codegen.machine.target import named_targets, target_named
from graphc.ir.kernel.statements import WARP


@pytest.mark.parametrize("name", NAMES)
def test_every_architecture_is_a_target(name: str):
    found = target_named(name)
    assert is_gpu(found) and found.cpu == name and found.costs is CUDA and found.fma
    assert named_targets()[name] is FAMILY.named[name]


def test_processors_are_none():
    assert not any(is_gpu(target_named(name)) for name in ("host", "avx2", "neon"))
    assert SHARED_BYTES % (4 * WARP) == 0
