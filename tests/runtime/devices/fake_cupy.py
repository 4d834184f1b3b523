"""Replacements of cupy with host memory: one records its calls, one executes them too."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from graphc.codegen.cuda import nvrtc
from graphc.files.product_descriptor import ProductDescriptor
from graphc.runtime import devices
from graphc.runtime.devices import cuda
from graphc.runtime.devices.emulated import EmulatedDevice
from graphc.runtime.devices.product_reference import compute_product

H200 = {
    **{"name": b"NVIDIA H200", "major": 9, "minor": 0, "multiProcessorCount": 132, "totalGlobalMem": 150 << 30},
    **{"l2CacheSize": 60 << 20, "sharedMemPerBlockOptin": 227 << 10},
}


class DriverError(RuntimeError):
    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status = status


class OutOfMemoryError(MemoryError):
    pass


class Buffer:
    """Memory of the host in the place of the device's, or pinned."""

    def __init__(self, nbytes: int):
        self.block = (ctypes.c_uint8 * max(1, nbytes))()
        self.ptr = ctypes.addressof(self.block)

    def __int__(self) -> int:
        return self.ptr


class FakeCupy:
    """Recorder of the calls of runtime and driver, in order (``calls``)."""

    def __init__(self, gpus: int = 2, facts: dict[str, Any] | None = None):
        self.__version__ = "14.2.0"
        self.calls: list[tuple[Any, ...]] = []
        self.facts = facts or H200
        self.gpus: int | DriverError = gpus
        self.driver_version = 13020
        self.limit = 1 << 30
        self.device = 0
        """That of this thread."""
        self.streams = 0
        self.contexts: set[tuple[int, int]] = set()
        """(thread, device)."""
        self.symbols = {"scale": 77}
        runtime = SimpleNamespace(
            is_hip=False,
            getDeviceCount=self._count,
            driverGetVersion=lambda: self.driver_version,
            runtimeGetVersion=lambda: 13020,
            getDeviceProperties=lambda index: self.facts,
            memGetInfo=self._info,
            memcpyAsync=self._memcpy,
            streamSynchronize=lambda stream: self.calls.append(("wait", stream)),
            memsetAsync=self._memset,
        )
        driver = SimpleNamespace(launchKernel=self._launch, funcSetAttribute=self._attribute)
        self.cuda = SimpleNamespace(
            runtime=runtime,
            driver=driver,
            Device=self._device_class(),
            Stream=self._stream_class(),
            Event=SimpleNamespace,
            alloc=self._alloc,
            alloc_pinned_memory=Buffer,
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            pinned_memory=SimpleNamespace(_add_to_watch_list=lambda event, kept: self.calls.append(("watch",))),
            function=SimpleNamespace(Module=self._module_class()),
            get_elapsed_time=lambda start, end: 1.5,
        )

    def get_default_memory_pool(self) -> Any:
        return SimpleNamespace(total_bytes=lambda: 4096)

    def _count(self) -> int:
        if isinstance(self.gpus, DriverError):
            raise self.gpus
        return self.gpus

    def _info(self) -> tuple[int, int]:
        self.contexts.add((threading.get_ident(), self.device))
        return 1 << 30, 2 << 30

    def _require_context(self) -> None:
        """As the driver, which finds one in threads that have called the runtime."""
        if (threading.get_ident(), self.device) not in self.contexts:
            raise DriverError(201, "CUDA_ERROR_INVALID_CONTEXT: invalid device context")

    def _alloc(self, nbytes: int) -> Buffer:
        if nbytes > self.limit:
            raise OutOfMemoryError(f"{nbytes} bytes")
        self.calls.append(("alloc", nbytes, self.device))
        return Buffer(nbytes)

    def _memcpy(self, destination: int, source: int, size: int, kind: int, stream: int) -> None:
        self.calls.append(("memcpy", size, kind, stream))
        ctypes.memmove(destination, source, size)

    def _memset(self, address: int, value: int, size: int, stream: int) -> None:
        self.calls.append(("memset", size, stream))
        ctypes.memset(address, value, size)

    def _attribute(self, function: int, attribute: int, value: int) -> None:
        self._require_context()
        self.calls.append(("attribute", function, attribute, value))

    def _launch(self, function: int, *rest: int) -> None:
        self._require_context()
        *geometry, shared, stream, parameters, extra = rest
        pointers = (ctypes.c_void_p * 3).from_address(parameters)
        words = [ctypes.c_longlong.from_address(p).value for p in pointers if p]
        self.calls.append(("launch", function, tuple(geometry), shared, stream, tuple(words)))
        assert extra == 0

    def begin(self, stream: int) -> None:
        """Work on a stream is recorded."""
        self.calls.append(("begin", stream))

    def end(self, stream: int) -> Any:
        """Return an object that launches the recorded work."""
        self.calls.append(("end", stream))
        return lambda where: self.calls.append(("graph", where.ptr))

    def _device_class(fake) -> Any:
        class Device:
            def __init__(self, index: int):
                self.id = index
                self.before: list[int] = []

            def __enter__(self) -> None:
                self.before.append(fake.device)
                fake.device = self.id

            def __exit__(self, *_: Any) -> None:
                fake.device = self.before.pop()

        return Device

    def _stream_class(fake) -> Any:
        class Stream:
            def __init__(self, non_blocking: bool = False):
                assert non_blocking
                fake.streams += 1
                self.ptr, self.device_id = 100 * (fake.device + 1) + fake.streams, fake.device

            def __enter__(self) -> None:
                assert fake.device == self.device_id

            def __exit__(self, *_: Any) -> None:
                pass

            def synchronize(self) -> None:
                fake.calls.append(("synchronize", self.ptr))

            def record(self, event: Any = None) -> Any:
                fake.calls.append(("record", self.ptr))
                return event or SimpleNamespace(done=True, synchronize=lambda: None)

            def wait_event(self, event: Any) -> None:
                fake.calls.append(("wait_event", self.ptr))

            def begin_capture(self) -> None:
                fake.begin(self.ptr)

            def end_capture(self) -> Any:
                return SimpleNamespace(launch=fake.end(self.ptr))

        return Stream

    def _module_class(fake) -> Any:
        class Module:
            def load(self, code: bytes) -> None:
                if not code.startswith((b"cubin", b"\x7fELF")):
                    raise DriverError(209, "CUDA_ERROR_NO_BINARY_FOR_GPU")
                fake.calls.append(("load", code, fake.device))

            def get_function(self, symbol: str) -> Any:
                if symbol not in fake.symbols:
                    raise DriverError(500, "CUDA_ERROR_NOT_FOUND: named symbol not found")
                return SimpleNamespace(ptr=fake.symbols[symbol])

        return Module


