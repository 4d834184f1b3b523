"""What code is made for: triple, CPU, features, and the vector facts that the schedule needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from llvmlite import binding

from graphc.base.dtypes import DType
from graphc.base.errors import CompileError


@dataclass(frozen=True)
class Target:
    """A machine. ``vector_bytes`` and ``registers`` describe its vector unit."""

    triple: str
    cpu: str
    features: str
    """LLVM feature string, sorted: ``+avx2,+fma,...``."""
    vector_bytes: int
    registers: int
    """Number of vector registers."""
    masked: bool
    """True when masked loads and stores of any length are cheap."""
    fast_ldexp: bool
    """True when one instruction scales a vector by powers of two."""
    fma: bool
    """True when fused multiply-add is one instruction."""
    l1_bytes: int = 32 * 1024
    l2_bytes: int = 512 * 1024
    stream_bytes: int = 0
    """Bytes that a kernel touches from which results that are not read again are written past the caches, where they
    would not stay; 0 where that does not pay."""
    read_bytes: int = 0
    """Bytes that a loop which only reads should take from a far cache at a time, where that is faster than whole
    vectors; 0 where it is not."""

    def lanes(self, dtype: DType) -> int:
        """Elements of ``dtype`` in one vector register."""
        return max(1, self.vector_bytes // dtype.itemsize)

    @property
    def streams(self) -> int:
        """Rows that one loop may read side by side: elsewhere than on x86, where an address is a sum of two registers
        and any constant, each takes a register for its address."""
        return self.registers if self.triple.startswith("x86_64") else 8

    @property
    def half(self) -> bool:
        """True when an instruction converts f16 to f32."""
        return self.has("f16c") or self.has("avx512f") or self.triple.startswith(("aarch64", "arm64"))

    @property
    def dots(self) -> bool:
        """True when an instruction adds up products of pairs of bf16."""
        return self.has("avx512bf16") and self.has("avx512vl")

    @property
    def byte_dots(self) -> bool:
        """True when an instruction adds up products of four bytes."""
        return self.has("avx512vnni") and self.has("avx512vl")

    @property
    def has_pool(self) -> bool:
        """True where a pool of worker threads can be emitted: Linux on x86-64 or aarch64."""
        return "linux" in self.triple and self.triple.startswith(("x86_64", "aarch64"))

    def has(self, feature: str) -> bool:
        """True when an LLVM feature such as ``avx512f`` is on."""
        return f"+{feature}" in self.features.split(",")


_X86_LEVELS = {
    "sse2": ("x86-64", "+sse2"),
    "avx2": ("x86-64-v3", "+avx2,+avx,+fma,+bmi,+bmi2,+f16c,+lzcnt,+movbe,+popcnt,+sse4.1,+sse4.2,+ssse3"),
    "avx512": (
        "x86-64-v4",
        "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+avx2,+avx,+fma,+bmi,+bmi2,+f16c,+lzcnt,+movbe,+popcnt,+sse4.1,+sse4.2,+ssse3",
    ),
}
NAMED = (*_X86_LEVELS, "neon")
"""Target names that ``target_named`` knows besides ``host``."""


@cache
def initialize() -> None:
    """Makes LLVM's targets known; safe to call often."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()


@cache
def host_target() -> Target:
    """The machine this process runs on."""
    initialize()
    features = binding.get_host_cpu_features()
    text = ",".join(sorted(f"+{name}" for name, on in features.items() if on))
    return _describe(binding.get_process_triple(), binding.get_host_cpu_name(), text)


@cache
def target_named(name: str) -> Target:
    """``host``, ``sse2``, ``avx2``, ``avx512`` (x86-64) or ``neon`` (aarch64); raises CompileError for others."""
    initialize()
    if name == "host":
        return host_target()
    if name in _X86_LEVELS:
        cpu, features = _X86_LEVELS[name]
        return _describe("x86_64-unknown-linux-gnu", cpu, features)
    if name == "neon":
        return _describe("aarch64-unknown-linux-gnu", "neoverse-n1", "+neon")
    raise CompileError(f"unknown target {name!r}", remedy=f"one of host, {', '.join(NAMED)}")


def _describe(triple: str, cpu: str, features: str) -> Target:
    on = set(features.split(","))
    if triple.startswith("x86_64"):
        if "+avx512f" in on and "+avx512vl" in on:
            return Target(triple, cpu, features, 64, 32, True, True, True, 48 * 1024, 1024 * 1024, 24 << 20, 32)
        if "+avx2" in on and "+fma" in on:
            return Target(triple, cpu, features, 32, 16, True, False, True)
        return Target(triple, cpu, features, 16, 16, False, False, False)
    registers = 32 if triple.startswith(("aarch64", "arm64")) else 16
    return Target(triple, cpu, features, 16, registers, False, False, registers == 32)


def target_machine(target: Target, quick: bool = False) -> binding.TargetMachine:
    """LLVM's target machine for position-independent code at the default optimisation level of the code generator, or
    at the level that takes a tenth of the time and spills every value."""
    initialize()
    try:
        machine = binding.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise CompileError(f"LLVM has no target for {target.triple}") from error
    level = 0 if quick else 2
    return machine.create_target_machine(target.cpu, target.features, opt=level, reloc="pic", codemodel="small")
