"""CUDA text to code for this CPU: many texts become one shared object, which is kept on disk."""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import json
import operator
import os
import re
import shutil
import stat
import subprocess
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

from graphc.base import config
from graphc.base.errors import ArtifactError, CompileError
from graphc.base.locks import Lock
from graphc.files.container import replacing

SHIM = Path(config.__file__).parents[1] / "codegen" / "cuda" / "shim"
"""Folder of the header that texts are compiled with, and of the source of what executes them."""
COMPILERS = ("c++", "g++", "clang++")
"""Names that a C++ compiler is looked for by, after what CXX says."""
UNIT = 48
"""Texts of one translation unit at most: what is pending is split over the cores first."""
KEPT = 200 << 20
"""Bytes that libraries on disk may take; the oldest go first."""
_FLAGS = ("-O1", "-std=c++17", "-fPIC", "-shared", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-math-errno")
_POISON = "-ftrivial-auto-var-init=pattern"
_KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\s*\([^()]*\)\s*)?(\w+)\s*\(([^{]*)\)\s*\{'
)
_EXTENT = re.compile(r"GC_EXTENT\((\w+), (.*)\);")
_SUFFIX = re.compile(r"\b(\d+)ll\b")
_LINKAGE = re.compile(r'extern\s+"C"\s+(__global__)')
_KERNEL_BYTES = 40
"""Size of ``gc_kernel``."""
_lock = Lock()


@dataclass(frozen=True)
class Signature:
    """A kernel as its text declares it."""

    symbol: str
    parameters: tuple[str, ...]
    """Their names."""
    extents: tuple[str, ...]
    """How many elements each has, as an expression of the parameters that are numbers; empty where that is not said."""


def signatures(text: str) -> tuple[Signature, ...]:
    """The kernels of a text, in order."""
    found = list(_KERNEL.finditer(text))
    ends = [*(kernel.start() for kernel in found[1:]), None]
    return tuple(_signature(kernel, text[kernel.end() : end]) for kernel, end in zip(found, ends, strict=False))


def _signature(kernel: re.Match[str], body: str) -> Signature:
    names = _parameters(kernel[2])
    extents = dict(_EXTENT.findall(body))
    return Signature(kernel[1], names, tuple(_SUFFIX.sub(r"\1", extents.get(name, "")) for name in names))


def _parameters(text: str) -> tuple[str, ...]:
    names = (re.search(r"(\w+)\s*$", part) for part in _without_brackets(text).split(","))
    return tuple(found[1] for found in names if found)


def _without_brackets(text: str) -> str:
    return re.sub(r"\([^()]*\)", "", text)


class EmulatedModule:
    """A text whose kernels can be launched; it is built with all others that wait when a kernel of it first runs."""

    def __init__(self, text: str):
        self.text = text
        self.digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        self.signatures = {s.symbol: (position, s) for position, s in enumerate(signatures(text))}
        self._table = 0

    def function(self, symbol: str) -> EmulatedFunction:
        """The kernel of a symbol."""
        if symbol not in self.signatures:
            raise ArtifactError(
                f"the CUDA text has no kernel {symbol}", where=", ".join(self.signatures) or "no kernels"
            )
        return EmulatedFunction(self, symbol)

    def table(self) -> int:
        """Address of the descriptions of the kernels, in order; builds what waits."""
        if not self._table:
            with _lock:
                if self.digest not in _built:
                    build(module.text for module in list(_waiting))
                _waiting.discard(self)
                found = _built[self.digest]
                if isinstance(found, CompileError):
                    raise found
                self._table = ctypes.addressof(ctypes.c_char.in_dll(found, f"gc_text_{self.digest}"))
        return self._table


class EmulatedFunction:
    """A kernel of a module."""

    __slots__ = ("_address", "_extents", "module", "parameters", "symbol")

    def __init__(self, module: EmulatedModule, symbol: str):
        self.module = module
        self.symbol = symbol
        signature = module.signatures[symbol][1]
        self.parameters = signature.parameters
        self._extents = [_number_of(text) for text in signature.extents]
        self._address = 0

    def extents(self, words: Sequence[int]) -> list[int]:
        """How many elements each parameter has in a call with these arguments; -1 where that is not known."""
        values = dict(zip(self.parameters, words, strict=True))
        return [extent if isinstance(extent, int) else _evaluated(extent, values) for extent in self._extents]

    @property
    def address(self) -> int:
        """Where it is described to the launcher; builds it when it was not."""
        if not self._address:
            self._address = self.module.table() + _KERNEL_BYTES * self.module.signatures[self.symbol][0]
        return self._address


def _number_of(text: str) -> int | CodeType:
    """An extent that is a number, or code that computes it."""
    if not text or text.isdigit():
        return int(text or -1)
    expression = text.replace("gc_floor_div<long long>", "_quotient").replace("/", "//")
    try:
        return compile(expression, "<extent>", "eval")
    except SyntaxError:
        return -1


def _evaluated(code: CodeType, values: Mapping[str, int]) -> int:
    try:
        return int(eval(code, {"__builtins__": {}, "_quotient": operator.floordiv}, dict(values)))
    except (ArithmeticError, NameError, SyntaxError, TypeError, AttributeError):
        return -1


_waiting: weakref.WeakSet[EmulatedModule] = weakref.WeakSet()
_built: dict[str, ctypes.CDLL | CompileError] = {}
"""By the digest of a text: the library that has its kernels, or why there is none."""


def load(text: str) -> EmulatedModule:
    """A module of a text, which is not built yet."""
    module = EmulatedModule(text)
    with _lock:
        _waiting.add(module)
    return module


def build(texts: Iterable[str]) -> None:
    """Builds texts and keeps why those cannot be built that the compiler refuses; raises CompileError where there is no
    compiler."""
    wanted = {_digest(text): text for text in texts}
    with _lock:
        launcher()
        folder = _folder()
        for path in _libraries_with(folder, wanted.keys() - _built.keys()):
            _open(path)
        missing = {digest: text for digest, text in wanted.items() if digest not in _built}
        groups = _groups(sorted(missing))
        with ThreadPoolExecutor(max(1, len(groups))) as pool:
            for _ in pool.map(lambda group: _build_group(folder, {d: missing[d] for d in group}), groups):
                pass
        _evict(folder)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _groups(digests: Sequence[str]) -> list[Sequence[str]]:
    """Equal parts, as many as there are cores unless they get too small or too large."""
    parts = max(min(_cores(), (len(digests) + 3) // 4), (len(digests) + UNIT - 1) // UNIT)
    return [digests[i::parts] for i in range(parts)]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _build_group(folder: Path, texts: dict[str, str]) -> None:
    """One library of some texts. Where the compiler refuses it, each half by itself, down to one text."""
    key = hashlib.sha256(repr((_identity(), sorted(texts))).encode()).hexdigest()[:32]
    path = folder / f"{key}.so"
    try:
        _compile(source(texts), path)
    except CompileError as error:
        if len(texts) == 1:
            _built[next(iter(texts))] = error
            return
        digests = list(texts)
        for half in (digests[: len(digests) // 2], digests[len(digests) // 2 :]):
            _build_group(folder, {d: texts[d] for d in half})
        return
    with replacing(path.with_suffix(".json"), durable=False) as file:
        file.write(json.dumps(sorted(texts)).encode())
    _open(path, sorted(texts))


def source(texts: dict[str, str]) -> str:
    """The translation unit of some texts, by their digests: each in a namespace of its own, but what stands before the
    first kernel only once as far as it is the same."""
    lines = ["#define GC_EMULATE 1", '#include "gc_emulate.h"']
    shared = None
    for digest, text in texts.items():
        found = _KERNEL.search(text)
        prelude = text[: found.start()] if found else ""
        if shared is None:
            shared = prelude
            lines += ['#line 1 "prelude"', prelude]
        skipped = prelude if prelude == shared else ""
        first = skipped.count("\n") + 1
        body = _LINKAGE.sub(r"static \1", text[len(skipped) :])
        table = ", ".join(f'gc_describe("{s.symbol}", {s.symbol})' for s in signatures(text))
        lines += [f"namespace gc_{digest} {{", f'#line {first} "{digest}"', body]
        lines += [
            f'extern "C" gc_kernel gc_text_{digest}[];',
            f"gc_kernel gc_text_{digest}[] = {{{table or '{}'}}};",
            "}",
        ]
    return "\n".join(lines) + "\n"


# ---- the compiler


@functools.cache
def compiler() -> str:
    """Path of the C++ compiler; raises CompileError where there is none."""
    for name in (os.environ.get("CXX", ""), *COMPILERS):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise CompileError(
        "the emulated device builds kernels with the host's C++ compiler, and there is none",
        where=f"CXX, {', '.join(COMPILERS)}",
        remedy="apt-get install g++, or set CXX to a C++17 compiler",
    )


@functools.cache
def _identity() -> str:
    """What code depends on besides the texts."""
    asked = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=False)
    state = hashlib.sha256(repr((asked.stdout, compiler(), _FLAGS, _more_flags(), os.uname().machine)).encode())
    for path in sorted(SHIM.iterdir()):
        state.update(path.read_bytes())
    return state.hexdigest()[:32]


@functools.cache
def _more_flags() -> tuple[str, ...]:
    """Flags for what the compiler and this CPU know: registers without a value are filled, fma is one instruction."""
    wanted = [_POISON]
    with suppress(OSError):
        wanted += ["-mfma"] if " fma " in Path("/proc/cpuinfo").read_text() else []
    return tuple(flag for flag in wanted if _accepts(flag))


def _accepts(flag: str) -> bool:
    command = [compiler(), flag, "-x", "c++", "-fsyntax-only", os.devnull]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _compile(text: str, path: Path, optimize: str = "-O1") -> None:
    flags = [optimize if flag == "-O1" else flag for flag in _FLAGS]
    extra = ["-undefined", "dynamic_lookup"] if os.uname().sysname == "Darwin" else []
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        unit, made = Path(folder, "unit.cpp"), Path(folder, "unit.so")
        unit.write_text(text)
        command = [compiler(), *flags, *_more_flags(), *extra, "-w", f"-I{SHIM}", "-o", str(made), str(unit)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError("the C++ compiler refused CUDA text", where=_first_errors(done.stderr))
        made.chmod(0o700)
        os.replace(made, path)


def _first_errors(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line] or text.splitlines()
    return " | ".join(lines[:5])


# ---- libraries


@functools.cache
def launcher() -> ctypes.CDLL:
    """The library that executes kernels. Its symbols are there for the libraries of kernels."""
    path = _folder() / f"launcher_{_identity()}.so"
    if not path.exists():
        _compile((SHIM / "gc_emulate.cpp").read_text(), path, "-O2")
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def _open(path: Path, digests: Sequence[str] | None = None) -> None:
    if digests is None:
        os.utime(path)
    held: Sequence[str] = digests or json.loads(path.with_suffix(".json").read_bytes())
    library = ctypes.CDLL(str(path))
    for digest in held:
        _built[digest] = library


@functools.cache
def _folder() -> Path:
    """Where libraries are kept: beside the cache of programs, or, without one, for the time of this process."""
    options = config.read()
    if options.cache:
        folder = Path(os.path.expanduser(options.cache_dir)) / "emulated"
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


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # A child after fork() leaves it alone.
        shutil.rmtree(folder, ignore_errors=True)


def _libraries_with(folder: Path, digests: Iterable[str]) -> list[Path]:
    """Libraries on disk, as few as it takes, that have some of the texts."""
    wanted, found = set(digests), []
    for name in sorted(folder.glob("*.json")) if wanted else ():
        try:
            held = set(json.loads(name.read_bytes()))
        except (OSError, ValueError):
            continue
        path = name.with_suffix(".so")
        key = hashlib.sha256(repr((_identity(), sorted(held))).encode()).hexdigest()[:32]
        if held & wanted and key == name.stem and path.exists():
            wanted -= held
            found.append(path)
    return found


def _evict(folder: Path) -> None:
    """Removes the libraries that were not opened for the longest time when all take too much."""
    files = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder.glob("*.so"))
    total = sum(size for _, size, _ in files)
    for _, size, path in files:
        if total <= KEPT:
            break
        path.with_suffix(".json").unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        total -= size
