"""GPUs, through cupy: memory from its pool, one stream for each device, code, launches, recorded graphs."""

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
"""Major version of cupy whose interface this module knows."""
INSTALL_NCCL = "install NCCL: pip install nvidia-nccl-cu13"
TARGETS = {(8, 0): "sm_80", (9, 0): "sm_90a", (10, 0): "sm_100"}
"""What code is made for, by compute capability: it runs on GPUs of the same major and no lower minor number."""
STAGED = 16 << 20
"""Bytes of pinned memory that a transfer goes through at a time."""
FREE_SHARED = 48 * 1024
"""Bytes of shared memory that a kernel has without asking. Documented: CUDA C++ programming guide, compute
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
    """The module cupy; raises DeviceError where it is not installed, too old, or made for other GPUs."""
    try:
        import cupy as found  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
            raise DeviceError("GPUs are used through cupy, which is not installed", remedy=_install_cupy()) from None
        raise DeviceError(f"cupy cannot be loaded: {error}", remedy=_install_cupy()) from error
    version = str(getattr(found, "__version__", "0"))
    if int(version.partition(".")[0]) < OLDEST_CUPY:
        raise DeviceError(f"cupy {version} is too old, {OLDEST_CUPY} or newer is needed", remedy=_install_cupy())
    if found.cuda.runtime.is_hip:
        raise DeviceError("this cupy is made for ROCm, GPUs that run CUDA are needed", remedy=_install_cupy())
    return found


def nccl() -> Any:
    """The module of cupy for NCCL; raises DeviceError where cupy or NCCL is not installed."""
    cupy()
    try:
        from cupy.cuda import nccl as found  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise DeviceError(f"cupy has no NCCL: {error}", remedy=INSTALL_NCCL) from error
    if not getattr(found, "available", True):
        raise DeviceError("collectives of GPUs need NCCL, which cupy does not find", remedy=INSTALL_NCCL)
    return found


def count() -> int:
    """How many GPUs there are; 0 where none can be used."""
    try:
        return _count(cupy())
    except DeviceError:
        return 0


def _count(library: Any) -> int:
    """How many GPUs there are; raises DeviceError that says what is missing where there is none."""
    runtime = library.cuda.runtime
    try:
        found = int(runtime.getDeviceCount())
    except RuntimeError as error:
        raise _missing(runtime, error) from error
    if not found:
        raise _missing(runtime, None)
    return found


def _missing(runtime: Any, error: Any) -> DeviceError:
    """What says why no GPU can be used."""
    status = getattr(error, "status", _NO_DEVICE)
    if status == _OLD_DRIVER:
        driver, needed = int(runtime.driverGetVersion()), int(runtime.runtimeGetVersion())
        if not driver:
            return DeviceError(
                "there is no NVIDIA driver: libcuda.so.1 was not found",
                remedy="the GPU's driver, in a container --gpus all; device='cuda-emu' runs the same code slowly",
            )
        return DeviceError(
            f"the NVIDIA driver is too old: it knows CUDA {_version(driver)}, cupy needs CUDA {_version(needed)}",
            remedy=f"install a newer driver, or cupy for CUDA {driver // 1000}: pip install cupy-cuda{driver // 1000}x",
        )
    if status == _NO_DEVICE:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        hidden = "" if visible is None else f" (CUDA_VISIBLE_DEVICES is {visible!r})"
        return DeviceError(
            f"the NVIDIA driver finds no GPU{hidden}", remedy="device='cuda-emu' runs the same code slowly"
        )
    return DeviceError(f"GPUs cannot be used: {error}", remedy="nvidia-smi says what the driver thinks")


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def target_of(capability: tuple[int, int]) -> str:
    """What code for a compute capability is made for; raises DeviceError where there is none."""
    found = [name for (major, minor), name in TARGETS.items() if major == capability[0] and minor <= capability[1]]
    if not found:
        known = ", ".join(f"{major}.{minor}" for major, minor in TARGETS)
        raise DeviceError(
            f"no code is made for GPUs of compute capability {capability[0]}.{capability[1]}", remedy=f"one of {known}"
        )
    return found[-1]


class told:
    """Turns errors of the driver into such of graphc; a class, for launches pass through it."""

    __slots__ = ("_what",)

    def __init__(self, what: str):
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, RuntimeError) and hasattr(error, "status"):
            raise DeviceError(f"{self._what}: {error}") from error


class CudaMemory:
    """Memory of a GPU, from cupy's pool, to which it goes back."""

    __slots__ = ("__weakref__", "_pointer", "address", "nbytes")

    def __init__(self, pointer: Any, nbytes: int):
        self._pointer = pointer
        self.address = int(pointer.ptr)
        self.nbytes = nbytes


