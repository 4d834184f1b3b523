"""GPUs through cupy, which a module that writes down its calls stands for; and what is said where one is missing."""

from __future__ import annotations

import importlib
import sys
import threading

import numpy as np
import pytest

from graphc.base.installation import install_command
from graphc.errors import ArgumentError, ArtifactError, CompileError, DeviceError, MemoryLimitError
from graphc.files.product_descriptor import Matrix, ProductDescriptor
from graphc.runtime import devices
from graphc.runtime.devices import cublaslt, cuda
from graphc.runtime.devices.array import empty, from_cuda_array_interface, from_dlpack, from_host
from graphc.runtime.devices.cuda import CudaDevice, target_of
from tests.runtime.devices.fake_cupy import H200, DriverError, FakeCupy


@pytest.fixture
def fake(monkeypatch):
    fake_cupy = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    return fake_cupy


@pytest.fixture(autouse=True)
def no_devices_are_remembered():
    devices._cuda.cache_clear()
    yield
    devices._cuda.cache_clear()


def refused(what, remedy, index=0):
    with pytest.raises(DeviceError, match=what) as raised:
        CudaDevice(index)
    assert remedy in raised.value.remedy
    assert not devices.is_available(f"cuda:{index}")


# ---- first contact


def test_without_cupy(monkeypatch):
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "cupy":
                raise ModuleNotFoundError("No module named 'cupy'", name="cupy")

    for name in [n for n in sys.modules if n == "cupy" or n.startswith("cupy.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    refused("not installed", install_command("cuda"))
    assert devices.count() == 0


def test_a_cupy_that_cannot_be_loaded(monkeypatch):
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "cupy":
                raise ImportError("libcudart.so.13: cannot open shared object file")

    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    refused("libcudart.so.13", "pip install")


def test_a_cupy_of_another_kind(fake):
    fake.__version__ = "13.6.0"
    refused(r"13\.6\.0 is too old", "pip install")
    fake.__version__, fake.cuda.runtime.is_hip = "14.0.1", True
    refused("ROCm", "pip install")


def test_without_a_driver(fake):
    fake.gpus, fake.driver_version = DriverError(35, "cudaErrorInsufficientDriver"), 0
    refused(r"no NVIDIA driver.*libcuda", "--gpus all")
    assert devices.count() == 0


def test_with_an_old_driver(fake):
    fake.gpus, fake.driver_version = DriverError(35, "cudaErrorInsufficientDriver"), 12040
    refused(r"knows CUDA 12\.4, cupy needs CUDA 13\.2", "cupy-cuda12x")


def test_without_a_gpu(fake, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    fake.gpus = DriverError(100, "cudaErrorNoDevice")
    refused("finds no GPU\n", "cuda-emu")
    fake.gpus = 0
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    refused(r"finds no GPU \(CUDA_VISIBLE_DEVICES is '-1'\)", "cuda-emu")


def test_with_another_failure(fake):
    fake.gpus = DriverError(802, "cudaErrorSystemNotReady: system not yet initialized")
    refused("system not yet initialized", "nvidia-smi")


def test_with_a_wrong_number(fake):
    refused("no GPU cuda:2", "one of cuda:0, cuda:1", 2)
    assert devices.count() == 2
    for wrong in ("cuda:x", "cuda:", "gpu", "cuda:-1"):
        with pytest.raises(ArgumentError, match="no device"):
            devices.device_named(wrong)


def test_with_a_gpu_that_is_not_known(fake):
    fake.facts = {**H200, "major": 7, "minor": 5}
    refused(r"compute capability 7\.5", "8.0, 9.0")


def test_capabilities_have_targets():
    targets = {(8, 0): "sm_80", (8, 9): "sm_80", (9, 0): "sm_90a", (10, 0): "sm_100", (10, 3): "sm_100"}
    assert {c: target_of(c) for c in targets} == targets


def test_what_this_machine_says_has_a_remedy():
    """Whatever is missing here, one error says it."""
    if devices.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(DeviceError) as raised:
        devices.device_named("cuda")
    assert raised.value.remedy


# ---- a device


def test_devices_are_opened_once(fake):
    first = devices.device_named("cuda")
    assert first is devices.device_named("cuda:0")
    second = devices.device_named("cuda:1")
    assert (first.name, second.name, second.target, second.takes) == ("cuda:0", "cuda:1", "sm_90a", "cubin")
    assert second.stream // 100 == 2
    facts = first.properties()
    assert (facts["name"], facts["capability"], facts["driver"]) == ("NVIDIA H200", "9.0", "13.2")


def test_memory_is_counted_and_given_back(fake):
    device = CudaDevice(1)
    arrays = [empty(device, (100,), "f32"), empty(device, (0,), "f32")]
    assert fake.calls[-2:] == [("alloc", 400, 1), ("alloc", 0, 1)] and fake.device == 0
    assert device.memory_stats().allocated == 400
    arrays.append(empty(device, (50,), "f32"))
    del arrays[0]
    stats = device.memory_stats()
    assert (stats.allocated, stats.allocations, stats.peak, stats.reserved) == (200, 2, 600, 4096)
    device.reset_peak()
    assert device.memory_stats().peak == 200
    with pytest.raises(MemoryLimitError, match=r"no 4294967296 bytes left; 2 arrays of graphc take 200 bytes"):
        device.allocate(1 << 32)


def test_transfers_go_through_pinned_memory_in_pieces(fake, monkeypatch):
    monkeypatch.setattr(cuda, "STAGED", 64)
    device = CudaDevice()
    host = np.arange(40, dtype=np.float32).reshape(5, 8)
    array = from_host(device, host[:, ::-1])
    stream = device.stream
    pieces = [c for c in fake.calls if c[0] in ("memcpy", "watch")]
    assert pieces == [("memcpy", 64, 1, stream), ("watch",)] * 2 + [("memcpy", 32, 1, stream), ("watch",)]
    fake.calls.clear()
    assert np.array_equal(array.get(), host[:, ::-1])
    assert fake.calls == [
        ("memcpy", n, 2, stream) if i == 0 else ("synchronize", stream) for n in (64, 64, 32) for i in (0, 1)
    ]
    fake.calls.clear()
    copy = array.copy()
    device.fill(array.address, 0, array.nbytes)
    assert fake.calls[-2:] == [("memcpy", 160, 3, stream), ("memset", 160, stream)]
    assert np.array_equal(copy.get(), host[:, ::-1]) and not array.get().any()


def test_kernels_are_launched_with_words(fake):
    device = CudaDevice()
    function = device.load(b"cubin ...").function("scale")
    device.launch(function, 7, 256, 1024, [1 << 40, -3, 5])
    assert fake.calls[-1] == ("launch", 77, (7, 1, 1, 256, 1, 1), 1024, device.stream, (1 << 40, -3, 5))
    before = len(fake.calls)
    device.launch(function, 0, 256, 0, [1, 2, 3])
    assert len(fake.calls) == before, "an empty grid is no launch"
    for _ in range(2):
        device.launch(function, 1, 32, 100 << 10, [0, 0, 0])
    assert [c for c in fake.calls if c[0] == "attribute"] == [("attribute", 77, 8, 100 << 10)]


def test_code_that_does_not_fit_is_refused(fake):
    device = CudaDevice()
    with pytest.raises(ArtifactError, match=r"cuda:0 \(sm_90a\) does not load.*NO_BINARY"):
        device.load(b"ptx")
    with pytest.raises(CompileError, match="takes a cubin"):
        device.load("__global__")
    with pytest.raises(ArtifactError, match="no kernel other"):
        device.load(b"cubin").function("other")


def test_work_is_recorded_on_a_stream_of_its_own(fake):
    device = CudaDevice()
    function = device.load(b"cubin").function("scale")
    memory = empty(device, (4,), "f32")
    device.begin_capture()
    fake.calls.clear()
    device.launch(function, 1, 32, 0, [1, 2, 3])
    device.fill(memory.address, 0, 16)
    for wrong in (lambda: device.allocate(4), lambda: memory.get(), lambda: memory.set(np.zeros(4, np.float32))):
        with pytest.raises(DeviceError, match="cannot be recorded"):
            wrong()
    with pytest.raises(DeviceError, match="records a graph already"):
        device.begin_capture()
    other = threading.Thread(target=lambda: device.launch(function, 2, 32, 0, [1, 2, 3]))
    other.start()
    other.join()
    graph = device.end_capture()
    streams = [(c[0], c[4] if c[0] == "launch" else c[-1]) for c in fake.calls]
    recording = streams[0][1]
    assert recording != device.stream
    assert streams == [("launch", recording), ("memset", recording), ("launch", device.stream), ("end", recording)]
    graph.launch()
    assert fake.calls[-1] == ("graph", device.stream)
    with pytest.raises(DeviceError, match="records no graph"):
        device.end_capture()


def test_errors_of_the_driver_are_told(fake):
    device = CudaDevice()

    def fail(*_):
        raise DriverError(700, "cudaErrorIllegalAddress: an illegal memory access was encountered")

    fake.cuda.runtime.memcpyAsync = fail
    with pytest.raises(DeviceError, match=r"work before it, has failed: cudaErrorIllegalAddress"):
        empty(device, (2,), "f32").get()


def test_products_are_computed_by_cublaslt(fake, monkeypatch):
    calls = []

    class Library:
        def product(self, *arguments):
            calls.append(arguments)

    monkeypatch.setattr(cuda, "CublasLt", Library)
    device = CudaDevice()
    matrix = Matrix("f32", 4, 4, 4)
    product = ProductDescriptor("f32", matrix, matrix, matrix)
    for _ in range(2):
        device.product(product.fields(), [256, 512, 1024])
    ((descriptor, addresses, stream, workspace, nbytes), again) = calls
    assert (descriptor, addresses, stream, nbytes) == (product, [256, 512, 1024], device.stream, cublaslt.WORKSPACE)
    assert again[3] == workspace, "one workspace for all"


def test_memory_of_other_libraries_waits_for_their_work_and_ours(fake):
    device = CudaDevice()
    mine = from_host(device, np.arange(6, dtype=np.float32))

    class Other:
        def __init__(self, stream):
            self.__cuda_array_interface__ = {**mine.__cuda_array_interface__, "stream": stream}

    assert mine.__cuda_array_interface__["stream"] == device.stream
    for stream, waits in ((None, []), (device.stream, []), (1, [("wait", 1)])):
        fake.calls.clear()
        array = from_cuda_array_interface(Other(stream), device)
        assert fake.calls == waits
        fake.calls.clear()
        del array
        assert fake.calls == [("synchronize", device.stream)], "what reads it is done before it is given back"
    calls = []

    class Tensor:
        def __dlpack__(self, **arguments):
            calls.append(arguments)
            return mine.__dlpack__(max_version=arguments["max_version"], stream=device.stream)

        def __dlpack_device__(self):
            return mine.__dlpack_device__()

    assert mine.__dlpack_device__() == (2, 0)
    shared = from_dlpack(Tensor(), device)
    assert calls == [{"stream": device.stream, "max_version": (1, 0)}]
    assert shared.address == mine.address
    fake.calls.clear()
    mine.__dlpack__(stream=1)
    assert fake.calls == [("synchronize", device.stream)], "another stream reads what ours has written"


def test_events_time_the_stream(fake):
    device = CudaDevice()
    first, second = device.event(), device.event()
    assert second.milliseconds_since(first) == 1.5
    device.synchronize()
    assert fake.calls[-1] == ("synchronize", device.stream)


def test_cupy_has_what_is_asked_of_it():
    """The names that this module uses, in the cupy that is installed."""
    cupy = pytest.importorskip("cupy")
    names = [
        *("cuda.runtime." + n for n in ("getDeviceCount", "driverGetVersion", "runtimeGetVersion", "is_hip")),
        *(
            "cuda.runtime." + n
            for n in ("getDeviceProperties", "memGetInfo", "memcpyAsync", "memsetAsync", "streamSynchronize")
        ),
        *("cuda.driver.launchKernel", "cuda.driver.funcSetAttribute", "cuda.memory.OutOfMemoryError"),
        *("cuda.function.Module.load", "cuda.function.Module.get_function", "cuda.get_elapsed_time"),
        *("cuda.pinned_memory._add_to_watch_list", "cuda.alloc", "cuda.alloc_pinned_memory", "get_default_memory_pool"),
        *("cuda." + n for n in ("Device", "Event", "Stream.begin_capture", "Stream.end_capture", "Stream.record")),
        *("cuda.graph.Graph.launch", "cuda.memory.MemoryPool.total_bytes", "cuda.memory.MemoryPointer.ptr"),
        *("cuda.function.Function.ptr", "cuda.driver.CUDADriverError", "cuda.runtime.CUDARuntimeError"),
    ]
    for name in names:
        attribute = cupy
        for attribute_name in name.split("."):
            if not hasattr(attribute, attribute_name):
                attribute = importlib.import_module(f"cupy.{name.rpartition('.')[0]}")
            attribute = getattr(attribute, attribute_name)
