"""Plan of a library: records from which its code, header, demo and loader are written."""

from __future__ import annotations

import operator
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from graphc.base.dtypes import BY_NAME
from graphc.base.records import dataclass
from graphc.base.sizes.size import Dimension, is_size
from graphc.codegen.machine.linkage import is_bare, is_macos, is_wasm, is_windows
from graphc.files.manifest import Manifest, TargetSpec, TensorSpec
from graphc.files.model_manifest import AssumptionSpec
from graphc.runtime.threads import MAX_THREADS

INSIDE, BESIDE = "inside", "beside"
"""Location of the weights: in the library's read-only data, or in a file that the caller maps."""
HEADER_BYTES = 64
"""Header size of a weights file and of a saved state, in bytes: magic, size, digest, and zeros."""
CONTEXT_BYTES = 64
"""Bytes of a context before its states."""
MACHINE = "has_instructions"
"""Name, before a number, of functions that check whether the processor has the instructions of the code."""


class Status(NamedTuple):
    """Status code of a library's functions."""

    name: str
    """Name in the header, without the prefix."""
    text: str


STATUSES = (
    Status("OK", "no error"),
    Status("ERROR_NULL", "a pointer is NULL"),
    Status("ERROR_ALIGNMENT", "a pointer is not aligned as its type, or a context, arena or weights not to 64 bytes"),
    Status("ERROR_MEMORY", "a context, arena or buffer is smaller than its size function says"),
    Status("ERROR_CONTEXT", "the context was not made by the init function of this library"),
    Status("ERROR_SIZE", "the size of a named dimension is out of its range, or one that the model was not traced for"),
    Status("ERROR_INDEX", "an index or label is out of range, or a condition false; no state was written"),
    Status("ERROR_WEIGHTS", "the weights are not those that this library was built with"),
    Status("ERROR_STATE", "the saved state is not one of this model"),
    Status("ERROR_FILE", "the file cannot be opened, or not be mapped"),
    Status("ERROR_THREADS", f"the number of threads is not 1 to {MAX_THREADS}"),
    Status("ERROR_MACHINE", "this processor lacks instructions that the library was built for"),
)
"""Statuses by code."""
CODES = {status.name: code for code, status in enumerate(STATUSES)}

C_TYPES = {
    "f64": "double",
    "f32": "float",
    "i64": "int64_t",
    "i32": "int32_t",
    "i8": "int8_t",
    "u8": "uint8_t",
    "bool": "uint8_t",
    "i16": "int16_t",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "f16": "uint16_t",
    "bf16": "uint16_t",
}
"""C type of each element type; f16 and bf16 are passed as their bits. Append new ones: see ``TYPE_NUMBERS``."""
TYPE_NUMBERS = {name: number for number, name in enumerate(C_TYPES, 1)}
"""Number of each element type in the tables of a library."""


@dataclass(frozen=True)
class LibraryArgument:
    """Array read or written by a call."""

    spec: TensorSpec
    """Name and type in the model; sizes are in the entry's dimensions."""
    identifier: str
    """Name in C."""

    @property
    def ctype(self) -> str:
        """Return the C type of its elements."""
        return C_TYPES[self.spec.dtype]

    @property
    def itemsize(self) -> int:
        """Return the size of an element in bytes, which is also the alignment of the array."""
        return BY_NAME[self.spec.dtype].itemsize

    @property
    def count(self) -> Any:
        """Return the number of elements, which may be a symbolic size."""
        return prod(self.spec.shape)

    @property
    def is_fixed(self) -> bool:
        """Check whether all its sizes are numbers."""
        return not any(map(is_size, self.spec.shape))


@dataclass(frozen=True)
class Solved:
    """Equation for a dimension of the program: ``(size - rest) / factor``."""

    dimension: Dimension
    size: Any
    """Size of an input, in the dimensions of the model."""
    factor: int
    rest: Any
    """Size in program dimensions solved earlier."""


@dataclass(frozen=True)
class Equal:
    """Two sizes of an input that must be equal in each call: one in model dimensions, one in program dimensions."""

    of_model: Any
    of_program: Any


@dataclass(frozen=True)
class ProgramPlan:
    """Plan of the program of an entry for one machine."""

    symbol: str
    """Symbol of the native entry, hidden in the library."""
    manifest: Manifest
    slots: tuple[int, ...]
    """Index in the table of addresses of each input and output, then of each input that is a size."""
    assumptions: tuple[AssumptionSpec, ...]
    solved: tuple[Solved, ...]
    """Equation for each dimension of the program, in the order of solution."""
    equal: tuple[Equal, ...]
    constants: tuple[tuple[int, int], ...]
    """(table slot, offset in the weights) of each constant."""
    states: tuple[tuple[int, int], ...]
    """(table slot, offset in the context) of each state."""
    arena_slot: int
    status_slot: int
    """Table slot of the status byte; -1 if the program checks nothing."""
    threaded: bool
    """Whether the last slot of the table is the thread record."""

    @property
    def arena(self) -> Any:
        """Return the size of the arena in bytes: a number, or a size in the program's dimensions."""
        return self.manifest.arena

    @property
    def words(self) -> int:
        """Return the number of slots of the table."""
        return len(self.manifest.buffers) + len(self.manifest.dims) + self.threaded


