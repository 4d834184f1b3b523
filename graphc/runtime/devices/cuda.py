"""GPUs through cupy: memory from its pool, one stream per device, code, launches, recorded graphs."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError, CompileError, DeviceError, MemoryLimitError
from graphc.base.installation import install_command
from graphc.files.product_descriptor import as_descriptor
from graphc.runtime.devices.cublaslt import WORKSPACE, CublasLt
from graphc.runtime.devices.interface import MemoryStats

OLDEST_CUPY = 14
"""Oldest supported major version of cupy."""
INSTALL_NCCL = "install NCCL: pip install nvidia-nccl-cu13"
TARGETS = {(8, 0): "sm_80", (9, 0): "sm_90a", (10, 0): "sm_100"}
"""Target of generated code by compute capability. The code runs on GPUs of the same major and at least that minor
number."""
STAGED = 16 << 20
"""Bytes of pinned memory that a transfer uses at a time."""
FREE_SHARED = 48 * 1024
"""Bytes of shared memory that a kernel has without a request. Documented: CUDA C++ programming guide, compute
capabilities."""
_MAX_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""
_IN, _OUT, _WITHIN = 1, 2, 3
"""cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice."""
_NO_DEVICE, _OLD_DRIVER = 100, 35
"""cudaErrorNoDevice, cudaErrorInsufficientDriver."""


def _install_cupy() -> str:
    return f"install cupy: {install_command('cuda')}; device='cuda-emu' runs the same code slowly"


def cupy() -> Any:
    """Return the module cupy; raises DeviceError if it is not installed, too old, or built for other GPUs."""
    try:
        import cupy as cupy_module  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
            raise DeviceError("GPUs are used through cupy, which is not installed", remedy=_install_cupy()) from None
        raise DeviceError(f"cupy cannot be loaded: {error}", remedy=_install_cupy()) from error
    version = str(getattr(cupy_module, "__version__", "0"))
    if int(version.partition(".")[0]) < OLDEST_CUPY:
        raise DeviceError(f"cupy {version} is too old, {OLDEST_CUPY} or newer is needed", remedy=_install_cupy())
    if cupy_module.cuda.runtime.is_hip:
        raise DeviceError("this cupy is made for ROCm, GPUs that run CUDA are needed", remedy=_install_cupy())
    return cupy_module


def nccl() -> Any:
    """Return cupy's module for NCCL; raises DeviceError if cupy or NCCL is not installed."""
    cupy()
    try:
        from cupy.cuda import nccl as nccl_module  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise DeviceError(f"cupy has no NCCL: {error}", remedy=INSTALL_NCCL) from error
    if not getattr(nccl_module, "available", True):
        raise DeviceError("collectives of GPUs need NCCL, which cupy does not find", remedy=INSTALL_NCCL)
    return nccl_module


def count() -> int:
    """Return the number of usable GPUs; 0 if none can be used."""
    try:
        return _count(cupy())
    except DeviceError:
        return 0


def _count(library: Any) -> int:
    """Return the number of GPUs; raises DeviceError, which names what is missing, if it is 0."""
    runtime = library.cuda.runtime
    try:
        devices = int(runtime.getDeviceCount())
    except RuntimeError as error:
        raise _missing(runtime, error) from error
    if not devices:
        raise _missing(runtime, None)
    return devices


def _missing(runtime: Any, error: Any) -> DeviceError:
    """Return the error that says why no GPU can be used."""
    status = getattr(error, "status", _NO_DEVICE)
    if status == _OLD_DRIVER:
        driver, needed = int(runtime.driverGetVersion()), int(runtime.runtimeGetVersion())
        if not driver:
            return DeviceError(
                "there is no NVIDIA driver: libcuda.so.1 was not found",
                remedy="install the GPU's driver, or start the container with --gpus all; "
                "device='cuda-emu' runs the same code slowly",
            )
        return DeviceError(
            f"the NVIDIA driver is too old: it knows CUDA {_version(driver)}, cupy needs CUDA {_version(needed)}",
            remedy=f"install a newer driver, or cupy for CUDA {driver // 1000}: pip install cupy-cuda{driver // 1000}x",
        )
    if status == _NO_DEVICE:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        hidden = "" if visible is None else f" (CUDA_VISIBLE_DEVICES is {visible!r})"
        return DeviceError(
            f"the NVIDIA driver finds no GPU{hidden}", remedy="pass device='cuda-emu', which runs the same code slowly"
        )
    return DeviceError(f"GPUs cannot be used: {error}", remedy="run nvidia-smi to see the driver's state")


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def target_of(capability: tuple[int, int]) -> str:
    """Return the target for a compute capability; raises DeviceError if there is none."""
    names = [name for (major, minor), name in TARGETS.items() if major == capability[0] and minor <= capability[1]]
    if not names:
        supported = ", ".join(f"{major}.{minor}" for major, minor in TARGETS)
        raise DeviceError(
            f"GPUs of compute capability {capability[0]}.{capability[1]} are not supported",
            remedy=f"use a GPU of {supported}",
        )
    return names[-1]


