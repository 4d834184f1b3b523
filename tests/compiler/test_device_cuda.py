"""Programs for GPUs through the code that drives them, where a module in the place of cupy executes the kernels."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.codegen.cuda import nvrtc
from graphc.compiler import cache
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.compiler.device import compile_for_device, compile_graph_for
from graphc.errors import CompileError
from graphc.runtime.devices.array import DeviceArray, from_host
from graphc.runtime.devices.cuda import CudaDevice
from tests.compiler.graphs import arguments, counter, lookup, mlp
from tests.runtime.devices.fake_cupy import CODE, installed


@pytest.fixture
def fake(monkeypatch):
    return installed(monkeypatch)


def attention():
    def function(x, w):
        q, k, v = (x @ w).chunk(3, dim=-1)
        return nn.functional.softmax(q @ k.transpose(-1, -2), dim=-1) @ v

    return gc.trace(function, gc.ones(2, 5, 8), gc.ones(8, 24))


def large():
    return gc.trace(lambda x, a, b: (x @ a).relu() @ b, gc.ones(128, 160), gc.ones(160, 192), gc.ones(192, 128))


@pytest.mark.parametrize("make", [mlp, counter, lookup, attention, large])
def test_programs_run(fake, make):
    device, graph = CudaDevice(), make()
    native, program = load_compiled(compile_graph(graph)), compile_for_device(graph, device)
    arrays = [a / 8 for a in arguments(graph)]
    count = len(native.inputs)
    plain = [a.copy() for a in arrays[count:]]
    bound = tuple(from_host(device, a) for a in plain)
    fake.calls.clear()
    for call in range(5):
        found = program.run([from_host(device, a) for a in arrays[:count]], bound)
        expected = native.run(arrays[:count], plain)
        for a, b in zip((*found, *bound), (*expected, *plain), strict=True):
            assert isinstance(a, DeviceArray)
            np.testing.assert_allclose(a.get(), b, rtol=1e-4, atol=1e-5, err_msg=str(call))
    streams = [c[-1] for c in fake.calls if c[0] in ("launch", "product")]
    recorded = [s for s in streams if s != device.stream]
    count = len(program.plan.launches)
    if count > 1:
        assert program.replays == 3 and len(recorded) == count and len(streams) == 3 * count
    else:
        assert program.replays == 0 and not recorded
    assert any(c[0] == "product" for c in fake.calls) == (make is large)


def test_arrays_of_the_host_are_brought(fake):
    device, graph = CudaDevice(), mlp()
    native, program = load_compiled(compile_graph(graph)), compile_for_device(graph, device)
    arrays = arguments(graph)
    for _ in range(4):
        for a, b in zip(program.run(arrays[:1], arrays[1:]), native.run(arrays[:1], arrays[1:]), strict=True):
            assert isinstance(a, np.ndarray)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_strided_arrays_are_copied_by_a_kernel(fake):
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    array = from_host(CudaDevice(), host).T[::-1].contiguous()
    assert np.array_equal(array.get(), host.T[::-1])
    assert ("launch", "gc_strided_copy_4") in [c[:2] for c in fake.calls]


def test_code_comes_from_the_cache_on_disk(fake, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path))
    device = CudaDevice()
    first = compile_graph_for(mlp(), device)
    assert first.object.startswith(CODE) and first.manifest.target.cpu == "sm_90a"
    monkeypatch.setattr(nvrtc, "compile_cubin", None)
    assert compile_graph_for(mlp(), device).object == first.object
    assert cache.current().usage().entries == 1
    monkeypatch.setattr(nvrtc, "version", lambda: (99, 0))
    with pytest.raises(TypeError):  # made by another compiler: made anew
        compile_graph_for(mlp(), device)


def test_without_nvrtc_it_is_said_what_to_install(fake, monkeypatch):
    def missing(*_):
        raise CompileError("NVRTC is not there", remedy="install NVRTC")

    monkeypatch.setattr(nvrtc, "compile_cubin", missing)
    with pytest.raises(CompileError, match="NVRTC") as raised:
        compile_for_device(mlp(), CudaDevice())
    assert "install NVRTC" in raised.value.remedy