class CudaFunction:
    """A kernel; holds the module that it is in."""

    __slots__ = ("function", "module", "shared", "symbol")

    def __init__(self, module: Any, function: Any, symbol: str):
        self.module = module
        self.function = function
        self.symbol = symbol
        self.shared = FREE_SHARED
        """Bytes of dynamic shared memory that it may have."""


class CudaModule:
    """A loaded cubin."""

    def __init__(self, module: Any, device: CudaDevice):
        self._module = module
        self._device = device

    def function(self, symbol: str) -> CudaFunction:
        """The kernel of that symbol."""
        try:
            with self._device.current():
                return CudaFunction(self._module, self._module.get_function(symbol), symbol)
        except RuntimeError as error:
            raise ArtifactError(f"the code has no kernel {symbol}: {error}") from error


class CudaEvent:
    """A point in the order of work of a stream."""

    def __init__(self, library: Any, event: Any):
        self._library = library
        self.event = event

    def synchronize(self) -> None:
        """Waits."""
        with told("work on the GPU has failed"):
            self.event.synchronize()

    def is_done(self) -> bool:
        """Whether all work before it is done."""
        return bool(self.event.done)

    def milliseconds_since(self, earlier: CudaEvent) -> float:
        """Time of the GPU."""
        return float(self._library.cuda.get_elapsed_time(earlier.event, self.event))


class CudaStream:
    """A second stream of a device, whose work is in an order with that of the device where somebody asks for it."""

    def __init__(self, library: Any, device: CudaDevice):
        self._library, self._device = library, device
        self._stream = library.cuda.Stream(non_blocking=True)

    @property
    def address(self) -> int:
        """The stream as a cudaStream_t."""
        return int(self._stream.ptr)

    def follow(self) -> None:
        """What it is asked for next waits for all that the device has been asked for."""
        self._stream.wait_event(self._device.cupy_stream.record(self._library.cuda.Event()))

    def lead(self) -> None:
        """What the device is asked for next waits for all that this stream has been asked for."""
        self._device.cupy_stream.wait_event(self._stream.record(self._library.cuda.Event()))


class CudaGraph:
    """Recorded work, with the functions that it launches."""

    def __init__(self, graph: Any, device: CudaDevice, held: list[Any]):
        self._graph = graph
        self._device = device
        self._held = held

    def launch(self) -> None:
        """Does all of it again, on the device's stream."""
        with told("a recorded graph could not be launched"), self._device.current():
            self._graph.launch(self._device.cupy_stream)

    def __del__(self) -> None:
        # Nothing says that a graph may go while it runs. At the end of the process the driver is gone before.
        with suppress(Exception):
            self._device.synchronize()


class _Thread(threading.local):
    """What a device knows of a thread."""

    has_context = False
    """Whether calls of the driver find the device's context."""
    stream: Any = None
    """That on which it records, if it does."""
    held: list[Any]
    """The functions that it has launched while it records."""


