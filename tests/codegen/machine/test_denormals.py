"""Programs that take denormal numbers for zeros, and the mode of their callers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError, CompileError
from graphc.c_library.build import build_library
from graphc.codegen.machine.target import flushing, named_targets, target_named
from tests.c_library.conftest import build_demo, printed, run_tool, tool_or_skip
from tests.native import target_or_skip

_TINY = np.float32(np.finfo(np.float32).tiny)


def _decay(x: Any) -> Any:
    """Square numbers, and bring the squares back to the size of the numbers."""
    small = x * 1e-20
    return small * small * 1e36


def _host_flushes() -> bool:
    return target_named("host").flush_mode is not None


flushes_here = pytest.mark.skipif(not _host_flushes(), reason="the control register of this processor is not known")


@flushes_here
@pytest.mark.parametrize("target", ["host", "sse2", "avx2", "avx512", "neon"])
def test_denormal_operands_and_results_are_zeros(target: str):
    if target != "host":
        target_or_skip(target)
    x = np.array([3.0, -3.0, 1e12], np.float32)
    plain, flushed = (gc.compile(_decay, target=target, flush_denormals=f)(gc.from_numpy(x)) for f in (False, True))
    assert plain.numpy()[:2].all()
    assert (flushed.numpy()[:2] == 0).all()
    assert flushed.numpy()[2] == plain.numpy()[2]
    operand = gc.from_numpy(np.array([_TINY / 4, 1.0], np.float32))
    double = gc.compile(lambda x: x * 4, target=target, flush_denormals=True)
    assert double(operand).numpy().tolist() == [0.0, 4.0]


@flushes_here
@pytest.mark.parametrize("threads", [1, 2])
def test_the_caller_keeps_its_mode(threads: int):
    before = gc.get_num_threads()
    gc.set_num_threads(threads)
    try:
        x = np.full(1 << 20, 2.0, np.float32)
        flushed = gc.compile(_decay, flush_denormals=True)(gc.from_numpy(x)).numpy()
        assert not flushed.any()
        assert np.multiply(_TINY, np.float32(0.5)) > 0
        assert gc.compile(_decay)(gc.from_numpy(x)).numpy().all()
    finally:
        gc.set_num_threads(before)


@flushes_here
def test_bits_are_the_same_without_denormals():
    gc.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 4)).eval(), gc.randn(8, 64)
    with gc.no_grad():
        plain, flushed = (gc.compile(net, flush_denormals=f)(x).numpy() for f in (False, True))
    assert np.array_equal(plain, flushed)


class Decay(nn.Module):
    """Squares of small numbers."""

    def forward(self, x: Any) -> Any:
        return _decay(x)


@pytest.mark.parametrize("flushes", [False, True])
def test_an_arm_library_flushes_under_emulation(flushes: bool, tmp_path: Path):
    compiler, emulator = tool_or_skip("aarch64-linux-gnu-gcc"), tool_or_skip("qemu-aarch64")
    files = {"path": tmp_path / "decay.so", "emit": ("so", "h", "c"), "target": "neon", "realtime": True}
    library = build_library(Decay(), gc.ones(8), **files, flush_denormals=flushes)
    program = build_demo(library, compiler=compiler)
    (values,) = printed(run_tool(emulator, "-L", "/usr/aarch64-linux-gnu", program, "--all")).values()
    assert any(float(v) != 0 for v in values) is not flushes


@pytest.mark.parametrize("target", [n for n, t in named_targets().items() if t.gpu is None and t.flush_mode is None])
def test_other_machines_refuse(target: str):
    with pytest.raises(CompileError, match="flushes denormal numbers"):
        flushing(target_named(target))


def test_devices_refuse():
    with pytest.raises(ArgumentError, match="'cuda-emu' flushes no denormals"):
        gc.compile(_decay, device="cuda-emu", flush_denormals=True)