@dataclass(frozen=True)
class EntryPlan:
    """Plan of one function that runs a model."""

    name: str
    inputs: tuple[LibraryArgument, ...]
    """Arrays passed to each call, without integer inputs that are sizes."""
    numbers: tuple[LibraryArgument, ...]
    """Integer inputs that are sizes; the library computes them."""
    outputs: tuple[LibraryArgument, ...]
    dims: tuple[Dimension, ...]
    """Named dimensions of the model, each an argument of the function."""
    dim_identifiers: tuple[str, ...]
    programs: tuple[ProgramPlan, ...]
    """One for each machine of the library."""

    @property
    def arena(self) -> Any:
        """Return the size of the arena in bytes, enough for all programs: a number, or a size in the dimensions of the
        first program."""
        arenas = [program.arena for program in self.programs]
        return arenas[0] if any(map(is_size, arenas)) else max(arenas)

    @property
    def assumptions(self) -> tuple[AssumptionSpec, ...]:
        """Return what the programs assume about the sizes of a call."""
        return tuple(dict.fromkeys(a for program in self.programs for a in program.assumptions))

    @property
    def writes(self) -> bool:
        """Check whether a call writes parameters or states."""
        return any(b.written for b in self.programs[0].manifest.of_class("param", "state"))

    @property
    def arguments(self) -> tuple[LibraryArgument, ...]:
        """Return inputs and outputs in the order of the C function."""
        return (*self.inputs, *self.outputs)


@dataclass(frozen=True)
class StatePlan:
    """Parameter or state that calls write."""

    spec: TensorSpec
    offset: int
    """Offset in the context, in bytes."""


@dataclass(frozen=True)
class LibraryPlan:
    """Plan of a whole library."""

    name: str
    """Prefix of its functions."""
    entries: tuple[EntryPlan, ...]
    states: tuple[StatePlan, ...]
    state_bytes: int
    """Size of all states in the context, a multiple of ALIGNMENT."""
    initial: int
    """Offset of the initial states in the weights."""
    initial_bytes: int
    """Size of the initial states in the weights; those after them are zeros."""
    weight_bytes: int
    weights: str
    """INSIDE or BESIDE."""
    threads: bool
    targets: tuple[TargetSpec, ...]
    """Machines that it has programs for, best first."""
    target_name: str
    detected: tuple[bool, ...]
    """Whether the library has a function that detects each machine, see ``detection``."""
    version: str
    """Version of graphc."""
    digest: bytes
    """SHA-256 digest of code and weights."""
    state_digest: bytes
    """SHA-256 digest of the names and types of the states."""
    weight_digest: bytes
    """SHA-256 digest of the weights."""

    @property
    def upper(self) -> str:
        """Return the prefix of its macros."""
        return self.name.upper()

    @property
    def triple(self) -> str:
        """Return the architecture and system of all its machines."""
        return self.targets[0].triple

    def detection(self, number: int) -> str:
        """Return the symbol of the function that detects the machine of this number."""
        return self.inner(f"{MACHINE}_{number}")

    @property
    def context_bytes(self) -> int:
        """Return the size of a context in bytes."""
        return CONTEXT_BYTES + self.state_bytes

    @property
    def is_beside(self) -> bool:
        """Check whether the weights are in a separate file."""
        return self.weights == BESIDE

    @property
    def is_bare(self) -> bool:
        """Check whether the machine has no operating system, and addresses of 32 bits."""
        return is_bare(self.triple)

    @property
    def is_windows(self) -> bool:
        """Check whether the library is a DLL."""
        return is_windows(self.triple)

    @property
    def is_macos(self) -> bool:
        """Check whether the library is for macOS."""
        return is_macos(self.triple)

    @property
    def opens_weights(self) -> bool:
        """Check whether the library has functions that map the file of weights. Those for Windows, macOS and
        WebAssembly have none: they import nothing."""
        return self.is_beside and not (self.is_windows or self.is_macos or is_wasm(self.triple))

    @cached_property
    def magic(self) -> int:
        """Return the first word of a valid context, as a signed integer: odd, and derived from the digest."""
        return int.from_bytes(self.digest[:8], "little", signed=True) | 1

    def symbol(self, name: str) -> str:
        """Return the symbol of an exported function or table."""
        return f"{self.name}_{name}"

    def inner(self, name: str) -> str:
        """Return the symbol of an internal function or constant."""
        return f"{self.name}__{name}"

    @property
    def exports(self) -> tuple[str, ...]:
        """Return the sorted exported symbols."""
        names = ["version", "digest", "target", "context_size", "init", "error_text"]
        names += [f"{entry.name}{end}" for entry in self.entries for end in ("", "_arena_size")]
        names += [f"{entry.name}_{table}" for entry in self.entries for table in ("inputs", "outputs")]
        names += ["state_size", "save_state", "load_state", "reset_state"]
        names += ["open_weights", "close_weights"] if self.opens_weights else []
        names += ["set_threads", "forget_threads"] if self.threads else []
        return tuple(sorted(map(self.symbol, names)))

    @property
    def tables(self) -> frozenset[str]:
        """Return the exported symbols that are data: the tables of inputs and outputs."""
        return frozenset(self.symbol(f"{e.name}_{table}") for e in self.entries for table in ("inputs", "outputs"))


RESERVED = frozenset(
    (
        *("version", "digest", "target", "context_size", "init", "error_text", "t", "tensor", "tensor_t"),
        *("state_size", "save_state", "load_state", "reset_state", "open_weights", "close_weights"),
        *("set_threads", "forget_threads"),
    )
)
"""Names that an entry cannot have."""


def shape_text(spec: TensorSpec) -> str:
    """Format a shape as in the tables and the header: ``batch,28``."""
    return ",".join(map(str, spec.shape))


def number_or(size: Any, otherwise: int) -> int:
    """Return a constant size as an integer, and ``otherwise`` for a symbolic one."""
    return otherwise if is_size(size) else operator.index(size)
