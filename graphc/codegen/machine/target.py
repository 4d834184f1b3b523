"""Target machines: triple, CPU, features, facts for the schedule, and costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from llvmlite import binding

from graphc.base import processor
from graphc.base.dtypes import DType
from graphc.base.errors import CompileError
from graphc.base.processor import FLUSH, STRICT
from graphc.base.records import dataclass
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.codegen.machine.denormals import FlushMode
from graphc.codegen.machine.instruction import Instruction
from graphc.codegen.machine.linkage import Linkage, is_bare, is_macos, is_wasm, is_windows
from graphc.codegen.machine.roofline import Roofline
from graphc.codegen.machine.step import Reader
from graphc.codegen.machine.tiles import Tiles


@dataclass(frozen=True)
class Waits:
    """System call with which threads of a family of processors wait on Linux."""

    futex: int
    """Number of the futex system call: sleep until another thread wakes this one."""


@dataclass(frozen=True, kw_only=True)
class GpuFacts:
    """Hardware facts of a GPU. Those that depend on the board are of the board named with the numbers."""

    processors: int
    """Streaming multiprocessors of the board."""
    processor_threads: int = 2048
    """Maximum number of resident threads per multiprocessor."""
    processor_registers: int = 64 * 1024
    """32-bit registers per multiprocessor."""
    processor_shared: int
    """Bytes of shared memory per multiprocessor."""
    block_threads: int = 1024
    """Maximum number of threads of a block."""
    block_shared: int
    """Maximum bytes of shared memory that a block may request at launch."""
    warp: int = 32
    """Threads of a warp."""
    l2_bytes: int
    """Bytes of the cache shared by all multiprocessors of the board."""
    memory_rate: float
    """Peak memory bandwidth of the board in bytes per second."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A machine: documented or detected facts, and costs."""

    triple: str
    cpu: str = ""
    features: str = ""
    """LLVM feature string, sorted: ``+avx2,+fma,...``."""
    inherent: str = ""
    """Features beyond those of the architecture that all machines with this triple have: code need not detect them."""
    vector_bytes: int = 16
    """Bytes of a vector register."""
    registers: int = 16
    """Number of vector registers."""
    integer_registers: int = 0
    """Number of vectors of integers that fit into registers of their own; 0 where vector registers hold them."""
    streams: int = 8
    """Maximum number of rows that one loop may read concurrently. Each takes an address register, unless addresses may
    be sums of two registers and a constant."""
    word_bits: int = 64
    """Bits of a register for integers. Counters of loops and comparisons of indices have no more if the numbers fit."""
    masked: bool = False
    """Whether masked loads and stores of any length are cheap."""
    part_stores: bool = False
    """Whether a known number of the first elements of a vector is stored as vectors of powers of two: masked stores of
    AVX2 take about 20 operations on AMD processors up to Zen 3."""
    fma: bool = False
    """Whether fused multiply-add is one instruction."""
    converts_pairs: bool = False
    """Whether f32 become f64, and back, two at a time: LLVM takes longer vectors apart into their elements."""
    memory_operands: bool = False
    """Whether a multiply-add may read an operand from memory, which then takes no register."""
    tile_rows: int = 0
    """Rows of a tile register, with as many f32 per row, for products of bf16 with sums in f32; 0 without tiles."""
    waits: Waits | None = None
    """How threads wait for each other on Linux; None if unknown."""
    cycle_fence: str = ""
    """LLVM intrinsic that waits for all earlier instructions, to separate readings of the cycle counter; empty where
    programs cannot read such a counter."""
    l1_bytes: int = 32 * 1024
    l2_bytes: int = 512 * 1024
    llc_bytes: int = 8 << 20
    """Bytes of the last-level cache that one core can count on."""
    line_bytes: int = 64
    """Bytes of a cache line."""
    page_bytes: int = 4096
    """Bytes of a page, and of the stride at which lines meet in one set of the L1 cache."""
    near_pages: int = 64
    """Entries of a core's first-level data TLB. Documented: 64 in Skylake and Zen 2, more in newer ones."""
    gpu: GpuFacts | None = field(default=None, repr=False)
    """Facts of the GPU, as ``cpu`` says; None for other machines."""
    costs: Costs = DEFAULT
    flushes: bool = False
    """Whether programs take denormal numbers for zeros while they run, see ``flush_mode``."""

    def lanes(self, dtype: DType) -> int:
        """Return the number of elements of ``dtype`` in a vector register."""
        return max(1, self.vector_bytes // dtype.itemsize)

    def registers_of(self, dtype: DType) -> int:
        """Return the number of registers for vectors of ``dtype``."""
        return self.integer_registers if self.integer_registers and not dtype.is_floating_point else self.registers

    @property
    def roofline(self) -> Roofline:
        """Roofline of one core."""
        return Roofline(self.costs.speeds, self.l1_bytes, self.l2_bytes, self.llc_bytes)

    @property
    def l1_ways(self) -> int:
        """Associativity of the L1 cache; a page holds one line of each set."""
        return max(1, self.l1_bytes // self.page_bytes)

    @property
    def has_pool(self) -> bool:
        """Whether a pool of worker threads can be emitted: Linux on a processor whose waits are known."""
        return "linux" in self.triple and self.waits is not None

    def instruction(self, name: str, kind: str = "") -> Instruction | None:
        """Return the instruction of this name for an LLVM type; None if the machine has none."""
        return _instruction(self.triple, self.features, name, kind)

    @property
    def tiles(self) -> Tiles | None:
        """Tile statements of the family; None without tiles."""
        family = _family(self.triple) if self.tile_rows else None
        return family.tiles if family else None

    @property
    def reader(self) -> Reader | None:
        """Decoder of instructions in assembly; None if unknown."""
        family = _family(self.triple)
        return family.reader if family else None

    @property
    def flush_mode(self) -> FlushMode | None:
        """Code that makes denormal numbers zeros; None if unknown."""
        family = _family(self.triple)
        return family.flush_mode if family else None

    @property
    def llvm_switches(self) -> tuple[str, ...]:
        """LLVM's switches for the passes that builds skip, see ``Family``."""
        family = _family(self.triple)
        return family.llvm_switches if family else ()

    @property
    def relocation_model(self) -> str:
        """Return LLVM's relocation model, see ``Family``."""
        family = _family(self.triple)
        return family.relocation_model if family else "pic"

    @property
    def is_bare(self) -> bool:
        """Whether the machine is a microcontroller, without an operating system."""
        return is_bare(self.triple)

    @property
    def is_wasm(self) -> bool:
        """Whether the code is a WebAssembly module, which runs inside of another program."""
        return is_wasm(self.triple)

    @property
    def is_windows(self) -> bool:
        """Whether the code is for Windows: COFF objects and the calling convention of Microsoft."""
        return is_windows(self.triple)

    @property
    def is_macos(self) -> bool:
        """Whether the code is for macOS: Mach-O objects and the calling convention of Apple."""
        return is_macos(self.triple)

    def system_function(self, name: str) -> str:
        """Return LLVM text of a function that LLVM calls in code for the target's system; empty for other names."""
        family = _family(self.triple) if self.is_windows else None
        text = family.windows_functions.get(name, "") if family else ""
        return f'target triple = "{self.triple}"\n{text}\n' if text else ""

    @property
    def reduces_strength(self) -> bool:
        """Whether builds run LLVM's strength reduction of loops."""
        return "-disable-lsr" not in self.llvm_switches

    def detection(self, name: str) -> str:
        """Return LLVM text of a function of this name that returns (i1) whether the processor has the features used by
        this target's code. Return an empty string for unknown processors, and if all processors have them."""
        family, inherent = _family(self.triple), self.inherent.split(",")
        features = ",".join(feature for feature in self.features.split(",") if feature not in inherent)
        return family.detection(features, name) if family and family.detection else ""

    def has(self, feature: str) -> bool:
        """Return whether an LLVM feature such as ``avx512f`` is on."""
        return f"+{feature}" in self.features.split(",")


@dataclass(frozen=True)
class Family:
    """Targets of one architecture: ``facts.FAMILY`` of the package beside this module."""

    architectures: tuple[str, ...]
    """Prefixes of their triples."""
    named: Mapping[str, Target]
    """Targets with fixed facts, by name."""
    describe: Callable[[str, str, str], Target]
    """Returns the target for a triple, the name of a CPU, and the detected features."""
    instructions: tuple[Instruction, ...] = ()
    """Instructions beyond plain LLVM, each for some features."""
    tiles: Tiles | None = None
    """Tile statements, for those with tiles."""
    reader: Reader | None = None
    """Decoder of instructions in assembly."""
    flush_mode: FlushMode | None = None
    """Code that makes denormal numbers zeros."""
    detection: Callable[[str, str], str] | None = None
    """Detection of features at run time, see ``Target.detection``."""
    linkage: Linkage | None = None
    """Linking rules of their object code."""
    windows_functions: Mapping[str, str] = field(default_factory=dict)
    """LLVM text, without a triple, of functions that LLVM calls in code for Windows, by name."""
    llvm_switches: tuple[str, ...] = ()
    """LLVM's switches for passes of its code generator that were measured to gain nothing on emitted kernels."""
    linked_features: frozenset[str] = frozenset()
    """Features whose instructions the linker inserts; LLVM does not learn of them."""
    relocation_model: str = "pic"
    """LLVM's relocation model: ``pic`` for code that runs at any address, ``static`` where the linker decides about
    addresses."""


@cache
def _packages() -> list[str]:
    """Return the names of the packages beside this module, each of one family. A new one needs no registration."""
    return sorted(p.name for p in iter_modules([str(Path(__file__).parent)]) if p.ispkg)


@cache
def _family_of(package: str) -> Family:
    return import_module(f"{__package__}.{package}.facts").FAMILY


def families() -> tuple[Family, ...]:
    """Return the families of all packages."""
    return tuple([_family_of(package) for package in _packages()])


@cache
def _family(triple: str) -> Family | None:
    # The package named like the architecture comes first, so that the others need not be imported.
    packages = sorted(_packages(), key=lambda name: name != triple.partition("-")[0])
    return next((f for f in map(_family_of, packages) if triple.startswith(f.architectures)), None)


@cache
def _instruction(triple: str, features: str, name: str, kind: str) -> Instruction | None:
    family, on = _family(triple), set(features.split(","))
    for instruction in family.instructions if family else ():
        fits = instruction.name == name and (not instruction.kinds or kind in instruction.kinds)
        if fits and all(f"+{feature}" in on for feature in instruction.features):
            return instruction
    return None


def named_targets() -> dict[str, Target]:
    """Return the targets that ``target_named`` knows besides ``host``."""
    return {name: target for family in families() for name, target in family.named.items()}


@cache
def initialize() -> None:
    """Initialize LLVM's targets; calling it again is cheap."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()


@cache
def host_target() -> Target:
    """Return the target of the machine this process runs on."""
    initialize()
    cpu, names = processor.detected(binding.get_host_cpu_name(), binding.get_host_cpu_features())
    triple, text = binding.get_process_triple(), ",".join(f"+{name}" for name in names)
    family = _family(triple)
    return family.describe(triple, cpu, text) if family else Target(triple=triple, cpu=cpu, features=text)


def in_strict_order(target: Target) -> Target:
    """Return the same machine, with code that gives the same bits on every machine. Thresholds that decide about the
    lowered program are those of an unknown machine. Raises CompileError for GPUs, whose threads share sums."""
    if target.gpu is not None:
        raise CompileError(
            f"{target.cpu} is a GPU, whose threads share sums", remedy="use strict order with a CPU target only"
        )
    costs = replace(target.costs, fusion=DEFAULT.fusion, rewrites=DEFAULT.rewrites, strict_order=True)
    return replace(target, tile_rows=0, costs=costs)


def flushing(target: Target) -> Target:
    """Return the same machine, with programs that take denormal numbers for zeros. Raise CompileError for machines
    whose control register is not known."""
    if target.flush_mode is None:
        raise CompileError(
            f"no code for {architecture(target)} flushes denormal numbers",
            remedy="leave out flush_denormals, or build for x86-64 or aarch64",
        )
    return replace(target, flushes=True)


@cache
def target_named(name: str) -> Target:
    """Return ``host``, or one of ``named_targets``: ``sse2``, ``avx2``, ``avx512`` (x86-64), the same after
    ``windows-``, ``macos-avx2``, ``neon``, ``neon-dotprod``, ``neon-i8mm``, ``macos-neon`` (aarch64), ``rv64gc``,
    ``rv64gcv`` (riscv64), ``wasm``, ``wasm-relaxed``, ``wasm-scalar`` (WebAssembly), ``cortex-m4``, ``cortex-m7``,
    ``cortex-m55`` (thumb), ``rv32imc`` or ``rv32imfc`` (riscv32). The suffix STRICT puts it in strict order,
    FLUSH makes denormal numbers zeros. Raises CompileError for other names."""
    initialize()
    if name.endswith(FLUSH):
        return flushing(target_named(name.removesuffix(FLUSH)))
    if name.endswith(STRICT):
        return in_strict_order(target_named(name.removesuffix(STRICT)))
    if name == "host":
        return host_target()
    targets = named_targets()
    if name not in targets:
        raise CompileError(f"unknown target {name!r}", remedy=f"pass one of host, {', '.join(targets)}")
    return targets[name]


def without_tiles(target: Target) -> Target:
    """Return the same machine without tile instructions, which a process must request from Linux before use."""
    features = [name for name in target.features.split(",") if not name.startswith("+amx-")]
    return replace(target, features=",".join(features), tile_rows=0)


def architecture(target: Target) -> str:
    """Return the architecture of a target: the first part of its triple."""
    return target.triple.partition("-")[0]


def target_machine(target: Target, quick: bool = False) -> binding.TargetMachine:
    """Return LLVM's target machine in the family's relocation model. It uses the code generator's default optimisation
    level, or with ``quick`` a level that takes a tenth of the time and spills every value."""
    if target.gpu is not None:
        raise CompileError(f"{target.cpu} is a GPU: its code is CUDA C, not LLVM's")
    initialize()
    try:
        machine = binding.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise CompileError(f"LLVM has no target for {target.triple}") from error
    level = 0 if quick else 2
    family = _family(target.triple)
    linked = {f"+{feature}" for feature in family.linked_features} if family else ()
    features = ",".join(feature for feature in target.features.split(",") if feature not in linked)
    return machine.create_target_machine(
        target.cpu, features, opt=level, reloc=target.relocation_model, codemodel="small"
    )