class CudaDevice:
    """A GPU: see interface.Device. All work is done in order on one stream, which waits for no other."""

    takes = "cubin"

    def __init__(self, index: int = 0):
        library = cupy()
        found = _count(library)
        if index >= found:
            names = ", ".join(f"cuda:{i}" for i in range(found))
            raise DeviceError(f"there is no GPU cuda:{index}", remedy=f"one of {names}")
        self._cupy = library
        self._runtime, self._driver = library.cuda.runtime, library.cuda.driver
        self._device = library.cuda.Device(index)
        self._thread = _Thread()
        self.index = index
        self.name = f"cuda:{index}"
        with told(f"{self.name} cannot be used"), self.current():
            self.facts = self._runtime.getDeviceProperties(index)
            self.capability = (int(self.facts["major"]), int(self.facts["minor"]))
            self.target = target_of(self.capability)
            self.cupy_stream = library.cuda.Stream(non_blocking=True)
        # Memory may be collected by the thread that counts.
        self._lock = threading.RLock()
        self._counts = [0, 0, 0]
        """Bytes that are allocated, the most that were, and how many allocations there are."""
        self._products: Any = None

    @property
    def stream(self) -> int:
        """The stream as a cudaStream_t."""
        return int(self.cupy_stream.ptr)

    def current(self) -> Any:
        """A context in which the device is that of this thread."""
        if not self._thread.has_context:
            # NOTE: kernels are launched by the driver, which finds the context of a device in a thread only after a
            # call of the runtime there; that the device is chosen does not suffice.
            with self._device:
                self._runtime.memGetInfo()
            self._thread.has_context = True
        return self._device

    # ---- memory

    def allocate(self, nbytes: int) -> CudaMemory:
        """New memory."""
        if nbytes < 0:
            raise ArgumentError(f"memory cannot have {nbytes} bytes")
        self._refuse_recording("allocations")
        try:
            # The pool keeps what is freed for the stream that it was taken for, on which the order of work is safe.
            with self.current(), self.cupy_stream:
                memory = CudaMemory(self._cupy.cuda.alloc(nbytes), nbytes)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            taken, _, number = self._counts
            raise MemoryLimitError(
                f"{self.name} has no {nbytes} bytes left; {taken} are taken by {number} arrays of graphc ({error})"
            ) from error
        with self._lock:
            self._counts[0] += nbytes
            self._counts[1] = max(self._counts[:2])
            self._counts[2] += 1
        weakref.finalize(memory, _forget, self._counts, self._lock, nbytes).atexit = False
        return memory

    def copy_in(self, address: int, array: np.ndarray) -> None:
        """Writes a host array, through pinned memory, from which the GPU fetches it later."""
        self._refuse_recording("transfers")
        source = np.ascontiguousarray(array)
        with told("a copy to the GPU has failed"), self.current():
            for start in range(0, source.nbytes, STAGED):
                size = min(STAGED, source.nbytes - start)
                pinned = self._cupy.cuda.alloc_pinned_memory(size)
                ctypes.memmove(int(pinned.ptr), source.ctypes.data + start, size)
                self._runtime.memcpyAsync(address + start, int(pinned.ptr), size, _IN, self.stream)
                self._cupy.cuda.pinned_memory._add_to_watch_list(self.cupy_stream.record(), pinned)

    def copy_out(self, address: int, array: np.ndarray) -> None:
        """Fills a host array, through pinned memory."""
        self._refuse_recording("transfers")
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise ArgumentError("a copy to the host fills arrays that are C-contiguous and can be written to")
        with told("a copy from the GPU, or work before it, has failed"), self.current():
            for start in range(0, array.nbytes, STAGED):
                size = min(STAGED, array.nbytes - start)
                pinned = self._cupy.cuda.alloc_pinned_memory(size)
                self._runtime.memcpyAsync(int(pinned.ptr), address + start, size, _OUT, self.stream)
                self.cupy_stream.synchronize()
                ctypes.memmove(array.ctypes.data + start, int(pinned.ptr), size)

    def copy(self, destination: int, source: int, nbytes: int) -> None:
        """Copies within the GPU."""
        if nbytes:
            with told("a copy on the GPU has failed"), self.current():
                self._runtime.memcpyAsync(destination, source, nbytes, _WITHIN, self._now())

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        """Sets bytes."""
        if nbytes:
            with told("memory of the GPU could not be set"), self.current():
                self._runtime.memsetAsync(address, byte, nbytes, self._now())

    def discard(self, address: int, nbytes: int) -> None:
        """Does nothing."""

    def memory_stats(self) -> MemoryStats:
        """What graphc has allocated, and what cupy's pool has taken from the system."""
        pool = self._cupy.get_default_memory_pool()
        with self._lock:
            allocated, peak, number = self._counts
        with told("the GPU does not say how much memory it has"), self.current():
            return MemoryStats(allocated, number, peak, int(pool.total_bytes()), int(self._runtime.memGetInfo()[1]))

    def reset_peak(self) -> None:
        """Lets the peak start at what is allocated."""
        with self._lock:
            self._counts[1] = self._counts[0]

    def release_cached(self) -> None:
        """Gives what the pool keeps for later allocations back to the GPU."""
        with told("memory of the GPU could not be given back"), self.current():
            self._cupy.get_default_memory_pool().free_all_blocks()

    # ---- work

    def load(self, code: str | bytes) -> CudaModule:
        """A module of a cubin."""
        if not isinstance(code, bytes):
            raise CompileError(f"{self.name} takes a cubin, and was given {type(code).__name__}")
        module = self._cupy.cuda.function.Module()
        try:
            with self.current():
                module.load(code)
        except RuntimeError as error:
            facts = f"{self.name} ({self.target})"
            raise ArtifactError(f"{facts} does not load the code: {error}") from error
        return CudaModule(module, self)

    def launch(self, function: CudaFunction, grid: int, threads: int, shared: int, arguments: Sequence[int]) -> None:
        """Runs a kernel."""
        if grid <= 0:
            return
        words = (ctypes.c_longlong * max(1, len(arguments)))(*arguments)
        start, size = ctypes.addressof(words), ctypes.sizeof(ctypes.c_longlong)
        pointers = (ctypes.c_void_p * max(1, len(arguments)))(*[start + i * size for i in range(len(arguments))])
        with told(f"kernel {function.symbol} could not be launched"), self.current():
            handle = int(function.function.ptr)
            if shared > function.shared:
                self._driver.funcSetAttribute(handle, _MAX_DYNAMIC_SHARED, shared)
                function.shared = shared
            self._driver.launchKernel(
                *(handle, grid, 1, 1, threads, 1, 1, shared, self._now(), ctypes.addressof(pointers), 0)
            )
        self._hold(function)

    def product(self, descriptor: Any, addresses: Sequence[int]) -> None:
        """Computes a product by cublasLt."""
        if self._products is None:
            self._refuse_recording("the first product of a device")
            self._products = (CublasLt(), self.allocate(WORKSPACE))
        library, workspace = self._products
        with told("a product of matrices has failed"), self.current():
            library.product(as_descriptor(descriptor), addresses, self._now(), workspace.address, workspace.nbytes)

    def synchronize(self) -> None:
        """Waits."""
        with told("work on the GPU has failed"), self.current():
            self.cupy_stream.synchronize()

    def wait_for(self, stream: int) -> None:
        """Waits until what another library has asked for on its stream, a cudaStream_t, is done."""
        with told("work of another library on the GPU has failed"), self.current():
            self._runtime.streamSynchronize(stream)

    def event(self) -> CudaEvent:
        """An event after all work asked for so far."""
        with told("an event could not be recorded"), self.current():
            return CudaEvent(self._cupy, self.cupy_stream.record(self._cupy.cuda.Event()))

    def second_stream(self) -> CudaStream:
        """A stream for work beside that of the device."""
        with told("a stream could not be made"), self.current():
            return CudaStream(self._cupy, self)

    # ---- recording

    def begin_capture(self) -> None:
        """Records work of this thread, on a stream of its own."""
        if self._thread.stream is not None:
            raise DeviceError("this thread records a graph already")
        with told("the GPU does not record"), self.current():
            stream = self._cupy.cuda.Stream(non_blocking=True)
            stream.begin_capture()
        self._thread.stream, self._thread.held = stream, []

    def end_capture(self) -> CudaGraph:
        """What was recorded."""
        stream = self._thread.stream
        if stream is None:
            raise DeviceError("this thread records no graph")
        self._thread.stream = None
        with told("the recorded work is no graph"), self.current():
            return CudaGraph(stream.end_capture(), self, self._thread.held)

    def _now(self) -> int:
        """The stream on which this thread works."""
        stream = self._thread.stream
        return int(self.cupy_stream.ptr if stream is None else stream.ptr)

    def _hold(self, function: CudaFunction) -> None:
        if self._thread.stream is not None:
            self._thread.held.append(function)

    def _refuse_recording(self, what: str) -> None:
        if self._thread.stream is not None:
            raise DeviceError(f"{what} cannot be recorded in a graph")

    def properties(self) -> dict[str, Any]:
        """Facts for people."""
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