CODE = b"cubin"
"""How the code of an ExecutingCupy begins: CUDA C follows."""


class ExecutingCupy(FakeCupy):
    """Replacement of cupy that executes kernels on the emulated device. A recording stream defers its work until the
    launch."""

    def __init__(self) -> None:
        super().__init__(1)
        self.emulated = EmulatedDevice()
        self.functions: list[Any] = []
        """By handle."""
        self.recorded: dict[int, list[Callable[[], None]]] = {}

    def work(self, stream: int, step: Callable[[], None]) -> None:
        """Does it, or records it."""
        if stream in self.recorded:
            self.recorded[stream].append(step)
        else:
            step()

    def begin(self, stream: int) -> None:
        self.recorded[stream] = []

    def end(self, stream: int) -> Any:
        steps = self.recorded.pop(stream)
        return lambda where: [step() for step in steps]

    def _alloc(self, nbytes: int) -> Any:
        memory = self.emulated.allocate(nbytes)
        return SimpleNamespace(ptr=memory.address, memory=memory)

    def _memcpy(self, destination: int, source: int, size: int, kind: int, stream: int) -> None:
        self.work(stream, lambda: ctypes.memmove(destination, source, size) and None)

    def _memset(self, address: int, value: int, size: int, stream: int) -> None:
        self.work(stream, lambda: ctypes.memset(address, value, size) and None)

    def _launch(self, function: int, *rest: int) -> None:
        self._require_context()
        grid, _, _, threads, _, _, shared, stream, parameters, _ = rest
        kernel = self.functions[function]
        pointers = (ctypes.c_void_p * len(kernel.parameters)).from_address(parameters)
        words = [ctypes.c_longlong.from_address(p).value for p in pointers if p]
        self.calls.append(("launch", kernel.symbol, stream))
        self.work(stream, lambda: self.emulated.launch(kernel, grid, threads, shared, words))

    def _module_class(fake) -> Any:
        class Module:
            def load(self, code: bytes) -> None:
                self.module = fake.emulated.load(code.removeprefix(CODE).decode())

            def get_function(self, symbol: str) -> Any:
                fake.functions.append(self.module.function(symbol))
                return SimpleNamespace(ptr=len(fake.functions) - 1)

        return Module


def installed(monkeypatch: pytest.MonkeyPatch) -> ExecutingCupy:
    """One in the place of cupy, with a compiler that hands on the text and a library of products by numpy."""
    found = ExecutingCupy()
    monkeypatch.setitem(sys.modules, "cupy", found)
    monkeypatch.setattr(devices, "_cuda", cache(devices._cuda.__wrapped__))
    monkeypatch.setattr(nvrtc, "compile_cubin", lambda text, arch: nvrtc.Cubin(CODE + text.encode(), {}))

    class Library:
        def product(self, given: ProductDescriptor, addresses: Any, stream: int, workspace: int, nbytes: int) -> None:
            found.calls.append(("product", stream))
            found.work(stream, lambda: compute_product(given, addresses))

    monkeypatch.setattr(cuda, "CublasLt", Library)
    return found