class driver_errors:
    """Turn errors of the driver into DeviceError. A class, because every launch passes through it and it must be
    fast."""

    __slots__ = ("_what",)

    def __init__(self, what: str):
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, RuntimeError) and hasattr(error, "status"):
            raise DeviceError(f"{self._what}: {error}") from error


class CudaMemory:
    """GPU memory from cupy's pool, returned to the pool when collected."""

    __slots__ = ("__weakref__", "_pointer", "address", "nbytes")

    def __init__(self, pointer: Any, nbytes: int):
        self._pointer = pointer
        self.address = int(pointer.ptr)
        self.nbytes = nbytes


class CudaFunction:
    """A kernel; keeps its module alive."""

    __slots__ = ("function", "module", "shared", "symbol")

    def __init__(self, module: Any, function: Any, symbol: str):
        self.module = module
        self.function = function
        self.symbol = symbol
        self.shared = FREE_SHARED
        """Bytes of dynamic shared memory that the kernel may use."""


class CudaModule:
    """A loaded cubin."""

    def __init__(self, module: Any, device: CudaDevice):
        self._module = module
        self._device = device

    def function(self, symbol: str) -> CudaFunction:
        """Return the kernel of that symbol; raises ArtifactError if the module has none."""
        try:
            with self._device.current():
                return CudaFunction(self._module, self._module.get_function(symbol), symbol)
        except RuntimeError as error:
            raise ArtifactError(f"the code has no kernel {symbol}: {error}") from error


class CudaEvent:
    """A position in a stream's order of work."""

    def __init__(self, library: Any, event: Any):
        self._library = library
        self.event = event

    def synchronize(self) -> None:
        """Wait until all earlier work is done."""
        with driver_errors("work on the GPU has failed"):
            self.event.synchronize()

    def is_done(self) -> bool:
        """Return whether all earlier work is done."""
        return bool(self.event.done)

    def milliseconds_since(self, earlier: CudaEvent) -> float:
        """Return the GPU's time between an earlier event and this one."""
        return float(self._library.cuda.get_elapsed_time(earlier.event, self.event))


class CudaStream:
    """Second stream of a device. Its work is ordered with the device's only on request."""

    def __init__(self, library: Any, device: CudaDevice):
        self._library, self._device = library, device
        self._stream = library.cuda.Stream(non_blocking=True)

    @property
    def address(self) -> int:
        """Handle of the stream, a cudaStream_t."""
        return int(self._stream.ptr)

    def follow(self) -> None:
        """Make later work of this stream wait for all earlier work of the device."""
        self._stream.wait_event(self._device.cupy_stream.record(self._library.cuda.Event()))

    def lead(self) -> None:
        """Make later work of the device wait for all earlier work of this stream."""
        self._device.cupy_stream.wait_event(self._stream.record(self._library.cuda.Event()))


class CudaGraph:
    """Recorded work, with the functions it launches."""

    def __init__(self, graph: Any, device: CudaDevice, held: list[Any]):
        self._graph = graph
        self._device = device
        self._held = held

    def launch(self) -> None:
        """Repeat the recorded work on the device's stream."""
        with driver_errors("a recorded graph could not be launched"), self._device.current():
            self._graph.launch(self._device.cupy_stream)

    def __del__(self) -> None:
        # CUDA does not document that a graph may be freed while it runs. At the process's end the driver may be gone.
        with suppress(Exception):
            self._device.synchronize()


class _Thread(threading.local):
    """State of a device per thread."""

    has_context = False
    """Whether driver calls of this thread find the device's context."""
    stream: Any = None
    """Stream of the recording in progress, if any."""
    held: list[Any]
    """Functions launched during the recording."""


