"""Compilation of CUDA kernels for this CPU: many kernels become one shared object, cached on disk."""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import json
import os
import shutil
import stat
import subprocess
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from graphc.base import config
from graphc.base.errors import ArtifactError, CompileError
from graphc.base.locks import Lock
from graphc.files.cache_folders import cache_folders
from graphc.files.container import replacing
from graphc.runtime.devices.emulated_text import RUN, KernelText, kernels_of

SHIM = Path(config.__file__).parents[1] / "codegen" / "cuda" / "shim"
"""Folder of the header that texts include, and of the source of the launcher."""
COMPILERS = ("c++", "g++", "clang++")
"""Names of C++ compilers to look for, after the one in CXX."""
UNIT = 100
"""Maximum number of kernels in a translation unit. Pending kernels are split over the cores first."""
KEPT = 200 << 20
"""Maximum bytes of libraries on disk; the oldest go first."""
_OPTIMIZED = "-Og"
"""Optimization flag: compiling takes half of the total time, so it is low."""
_FLAGS = ("-std=c++17", "-fPIC", "-shared", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-math-errno")
_POISON = "-ftrivial-auto-var-init=pattern"
_lock = Lock()


class EmulatedModule:
    """A text whose kernels can be launched. The first launch builds them along with all pending modules."""

    def __init__(self, text: str):
        self.text = text
        self.kernels = {kernel.symbol: kernel for kernel in kernels_of(text)}

    def function(self, symbol: str) -> EmulatedFunction:
        """Return the kernel of a symbol; raises ArtifactError if the text has none."""
        if symbol not in self.kernels:
            raise ArtifactError(f"the CUDA text has no kernel {symbol}", where=", ".join(self.kernels) or "no kernels")
        return EmulatedFunction(self, self.kernels[symbol])


class EmulatedFunction:
    """A kernel of a module."""

    __slots__ = ("_address", "kernel", "module")

    def __init__(self, module: EmulatedModule, kernel: KernelText):
        self.module = module
        self.kernel = kernel
        self._address = 0

    @property
    def symbol(self) -> str:
        """Name of the kernel."""
        return self.kernel.symbol

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the kernel's parameters."""
        return self.kernel.parameters

    @property
    def address(self) -> int:
        """Address of the launcher's description of the kernel. The first access builds all pending kernels."""
        if not self._address:
            digest = self.kernel.digest
            with _lock:
                if digest not in _built:
                    build(kernel for module in [self.module, *_waiting] for kernel in module.kernels.values())
                    _waiting.clear()
                library = _built[digest]
            if isinstance(library, CompileError):
                raise library
            self._address = ctypes.addressof(ctypes.c_char.in_dll(library, f"gc_kernel_{digest}"))
        return self._address


_waiting: weakref.WeakSet[EmulatedModule] = weakref.WeakSet()
_built: dict[str, ctypes.CDLL | CompileError] = {}
"""Library of each kernel by digest, or the error of its build."""


def load(text: str) -> EmulatedModule:
    """Return a module of a text, which is not built yet."""
    module = EmulatedModule(text)
    with _lock:
        _waiting.add(module)
    return module


def build(kernels: Iterable[KernelText]) -> None:
    """Build kernels. Store the error of each kernel refused by the compiler. Raises CompileError if there is no
    compiler."""
    with _lock:
        pending = {kernel.digest: kernel for kernel in kernels if kernel.digest not in _built}
        launcher()
        folder = _folder()
        for path in sorted({_on_disk()[digest] for digest in pending.keys() & _on_disk().keys()}):
            with suppress(OSError):  # Another process may have removed it meanwhile.
                _open(path)
        missing = [pending[digest] for digest in sorted(pending.keys() - _built.keys())]
        groups = _groups(missing)
        with ThreadPoolExecutor(max(1, min(len(groups), _cores()))) as pool:
            for _ in pool.map(lambda group: _build_group(folder, group), groups):
                pass
        if missing:
            _evict(folder)


def _groups(kernels: Sequence[KernelText]) -> list[Sequence[KernelText]]:
    """Return equal groups of kernels, one per core unless they get too small or too large."""
    count = max(min(_cores(), (len(kernels) + 3) // 4), (len(kernels) + UNIT - 1) // UNIT)
    return [kernels[i::count] for i in range(count)]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _build_group(folder: Path, kernels: Sequence[KernelText]) -> None:
    """Build one library of some kernels. If the compiler refuses it, build each half separately, down to one kernel."""
    digests = [kernel.digest for kernel in kernels]
    path = folder / f"{_key(digests)}.so"
    try:
        _compile(source(kernels), path, _OPTIMIZED)
    except CompileError as error:
        if len(kernels) == 1:
            _built[digests[0]] = error
            return
        half = len(kernels) // 2
        for kernel_half in (kernels[:half], kernels[half:]):
            _build_group(folder, kernel_half)
        return
    with replacing(path.with_suffix(".json"), durable=False) as file:
        file.write(json.dumps(digests).encode())
    _open(path, digests)


def _key(digests: Sequence[str]) -> str:
    return hashlib.sha256(repr((_identity(), sorted(digests))).encode()).hexdigest()[:32]


def source(kernels: Sequence[KernelText]) -> str:
    """Return the translation unit of some kernels, each in its own namespace. Their common prelude appears once."""
    shared = kernels[0].prelude
    lines = ["#define GC_EMULATE 1", '#include "gc_emulate.h"', '#line 1 "prelude"', shared]
    for kernel in kernels:
        namespace = f"gc_{kernel.digest}"
        lines += [f"namespace {namespace} {{", "" if kernel.prelude == shared else kernel.prelude]
        lines += [f'#line 1 "{kernel.symbol}"', kernel.text]
        lines += ["}", f'extern "C" {{ gc_kernel gc_kernel_{kernel.digest} = gc_describe({namespace}::{RUN}); }}']
    return "\n".join(lines) + "\n"


# ---- the compiler


@functools.cache
def compiler() -> str:
    """Return the path of the C++ compiler; raises CompileError if there is none."""
    for name in (os.environ.get("CXX", ""), *COMPILERS):
        path = shutil.which(name) if name else None
        if path:
            return path
    raise CompileError(
        "the emulated device builds kernels with the host's C++ compiler, and there is none",
        where=f"CXX, {', '.join(COMPILERS)}",
        remedy="install g++: apt-get install g++, or set CXX to a C++17 compiler",
    )


@functools.cache
def _identity() -> str:
    """Return a hash of every input of built code besides the texts."""
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=False)
    state = hashlib.sha256(
        repr((version.stdout, compiler(), _OPTIMIZED, _FLAGS, _more_flags(), os.uname().machine)).encode()
    )
    for path in sorted(SHIM.iterdir()):
        state.update(path.read_bytes())
    return state.hexdigest()[:32]


@functools.cache
def _more_flags() -> tuple[str, ...]:
    """Return flags that depend on compiler and CPU: fill uninitialised registers, use fma instructions."""
    flags = [_POISON]
    with suppress(OSError):
        flags += ["-mfma"] if " fma " in Path("/proc/cpuinfo").read_text() else []
    return tuple(flag for flag in flags if _accepts(flag))


def _accepts(flag: str) -> bool:
    command = [compiler(), flag, "-x", "c++", "-fsyntax-only", os.devnull]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _compile(text: str, path: Path, optimized: str) -> None:
    extra = ["-undefined", "dynamic_lookup"] if os.uname().sysname == "Darwin" else []
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        unit, library = Path(folder, "unit.cpp"), Path(folder, "unit.so")
        unit.write_text(text)
        command = [
            compiler(),
            optimized,
            *_FLAGS,
            *_more_flags(),
            *extra,
            "-w",
            f"-I{SHIM}",
            "-o",
            str(library),
            str(unit),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError("the C++ compiler refused CUDA text", where=_first_errors(done.stderr))
        library.chmod(0o700)
        os.replace(library, path)


def _first_errors(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line] or text.splitlines()
    return " | ".join(lines[:5])


# ---- libraries


@functools.cache
def launcher() -> ctypes.CDLL:
    """Return the library that executes kernels. Its symbols are global, so that libraries of kernels find them."""
    path = _folder() / f"launcher_{_identity()}.so"
    if not path.exists():
        _compile((SHIM / "gc_emulate.cpp").read_text(), path, "-O2")
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def _open(path: Path, digests: Sequence[str] | None = None) -> None:
    if digests is None:
        os.utime(path)
    kernel_digests: Sequence[str] = digests or json.loads(path.with_suffix(".json").read_bytes())
    library = ctypes.CDLL(str(path))
    for digest in kernel_digests:
        _built[digest] = library


@functools.cache
def _folder() -> Path:
    """Return the folder of libraries: from ``keep_in``, else one beside the program cache, else a temporary one of
    this process."""
    options = config.read()
    folder = cache_folders()[0] / "emulated" if options.cache else None
    folder = _chosen_folders[-1] if _chosen_folders else folder
    if folder is not None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = os.lstat(folder)
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022:
                return folder
        except OSError:
            pass
    folder = Path(tempfile.mkdtemp(prefix="graphc-emulated-"))
    atexit.register(_remove, folder, os.getpid())
    return folder


_chosen_folders: list[Path] = []


def keep_in(folder: Path) -> None:
    """Keep libraries in a folder, whether or not programs are cached. They are keyed by everything that their code
    depends on. Call this before the first build."""
    _chosen_folders.append(folder)


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # Not in a child after fork().
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _on_disk() -> dict[str, Path]:
    """Return the libraries found on disk at the first call, by digest of kernel."""
    libraries: dict[str, Path] = {}
    for name in _folder().glob("*.json"):
        try:
            digests = [str(digest) for digest in json.loads(name.read_bytes())]
        except (OSError, ValueError, TypeError):
            continue
        path = name.with_suffix(".so")
        if _key(digests) == name.stem and path.exists():
            libraries.update(dict.fromkeys(digests, path))
    return libraries


def _evict(folder: Path) -> None:
    """Remove the least recently opened libraries while all together take too much."""
    files = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder.glob("*.so"))
    total = sum(size for _, size, _ in files)
    for _, size, path in files:
        if total <= KEPT:
            break
        path.with_suffix(".json").unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        total -= size
