"""CUDA C to cubins, without a GPU."""

from __future__ import annotations

import pytest

from graphc.base.errors import CompileError
from graphc.codegen.cuda import nvrtc
from graphc.codegen.cuda.nvrtc import Resources, compile_cubin, compile_ptx, resources, version
from graphc.codegen.machine.cuda.facts import NAMES

TEXT = """
extern "C" __global__ void __launch_bounds__(256) twice(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float tile[256];
  const int i = blockIdx.x * 256 + threadIdx.x;
  tile[threadIdx.x] = x[i];
  __syncthreads();
  y[i] = tile[255 - threadIdx.x] * 2.0f + 1.0f;
}
"""


@pytest.mark.parametrize("arch", NAMES)
def test_a_kernel_for_every_architecture(arch: str):
    found = compile_cubin(TEXT, arch)
    assert found.image[:4] == b"\x7fELF" and set(found.kernels) == {"twice"}
    taken = found.kernels["twice"]
    assert 0 < taken.registers <= 32 and taken.shared == 1024 and taken.spilled == taken.stack == 0


def test_products_and_sums_are_not_contracted():
    text = compile_ptx(TEXT)
    assert "mul" in text and "fma.rn.f32" not in text
    assert version() >= (12, 0)


def test_what_the_compiler_says_is_told():
    with pytest.raises(CompileError, match=r"cannot compile[\s\S]*undefined_name"):
        compile_cubin('extern "C" __global__ void f(int* x) { x[0] = undefined_name; }')
    with pytest.raises(CompileError, match="arch"):
        compile_cubin(TEXT, "sm_1")


def test_the_log_is_read():
    log = """ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 1024 bytes smem"""
    assert resources(log) == {"k": Resources(40, 1024, 12, 16)}


def test_without_the_library(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(nvrtc, "_folders", lambda: iter(()))
    monkeypatch.setattr(nvrtc, "find_library", lambda name: None)
    nvrtc._library.cache_clear()
    try:
        with pytest.raises(CompileError, match=r"NVRTC is not installed[\s\S]*\[cuda\]"):
            compile_cubin(TEXT)
    finally:
        nvrtc._library.cache_clear()