class CudaDevice:
    """A GPU: see interface.Device. All work is done in order on one stream, which waits for no other."""

    takes = "cubin"

    def __init__(self, index: int = 0):
        library = cupy()
        devices = _count(library)
        if index >= devices:
            names = ", ".join(f"cuda:{i}" for i in range(devices))
            raise DeviceError(f"there is no GPU cuda:{index}", remedy=f"pass one of {names}")
        self._cupy = library
        self._runtime, self._driver = library.cuda.runtime, library.cuda.driver
        self._device = library.cuda.Device(index)
        self._thread = _Thread()
        self.index = index
        self.name = f"cuda:{index}"
        with driver_errors(f"{self.name} cannot be used"), self.current():
            self.facts = self._runtime.getDeviceProperties(index)
            self.capability = (int(self.facts["major"]), int(self.facts["minor"]))
            self.target = target_of(self.capability)
            self.cupy_stream = library.cuda.Stream(non_blocking=True)
        # Reentrant: the garbage collector may free memory in the thread that holds the lock.
        self._lock = threading.RLock()
        self._counts = [0, 0, 0]
        """Bytes that are allocated, their peak, and the number of allocations."""
        self._products: Any = None

    @property
    def stream(self) -> int:
        """Handle of the stream, a cudaStream_t."""
        return int(self.cupy_stream.ptr)

    def current(self) -> Any:
        """Return a context in which the device is the current one of this thread."""
        if not self._thread.has_context:
            # NOTE: the driver launches kernels. It finds the context of a device in a thread only after a runtime
            # call in that thread; choosing the device is not enough.
            with self._device:
                self._runtime.memGetInfo()
            self._thread.has_context = True
        return self._device

    # ---- memory

    def allocate(self, nbytes: int) -> CudaMemory:
        """Return new memory; raises MemoryLimitError if there is not enough."""
        if nbytes < 0:
            raise ArgumentError(f"memory cannot have {nbytes} bytes")
        self._refuse_recording("allocations")
        try:
            # The pool reuses freed memory only on its own stream, where work stays in order.
            with self.current(), self.cupy_stream:
                memory = CudaMemory(self._cupy.cuda.alloc(nbytes), nbytes)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            allocated, _, number = self._counts
            raise MemoryLimitError(
                f"{self.name} has no {nbytes} bytes left; {number} arrays of graphc take {allocated} bytes ({error})"
            ) from error
        with self._lock:
            self._counts[0] += nbytes
            self._counts[1] = max(self._counts[:2])
            self._counts[2] += 1
        weakref.finalize(memory, _forget, self._counts, self._lock, nbytes).atexit = False
        return memory

    def copy_in(self, address: int, array: np.ndarray) -> None:
        """Write a host array through pinned memory, from which the GPU reads it later."""
        self._refuse_recording("transfers")
        source = np.ascontiguousarray(array)
        with driver_errors("a copy to the GPU has failed"), self.current():
            for start in range(0, source.nbytes, STAGED):
                size = min(STAGED, source.nbytes - start)
                pinned = self._cupy.cuda.alloc_pinned_memory(size)
                ctypes.memmove(int(pinned.ptr), source.ctypes.data + start, size)
                self._runtime.memcpyAsync(address + start, int(pinned.ptr), size, _IN, self.stream)
                self._cupy.cuda.pinned_memory._add_to_watch_list(self.cupy_stream.record(), pinned)

    def copy_out(self, address: int, array: np.ndarray) -> None:
        """Fill a host array through pinned memory."""
        self._refuse_recording("transfers")
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise ArgumentError("a copy to the host fills arrays that are C-contiguous and can be written to")
        with driver_errors("a copy from the GPU, or work before it, has failed"), self.current():
            for start in range(0, array.nbytes, STAGED):
                size = min(STAGED, array.nbytes - start)
                pinned = self._cupy.cuda.alloc_pinned_memory(size)
                self._runtime.memcpyAsync(int(pinned.ptr), address + start, size, _OUT, self.stream)
                self.cupy_stream.synchronize()
                ctypes.memmove(array.ctypes.data + start, int(pinned.ptr), size)

    def copy(self, destination: int, source: int, nbytes: int) -> None:
        """Copy within the GPU."""
        if nbytes:
            with driver_errors("a copy on the GPU has failed"), self.current():
                self._runtime.memcpyAsync(destination, source, nbytes, _WITHIN, self._now())

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        """Set every byte of a range."""
        if nbytes:
            with driver_errors("memory of the GPU could not be set"), self.current():
                self._runtime.memsetAsync(address, byte, nbytes, self._now())

    def discard(self, address: int, nbytes: int) -> None:
        """Do nothing."""

    def memory_stats(self) -> MemoryStats:
        """Return what graphc has allocated, and what cupy's pool has taken from the system."""
        pool = self._cupy.get_default_memory_pool()
        with self._lock:
            allocated, peak, number = self._counts
        with driver_errors("the GPU does not say how much memory it has"), self.current():
            return MemoryStats(allocated, number, peak, int(pool.total_bytes()), int(self._runtime.memGetInfo()[1]))

    def reset_peak(self) -> None:
        """Reset the peak to the bytes allocated now."""
        with self._lock:
            self._counts[1] = self._counts[0]

    def release_cached(self) -> None:
        """Return the pool's unused memory to the GPU."""
        with driver_errors("memory of the GPU could not be given back"), self.current():
            self._cupy.get_default_memory_pool().free_all_blocks()

    # ---- work

    def load(self, code: str | bytes) -> CudaModule:
        """Return a module of a cubin; raises ArtifactError if the driver refuses it."""
        if not isinstance(code, bytes):
            raise CompileError(f"{self.name} takes a cubin, got {type(code).__name__}")
        module = self._cupy.cuda.function.Module()
        try:
            with self.current():
                module.load(code)
        except RuntimeError as error:
            facts = f"{self.name} ({self.target})"
            raise ArtifactError(f"{facts} does not load the code: {error}") from error
        return CudaModule(module, self)

    def launch(self, function: CudaFunction, grid: int, threads: int, shared: int, arguments: Sequence[int]) -> None:
        """Launch a kernel on the stream of this thread."""
        if grid <= 0:
            return
        words = (ctypes.c_longlong * max(1, len(arguments)))(*arguments)
        start, size = ctypes.addressof(words), ctypes.sizeof(ctypes.c_longlong)
        pointers = (ctypes.c_void_p * max(1, len(arguments)))(*[start + i * size for i in range(len(arguments))])
        with driver_errors(f"kernel {function.symbol} could not be launched"), self.current():
            handle = int(function.function.ptr)
            if shared > function.shared:
                self._driver.funcSetAttribute(handle, _MAX_DYNAMIC_SHARED, shared)
                function.shared = shared
            self._driver.launchKernel(
                *(handle, grid, 1, 1, threads, 1, 1, shared, self._now(), ctypes.addressof(pointers), 0)
            )
        self._hold(function)

    def product(self, descriptor: Any, addresses: Sequence[int]) -> None:
        """Compute a product with cublasLt."""
        if self._products is None:
            self._refuse_recording("the first product of a device")
            self._products = (CublasLt(), self.allocate(WORKSPACE))
        library, workspace = self._products
        with driver_errors("a product of matrices has failed"), self.current():
            library.product(as_descriptor(descriptor), addresses, self._now(), workspace.address, workspace.nbytes)

    def synchronize(self) -> None:
        """Wait until all work is done."""
        with driver_errors("work on the GPU has failed"), self.current():
            self.cupy_stream.synchronize()

    def wait_for(self, stream: int) -> None:
        """Wait until another library's work on its stream, a cudaStream_t, is done."""
        with driver_errors("work of another library on the GPU has failed"), self.current():
            self._runtime.streamSynchronize(stream)

    def event(self) -> CudaEvent:
        """Return an event after all work so far."""
        with driver_errors("an event could not be recorded"), self.current():
            return CudaEvent(self._cupy, self.cupy_stream.record(self._cupy.cuda.Event()))

    def second_stream(self) -> CudaStream:
        """Return a stream for work concurrent with the device's."""
        with driver_errors("a stream could not be made"), self.current():
            return CudaStream(self._cupy, self)

    # ---- recording

    def begin_capture(self) -> None:
        """Record this thread's work on a separate stream."""
        if self._thread.stream is not None:
            raise DeviceError("this thread records a graph already")
        with driver_errors("the GPU does not record"), self.current():
            stream = self._cupy.cuda.Stream(non_blocking=True)
            stream.begin_capture()
        self._thread.stream, self._thread.held = stream, []

    def end_capture(self) -> CudaGraph:
        """Return the recorded work."""
        stream = self._thread.stream
        if stream is None:
            raise DeviceError("this thread records no graph")
        self._thread.stream = None
        with driver_errors("the recorded work does not form a graph"), self.current():
            return CudaGraph(stream.end_capture(), self, self._thread.held)

    def _now(self) -> int:
        """Return the stream of this thread's work."""
        stream = self._thread.stream
        return int(self.cupy_stream.ptr if stream is None else stream.ptr)

    def _hold(self, function: CudaFunction) -> None:
        if self._thread.stream is not None:
            self._thread.held.append(function)

    def _refuse_recording(self, what: str) -> None:
        if self._thread.stream is not None:
            raise DeviceError(f"{what} cannot be recorded in a graph")

    def properties(self) -> dict[str, Any]:
        """Return facts for people."""
        facts = self.facts
        name = facts["name"]
        return {
            "name": name.decode() if isinstance(name, bytes) else str(name),
            "capability": f"{self.capability[0]}.{self.capability[1]}",
            "multiprocessors": int(facts["multiProcessorCount"]),
            "memory": int(facts["totalGlobalMem"]),
            "l2": int(facts["l2CacheSize"]),
            "shared": int(facts["sharedMemPerBlockOptin"]),
            "driver": _version(int(self._runtime.driverGetVersion())),
            "runtime": _version(int(self._runtime.runtimeGetVersion())),
            "cupy": str(self._cupy.__version__),
        }


def _forget(counts: list[int], lock: Any, nbytes: int) -> None:
    with lock:
        counts[0] -= nbytes
        counts[2] -= 1
