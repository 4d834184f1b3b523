"""What a library consists of, as plain records from which its code, header, demo and loader are written."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from graphc.base.dtypes import BY_NAME
from graphc.base.sizes.size import Dimension, is_size
from graphc.files.manifest import Manifest, TargetSpec, TensorSpec
from graphc.files.model_manifest import AssumptionSpec
from graphc.runtime.threads import MAX_THREADS

INSIDE, BESIDE = "inside", "beside"
"""Where the weights of a library lie: in its read-only data, or in a file that the caller maps."""
HEADER_BYTES = 64
"""Bytes before the content of a file of weights and of a saved state: magic, size, digest, and zeros."""
CONTEXT_BYTES = 64
"""Bytes of a context before its states."""
MACHINE = "has_instructions"
"""Name of the function that tells whether the processor has what the code was built for."""


class Status(NamedTuple):
    """What a function of a library returns."""

    name: str
    """Behind the prefix in the header."""
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
"""By code."""
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
"""Of the elements of inputs and outputs; f16 and bf16 are their bits. New ones come last: see ``TYPE_NUMBERS``."""
TYPE_NUMBERS = {name: number for number, name in enumerate(C_TYPES, 1)}
"""What the tables of a library call element types."""


@dataclass(frozen=True)
class Argument:
    """An array that a call takes or fills."""

    spec: TensorSpec
    """As the model has it: its sizes depend on the dimensions of the entry."""
    identifier: str
    """What C calls it."""
    slot: int
    """Its word of the table."""

    @property
    def ctype(self) -> str:
        """Type of its elements in C."""
        return C_TYPES[self.spec.dtype]

    @property
    def itemsize(self) -> int:
        """Bytes of an element, at a multiple of which it must lie."""
        return BY_NAME[self.spec.dtype].itemsize

    @property
    def count(self) -> Any:
        """How many elements it has; may be a size."""
        return prod(self.spec.shape)

    @property
    def is_fixed(self) -> bool:
        """Whether it has the same sizes in all calls."""
        return not any(map(is_size, self.spec.shape))


@dataclass(frozen=True)
class Solved:
    """How a dimension of the program follows from the sizes of the model: ``(size - rest) / factor``."""

    dimension: Dimension
    size: Any
    """Of an input, in the dimensions of the model."""
    factor: int
    rest: Any
    """In dimensions of the program that were solved before."""


@dataclass(frozen=True)
class Equal:
    """Two sizes of an input that must be the same in each call: that of the model, and that of the program."""

    of_model: Any
    of_program: Any


@dataclass(frozen=True)
class EntryPlan:
    """One function that runs a model."""

    name: str
    symbol: str
    """Of the native entry, hidden in the library."""
    manifest: Manifest
    inputs: tuple[Argument, ...]
    """What each call gives; numbers that are sizes are left out."""
    numbers: tuple[Argument, ...]
    """Inputs that are sizes: the library fills them in."""
    outputs: tuple[Argument, ...]
    dims: tuple[Dimension, ...]
    """Named dimensions of the model, each an argument of the function."""
    dim_identifiers: tuple[str, ...]
    assumptions: tuple[AssumptionSpec, ...]
    solved: tuple[Solved, ...]
    """Each dimension of the program, in an order in which it can be solved."""
    equal: tuple[Equal, ...]
    constants: tuple[tuple[int, int], ...]
    """(word of the table, offset in the weights) of each constant."""
    states: tuple[tuple[int, int], ...]
    """(word of the table, offset in the context) of each state."""
    arena_slot: int
    status_slot: int
    """Of the table; -1 where nothing is checked."""
    threaded: bool
    """Whether the last word of the table is the record of threads."""

    @property
    def arena(self) -> Any:
        """Bytes of the arena: a number, or a size of the dimensions of the program."""
        return self.manifest.arena

    @property
    def words(self) -> int:
        """Words of the table."""
        return len(self.manifest.buffers) + len(self.manifest.dims) + self.threaded

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Inputs and outputs in the order of the function."""
        return (*self.inputs, *self.outputs)


@dataclass(frozen=True)
class StatePlan:
    """A parameter or state that calls write."""

    spec: TensorSpec
    offset: int
    """In the context."""


@dataclass(frozen=True)
class LibraryPlan:
    """Everything that texts and code of a library say."""

    name: str
    """What its functions begin with."""
    entries: tuple[EntryPlan, ...]
    states: tuple[StatePlan, ...]
    state_bytes: int
    """Of all states in the context, a multiple of ALIGNMENT."""
    initial: int
    """Offset in the weights of what the states are at first."""
    weight_bytes: int
    weights: str
    """INSIDE or BESIDE."""
    threads: bool
    target: TargetSpec
    target_name: str
    detected: bool
    """Whether there is a function MACHINE."""
    version: str
    """Of graphc."""
    digest: bytes
    """32 bytes of which another code or other weights have others."""
    state_digest: bytes
    """The same for names and types of the states."""
    weight_digest: bytes
    """The same for the weights."""

    @property
    def upper(self) -> str:
        """What its macros begin with."""
        return self.name.upper()

    @property
    def context_bytes(self) -> int:
        """Bytes of a context."""
        return CONTEXT_BYTES + self.state_bytes

    @property
    def is_beside(self) -> bool:
        """Whether the weights are in a file of their own."""
        return self.weights == BESIDE

    @cached_property
    def magic(self) -> int:
        """The first word of a context."""
        return int.from_bytes(self.digest[:8], "little") | 1

    def symbol(self, name: str) -> str:
        """Of a function or table that the caller sees."""
        return f"{self.name}_{name}"

    def inner(self, name: str) -> str:
        """Of what only the library sees."""
        return f"{self.name}__{name}"

    @property
    def exports(self) -> tuple[str, ...]:
        """The symbols that the caller sees, sorted."""
        names = ["version", "digest", "target", "context_size", "init", "error_text"]
        names += [f"{entry.name}{end}" for entry in self.entries for end in ("", "_arena_size")]
        names += [f"{entry.name}_{table}" for entry in self.entries for table in ("inputs", "outputs")]
        names += ["state_size", "save_state", "load_state", "reset_state"]
        names += ["open_weights", "close_weights"] if self.is_beside else []
        names += ["set_threads", "forget_threads"] if self.threads else []
        return tuple(sorted(map(self.symbol, names)))


RESERVED = frozenset(
    (
        *("version", "digest", "target", "context_size", "init", "error_text", "t", "tensor", "tensor_t"),
        *("state_size", "save_state", "load_state", "reset_state", "open_weights", "close_weights"),
        *("set_threads", "forget_threads"),
    )
)
"""What no entry can be called."""


def shape_text(spec: TensorSpec) -> str:
    """Its sizes as the tables and the header write them: ``batch,28``."""
    return ",".join(map(str, spec.shape))


def number_or(size: Any, otherwise: int) -> int:
    """A size that is the same in all calls, or what stands for others."""
    return otherwise if is_size(size) else operator.index(size)
