"""What code is made for: triple, CPU, features, the facts that the schedule needs, and what things cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from llvmlite import binding

from graphc.base import processor
from graphc.base.dtypes import DType
from graphc.base.errors import CompileError
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.codegen.machine.instruction import Instruction
from graphc.codegen.machine.linkage import Linkage
from graphc.codegen.machine.roofline import Roofline
from graphc.codegen.machine.step import Reader
from graphc.codegen.machine.tiles import Tiles


@dataclass(frozen=True)
class Waits:
    """How a thread of a family of processors waits for a word of memory on Linux."""

    futex: int
    """Number of the system call with which it sleeps until another thread wakes it."""


@dataclass(frozen=True, kw_only=True)
class GpuFacts:
    """What a GPU has. What its compute capability does not say is that of the board which is named with the numbers."""

    processors: int
    """Streaming multiprocessors of the board."""
    processor_threads: int = 2048
    """Threads that a multiprocessor holds at a time."""
    processor_registers: int = 64 * 1024
    """Registers of 32 bits of a multiprocessor."""
    processor_shared: int
    """Bytes of shared memory of a multiprocessor."""
    block_threads: int = 1024
    """Threads of a block at most."""
    block_shared: int
    """Bytes of shared memory that a block may ask for at a launch."""
    warp: int = 32
    """Threads of a warp."""
    l2_bytes: int
    """Bytes of the cache that all multiprocessors of the board share."""
    memory_rate: float
    """Bytes that the board's memory gives or takes in a second at best."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A machine: facts, which are documented or detected, and what things cost on it."""

    triple: str
    cpu: str = ""
    features: str = ""
    """LLVM feature string, sorted: ``+avx2,+fma,...``."""
    vector_bytes: int = 16
    """Bytes of a vector register."""
    registers: int = 16
    """Number of vector registers."""
    streams: int = 8
    """Rows that one loop may read side by side: each takes a register for its address, unless an address may be a sum
    of two registers and any constant."""
    masked: bool = False
    """True when masked loads and stores of any length are cheap."""
    fma: bool = False
    """True when fused multiply-add is one instruction."""
    memory_operands: bool = False
    """True when a multiply-add reads an operand from memory, which then takes no register."""
    tile_rows: int = 0
    """Rows of a register that holds a tile, as many f32 each, with products of bf16 that are added to all of them; 0
    where there are none."""
    waits: Waits | None = None
    """How threads wait for each other on Linux; None where that is not known."""
    cycle_fence: str = ""
    """LLVM's intrinsic that waits until all before it is done, for the counter of cycles to tell what took which time;
    empty where programs may not read such a counter."""
    l1_bytes: int = 32 * 1024
    l2_bytes: int = 512 * 1024
    llc_bytes: int = 8 << 20
    """Bytes of the last-level cache that one core can count on."""
    line_bytes: int = 64
    """Bytes of a cache line."""
    page_bytes: int = 4096
    """Bytes of a page, and of the stride at which lines meet in one set of the L1 cache."""
    near_pages: int = 64
    """Pages of which a core keeps the addresses at hand: entries of its first data TLB. Documented: 64 in Skylake and
    Zen 2, more in newer ones."""
    gpu: GpuFacts | None = field(default=None, repr=False)
    """What a GPU has, as ``cpu`` says; None of other machines."""
    costs: Costs = DEFAULT

    def lanes(self, dtype: DType) -> int:
        """Elements of ``dtype`` in one vector register."""
        return max(1, self.vector_bytes // dtype.itemsize)

    @property
    def roofline(self) -> Roofline:
        """What one core does at best."""
        return Roofline(self.costs.speeds, self.l1_bytes, self.l2_bytes, self.llc_bytes)

    @property
    def l1_ways(self) -> int:
        """Lines of a set of the L1 cache, of which a page holds one of each set."""
        return max(1, self.l1_bytes // self.page_bytes)

    @property
    def has_pool(self) -> bool:
        """True where a pool of worker threads can be emitted: Linux on a processor of which is known how it waits."""
        return "linux" in self.triple and self.waits is not None

    def instruction(self, name: str, kind: str = "") -> Instruction | None:
        """The instruction that does this for an LLVM type; None where the machine has none."""
        return _instruction(self.triple, self.features, name, kind)

    @property
    def tiles(self) -> Tiles | None:
        """What works on tiles; None where there are none."""
        family = _family(self.triple) if self.tile_rows else None
        return family.tiles if family else None

    @property
    def reader(self) -> Reader | None:
        """How instructions in assembly are read; None where that is not known."""
        family = _family(self.triple)
        return family.reader if family else None

    def detection(self, name: str) -> str:
        """LLVM text of a function of this name that tells (i1) whether the processor has the features that code for
        this target uses; empty where that is not known, and where all have them."""
        family = _family(self.triple)
        return family.detection(self.features, name) if family and family.detection else ""

    def has(self, feature: str) -> bool:
        """True when an LLVM feature such as ``avx512f`` is on."""
        return f"+{feature}" in self.features.split(",")


@dataclass(frozen=True)
class Family:
    """Targets of one architecture: what the package of that name in this room has as ``facts.FAMILY``."""

    architectures: tuple[str, ...]
    """How their triples begin."""
    named: Mapping[str, Target]
    """Targets with fixed facts, by name."""
    describe: Callable[[str, str, str], Target]
    """A target of a triple, the name of a CPU, and the features that were detected."""
    instructions: tuple[Instruction, ...] = ()
    """What its processors have beyond plain LLVM, for some features each."""
    tiles: Tiles | None = None
    """What works on tiles, on those of them that have any."""
    reader: Reader | None = None
    """How instructions in assembly are read."""
    detection: Callable[[str, str], str] | None = None
    """What tells whether a processor has features, see ``Target.detection``."""
    linkage: Linkage | None = None
    """How object code for them is linked."""


@cache
def families() -> tuple[Family, ...]:
    """One for each package beside this module: a new one needs to be written down nowhere else."""
    folders = sorted(p.name for p in iter_modules([str(Path(__file__).parent)]) if p.ispkg)
    return tuple(import_module(f"{__package__}.{name}.facts").FAMILY for name in folders)


@cache
def _family(triple: str) -> Family | None:
    return next((f for f in families() if triple.startswith(f.architectures)), None)


@cache
def _instruction(triple: str, features: str, name: str, kind: str) -> Instruction | None:
    family, on = _family(triple), set(features.split(","))
    for found in family.instructions if family else ():
        fits = found.name == name and (not found.kinds or kind in found.kinds)
        if fits and all(f"+{feature}" in on for feature in found.features):
            return found
    return None


def named_targets() -> dict[str, Target]:
    """The targets that ``target_named`` knows besides ``host``."""
    return {name: target for family in families() for name, target in family.named.items()}


@cache
def initialize() -> None:
    """Makes LLVM's targets known; safe to call often."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()


@cache
def host_target() -> Target:
    """The machine this process runs on."""
    initialize()
    cpu, names = processor.detected(binding.get_host_cpu_name(), binding.get_host_cpu_features())
    triple, text = binding.get_process_triple(), ",".join(f"+{name}" for name in names)
    family = _family(triple)
    return family.describe(triple, cpu, text) if family else Target(triple=triple, cpu=cpu, features=text)


STRICT = ":strict"
"""What the name of a target ends in that keeps the order of sums: ``avx2:strict``."""


def in_strict_order(target: Target) -> Target:
    """The same machine, with code that gives the same bits on every machine: no sum in another order, no product added
    without being rounded. Raises CompileError for GPUs, whose threads share sums."""
    if target.gpu is not None:
        raise CompileError(f"{target.cpu} is a GPU, whose threads share sums", remedy="strict order is for CPUs")
    return replace(target, fma=False, tile_rows=0, costs=replace(target.costs, strict_order=True))


@cache
def target_named(name: str) -> Target:
    """``host``, or one of ``named_targets``: ``sse2``, ``avx2``, ``avx512`` (x86-64), ``neon`` (aarch64),
    ``rv64gc`` or ``rv64gcv`` (riscv64), in strict order where STRICT follows; raises CompileError for others."""
    initialize()
    if name.endswith(STRICT):
        return in_strict_order(target_named(name.removesuffix(STRICT)))
    if name == "host":
        return host_target()
    known = named_targets()
    if name not in known:
        raise CompileError(f"unknown target {name!r}", remedy=f"one of host, {', '.join(known)}")
    return known[name]


def without_tiles(target: Target) -> Target:
    """The same machine without the instructions on tiles, for which a process has to ask Linux before it uses them."""
    kept = [name for name in target.features.split(",") if not name.startswith("+amx-")]
    return replace(target, features=",".join(kept), tile_rows=0)


def architecture(target: Target) -> str:
    """The architecture of a target: the first part of its triple."""
    return target.triple.partition("-")[0]


def target_machine(target: Target, quick: bool = False) -> binding.TargetMachine:
    """LLVM's target machine for position-independent code at the default optimisation level of the code generator, or
    at the level that takes a tenth of the time and spills every value."""
    if target.gpu is not None:
        raise CompileError(f"{target.cpu} is a GPU: its code is CUDA C, not LLVM's")
    initialize()
    try:
        machine = binding.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise CompileError(f"LLVM has no target for {target.triple}") from error
    level = 0 if quick else 2
    return machine.create_target_machine(target.cpu, target.features, opt=level, reloc="pic", codemodel="small")
