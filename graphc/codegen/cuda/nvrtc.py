"""Compilation of CUDA C by NVRTC, which needs neither a GPU nor its driver.

The library is that of ``pip install nvidia-cuda-nvrtc``, of CUDA_HOME, or of the system. Products and sums are never
contracted (``--fmad=false``): kernels state where a multiply-add is one operation, and give the same numbers as on a
CPU.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Sequence
from ctypes.util import find_library
from functools import cache
from pathlib import Path
from typing import Any

from graphc.base.errors import CompileError
from graphc.base.installation import install_command
from graphc.base.records import dataclass

OPTIONS = ("--std=c++17", "--fmad=false")
"""Compiler options besides the architecture."""
_KERNEL = re.compile(r"Compiling entry function '(\w+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True)
class Resources:
    """Resource use of a kernel, reported by the assembler."""

    registers: int
    """Registers per thread."""
    shared: int
    """Bytes of declared shared memory per block."""
    spilled: int
    """Bytes of spilled registers per thread."""
    stack: int
    """Bytes of stack per thread."""


@dataclass(frozen=True)
class Cubin:
    """Code for one architecture."""

    image: bytes
    kernels: dict[str, Resources]
    """Resources by symbol."""


def compile_cubin(text: str, arch: str = "sm_90") -> Cubin:
    """Return the code of CUDA C for an architecture such as ``sm_90a``; raises CompileError with the compiler's log."""
    image, log = _compiled(text, (f"-arch={arch}", "--ptxas-options=-v"), "CUBIN")
    return Cubin(image, resources(log))


def compile_ptx(text: str, arch: str = "compute_90") -> str:
    """Return the PTX of CUDA C for a virtual architecture."""
    return _compiled(text, (f"-arch={arch}",), "PTX")[0].rstrip(b"\0").decode()


def resources(log: str) -> dict[str, Resources]:
    """Return the resource use of the kernels in the assembler's log."""
    kernels: dict[str, Resources] = {}
    symbol, stack, spilled = "", 0, 0
    for line in log.splitlines():
        if entry := _KERNEL.search(line):
            symbol, stack, spilled = entry[1], 0, 0
        elif frame := _STACK.search(line):
            stack, spilled = int(frame[1]), int(frame[2]) + int(frame[3])
        elif (used := _USED.search(line)) and symbol:
            shared = _SHARED.search(used[2])
            kernels[symbol] = Resources(int(used[1]), int(shared[1]) if shared else 0, spilled, stack)
    return kernels


@cache
def version() -> tuple[int, int]:
    """Return the version of NVRTC; raises CompileError if it is not installed."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    library = _library()
    _check(library, library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


def _compiled(text: str, options: Sequence[str], kind: str) -> tuple[bytes, str]:
    library, program = _library(), ctypes.c_void_p()
    arguments = [option.encode() for option in (*OPTIONS, *options)]
    _check(library, library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"graphc.cu", 0, None, None))
    try:
        status = library.nvrtcCompileProgram(program, len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
        log = _bytes(library, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if status:
            arch = " ".join(options)
            raise CompileError(f"NVRTC cannot compile CUDA text ({arch})", where=log.strip() or _name(library, status))
        return _bytes(library, program, kind), log
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _bytes(library: Any, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(library, getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(library, getattr(library, f"nvrtcGet{what}")(program, buffer))
    return buffer.raw


def _check(library: Any, status: int) -> None:
    if status:
        raise CompileError(f"NVRTC: {_name(library, status)}")


def _name(library: Any, status: int) -> str:
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library.nvrtcGetErrorString(status).decode()


@cache
def _library() -> Any:
    for folder in _folders():
        for path in sorted(folder.glob("libnvrtc.so*"), key=lambda p: len(p.name)):
            if (library := _loaded(path, folder)) is not None:
                return library
    name = find_library("nvrtc")
    if name:
        return ctypes.CDLL(name)
    remedy = f"install NVRTC: {install_command('cuda')}, or set CUDA_HOME"
    raise CompileError("the CUDA compiler NVRTC is not installed", remedy=remedy)


def _loaded(path: Path, folder: Path) -> Any:
    """Load the library that NVRTC opens by name, then NVRTC; return None if that fails."""
    open_all: Callable[[Path], Any] = lambda p: ctypes.CDLL(str(p), mode=ctypes.RTLD_GLOBAL)  # noqa: E731
    try:
        for builtins in folder.glob("libnvrtc-builtins.so*"):
            open_all(builtins)
        return open_all(path)
    except OSError:
        return None


def _folders() -> Iterator[Path]:
    """Yield the possible folders of the library, the wheel's first."""
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for folder in ("cu13", "cuda_nvrtc"):
            yield Path(root) / folder / "lib"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "lib64"
            yield Path(os.environ[variable]) / "lib"
