"""Manifest of a native program, the plain data of the runtime, and strict conversion of records to and from JSON."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field, fields
from functools import cache, partial
from math import prod
from typing import Any

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArgumentError, ArtifactError
from graphc.base.records import NamedTuple, dataclass
from graphc.base.sizes.named_dims import dimensions, is_name, parse_size
from graphc.base.sizes.shape_patterns import Number
from graphc.base.sizes.size import LARGEST, Dimension, bounds, is_size
from graphc.files.container import ALIGNMENT, MAX_BYTES

MAX_RANK = 64
MAX_ENTRIES = 1 << 20
"""Largest number of tensors, buffers or ops in a file."""
MAX_NAME = 4096
MAX_SIZE = 16_384

INTERRUPTIBLE_NS = 10_000_000
"""Expected nanoseconds on one core from which programs poll for Ctrl-C (see threads.polls)."""
PREPACKED = "%"
"""Prefix of the path of a param that a prepacking program makes from weights; the rest names its output there."""
BUFFER_CLASSES = ("input", "param", "state", "output", "status", "constant", "arena")
Extent = typing.Annotated[int, "or a size"]
"""Number, or size of the named dimensions that the record around it declares; JSON has the text of a size."""

# ---- records


@dataclass(frozen=True)
class TensorSpec:
    """Name and type of an input, output, parameter or state of a model; extents may depend on named dimensions."""

    name: str
    dtype: str
    shape: tuple[Extent, ...]
    equals: Extent | None = field(default=None, kw_only=True)
    """For an integer argument, an i64[] input: the size that its value is."""

    def __post_init__(self) -> None:
        check_tensor(self.name, self.dtype, self.shape)
        good = self.equals is None or (self.dtype == "i64" and self.shape == ())
        require(good, f"{self.name!r} is {self.dtype}{list(self.shape)}, but an integer argument is i64[]")

    @property
    def pattern(self) -> tuple[Extent, ...]:
        """The shape in the form that ShapePatterns takes."""
        return self.shape if self.equals is None else Number((self.equals,))

    @property
    def nbytes(self) -> int:
        """Bytes of a dense array of this type."""
        return prod(self.shape) * BY_NAME[self.dtype].itemsize

    def __str__(self) -> str:
        if self.equals is not None:
            return f"{self.name}: int = {self.equals}"
        return f"{self.name}: {self.dtype}[{','.join(map(str, self.shape))}]"


def signature(name: str, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> str:
    """Format name, inputs and outputs."""
    return f"{name}({', '.join(map(str, inputs))}) -> ({', '.join(map(str, outputs))})"


class Recipe(NamedTuple):
    """Computation of one output of a prepacking: outputs with equal digests are equal if their inputs are."""

    digest: str
    inputs: tuple[int, ...]
    """Indices of the prepacking's inputs that it reads, in the order of the digest."""

    def __str__(self) -> str:
        return " ".join([self.digest, *map(str, self.inputs)])

    @classmethod
    def parse(cls, text: str) -> Recipe:
        """Return the recipe with this text."""
        digest, *inputs = text.split()
        return cls(digest, tuple(map(int, inputs)))


@dataclass(frozen=True)
class BufferSpec(TensorSpec):
    """Argument of the native entry."""

    cls: str
    """One of BUFFER_CLASSES."""
    path: str = ""
    """Qualified name of a param or state, or of the weight of the file whose bytes a constant has; of an output of a
    prepacking, the text of its Recipe."""
    offset: int = -1
    """Byte offset of a constant in the constant block, else -1; also -1 for a constant that is a weight."""
    written: bool = False
    """Whether a call writes to it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.cls in BUFFER_CLASSES, f"buffer {self.name!r} has the unknown class {self.cls!r}")
        in_block = self.cls == "constant" and not self.path
        require((self.offset >= 0) == in_block, f"buffer {self.name!r} has the offset {self.offset}")

    def of_shape(self, shape: tuple[int, ...]) -> BufferSpec:
        """Return a copy with the shape of a call, without checks, because a copy is made for each new size."""
        copy = object.__new__(BufferSpec)
        copy.__dict__.update(self.__dict__, shape=shape)
        return copy


@dataclass(frozen=True)
class TargetSpec:
    """Machine that native code was built for."""

    triple: str
    cpu: str
    features: tuple[str, ...]
    """Instruction set extensions that the code may use, sorted; it runs only on machines with all of them."""
    strict_order: bool = False
    """Whether sums are added in source order (``machine.costs.Costs.strict_order``)."""


@dataclass(frozen=True)
class Manifest:
    """Description of a native program for the runtime: one entry, its buffers in call order, and its memory."""

    name: str
    entry: str
    """Symbol of ``void entry(void **buffers)``."""
    buffers: tuple[BufferSpec, ...]
    """In call order: inputs, params and states in the order of the graph, outputs, the status, constants, the arena
    last.

    The status is one bool, false at entry; a call sets it if it stops before it writes to params and states.
    """
    arena: Extent
    """Bytes of scratch memory of a call, 64-byte aligned."""
    constants: int
    """Bytes of the constant block, 64-byte aligned."""
    target: TargetSpec
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of graphc, llvmlite and llvm that built the code."""
    nanoseconds: int = 0
    """Rough time of a call on one core; 0: unknown. Short calls keep the interpreter lock."""
    dims: tuple[Dimension, ...] = ()
    """Named dimensions in order of name; a call passes their sizes after the address of the arena."""
    chosen: int = 0
    """Number of kernels with several versions, one of which runs in a call."""

    def __post_init__(self) -> None:
        check_dims(self.dims, [*(n for b in self.buffers for n in b.pattern), self.arena])
        require(self.chosen >= 0, f"{self.chosen} kernels have several versions")
        require(self.nanoseconds >= 0, f"the expected time is {self.nanoseconds}")
        require(self.entry.isidentifier(), f"the entry {self.entry!r} is not an identifier")
        require(
            is_size(self.arena) or 0 <= self.arena <= MAX_BYTES,
            f"the arena has {self.arena} bytes, at most {MAX_BYTES} are allowed",
        )
        require(0 <= self.constants <= MAX_BYTES, f"the constants take {self.constants} bytes")
        require(len(self.buffers) <= MAX_ENTRIES, f"there are {len(self.buffers)} buffers")
        names = {b.name for b in self.buffers}
        require(len(names) == len(self.buffers), "two buffers have the same name")
        for buffer in self.buffers:
            require(buffer.offset % ALIGNMENT in (0, ALIGNMENT - 1), f"constant {buffer.name!r} is not aligned")
            is_inside = buffer.offset < 0 or buffer.offset + buffer.nbytes <= self.constants
            require(is_inside, f"constant {buffer.name!r} ends outside of the constant block")

    def of_class(self, *classes: str) -> tuple[BufferSpec, ...]:
        """The buffers of these classes, in call order."""
        return tuple(b for b in self.buffers if b.cls in classes)


def require(condition: bool, what: str) -> None:
    """Raise ArtifactError unless the condition holds."""
    if not condition:
        raise ArtifactError(what)


def check_tensor(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    """Raise ArtifactError for an invalid name, type or shape, or one beyond the limits."""
    # Files have thousands of tensors, most of them with fixed shapes; the messages below would take most of the time.
    if len(name) <= MAX_NAME and len(shape) <= MAX_RANK and dtype in BY_NAME and set(map(type, shape)) <= {int}:
        element = BY_NAME[dtype]
        if element.name == dtype and min(shape, default=1) > 0 and prod(shape) * element.itemsize <= MAX_BYTES:
            return
    require(len(name) <= MAX_NAME, f"a name has {len(name)} characters, at most {MAX_NAME} are allowed")
    require(dtype in BY_NAME and BY_NAME[dtype].name == dtype, f"{name!r} has the unknown element type {dtype!r}")
    require(len(shape) <= MAX_RANK, f"{name!r} has rank {len(shape)}, at most {MAX_RANK} is allowed")
    # Bounds ignore the model's assumptions, so a size may look negative: time - 1 if the model assumes time > 1.
    ranges = [bounds(extent) for extent in shape]
    require(all(most >= 0 for _, most in ranges), f"{name!r} has the shape {list(shape)}")
    nbytes = prod(max(least, 1) for least, _ in ranges) * BY_NAME[dtype].itemsize
    require(nbytes <= MAX_BYTES, f"{name!r} with shape {list(shape)} takes {nbytes} bytes, at most {MAX_BYTES}")


def check_dims(dims: tuple[Dimension, ...], sizes: list[Any]) -> None:
    """Raise ArtifactError unless ``dims`` declare every dimension of the sizes, in order and within limits."""
    names = [d.name for d in dims]
    require(names == sorted(set(names)), "the dimensions are not in order of their names")
    for d in dims:
        good = is_name(d.name) and 0 <= d.low <= d.hint <= d.high <= LARGEST and len(d.name) <= MAX_NAME
        require(good, f"the dimension {d.name[:60]!r} has the sizes {d.low}..{d.high}, expected {d.hint}")
    try:
        used = dimensions(sizes)
    except ArgumentError as error:
        raise ArtifactError(error.what) from None
    require(all(d in dims for d in used.values()), f"the dimensions {', '.join(used)} are not all declared")


# ---- records to JSON and back


def to_json(record: Any) -> bytes:
    """Convert a record to JSON; equal records give equal bytes. Symbolic sizes become their text.

    Raises ArtifactError for a size whose text cannot be read again.
    """
    plain = _without_dims(asdict(record))
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_encode_size).encode()


def _encode_size(size: Any) -> str:
    text = str(size)
    try:
        _decode_size(text, dimensions([size]))
    except _Misfit as error:
        raise ArtifactError(f"a size{error.what}") from None
    return text


_OF_DIMS: Mapping[str, Any] = {"dims": [], "assumptions": [], "chosen": 0}
"""Fields that only records with named dimensions have in JSON, with their values in other records."""
_OPTIONAL: Mapping[str, Any] = {
    "equals": None,
    "strict_order": False,
    "texts": "",
    "segments": [],
    "paths": [],
    "classes": {},
    "zeros": False,
}
"""Fields that only these records have in JSON, with their values in other records: integer inputs, code in strict
order, entries with texts, entries of several programs, entries with others for other sizes, entries of modules, and
states that begin as zeros."""


def _without_dims(value: Any) -> Any:
    """Remove optional fields with their default value."""
    if isinstance(value, (list, tuple)):
        return [_without_dims(child) for child in value]
    if not isinstance(value, dict):
        return value
    empty = {key for key in _OF_DIMS if not value.get(key)}
    empty |= {key for key, default in _OPTIONAL.items() if value.get(key) in (default, ())}
    return {key: _without_dims(child) for key, child in value.items() if key not in empty}


def from_json(cls: type, text: bytes) -> Any:
    """Return the record of class ``cls`` that ``to_json`` wrote; raises ArtifactError for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"the manifest is not valid JSON: {error}") from None
    try:
        return _decoder(cls)(value, {})
    except _Misfit as error:
        raise ArtifactError(f"manifest{error.place}{error.what}") from None


Dims = Mapping[str, Dimension]
Decoder = Callable[[Any, Dims], Any]
"""Convert a JSON value strictly, with sizes of the dimensions that enclosing records declare."""


class _Misfit(Exception):
    """A JSON value does not match its field."""

    def __init__(self, what: str):
        super().__init__(what)
        self.what = what
        self.place = ""
        """Path of the value in the record, extended from the inside out."""

    def inside(self, step: str) -> _Misfit:
        """Prepend a step to the path."""
        self.place = step + self.place
        return self


@cache
def _decoder(kind: Any) -> Decoder:
    """Return the decoder of a record, a scalar type, or a tuple or dict of these; cached."""
    # NOTE: is_dataclass would generate the fields of classes of which a file may have no record.
    if isinstance(kind, type) and "__dataclass_fields__" in vars(kind):
        return _record_decoder(kind)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind == Extent:
        return lambda value, dims: _decode_size(value, dims) if type(value) is str else _decode_plain(int, value)
    if origin is tuple:
        return partial(_decode_tuple, _decoder(args[0]))
    if origin is dict:
        return partial(_decode_dict, _decoder(args[1]))
    if origin in (types.UnionType, typing.Union):
        decode = _decoder(args[0])
        return lambda value, dims: None if value is None else decode(value, dims)
    return lambda value, dims: _decode_plain(kind, value)


def _decode_plain(kind: Any, value: Any) -> Any:
    if kind is Any or type(value) is kind:
        return value
    raise _Misfit(f" has the wrong type: {str(value)[:60]!r}")


def _decode_tuple(decode: Decoder, value: Any, dims: Dims) -> tuple[Any, ...]:
    if type(value) is not list:
        _decode_plain(list, value)
    items: list[Any] = []
    try:
        for item in value:
            items.append(decode(item, dims))
    except _Misfit as error:
        raise error.inside(f"[{len(items)}]") from None
    return tuple(items)


def _decode_dict(decode: Decoder, value: Any, dims: Dims) -> dict[str, Any]:
    if type(value) is not dict:
        _decode_plain(dict, value)
    items: dict[str, Any] = {}
    key = ""
    try:
        for key, item in value.items():
            items[key] = decode(item, dims)
    except _Misfit as error:
        raise error.inside(f".{key}") from None
    return items


def _decode_size(text: str, dims: Dims) -> Any:
    if len(text) > MAX_SIZE:
        raise _Misfit(f" has {len(text)} characters, at most {MAX_SIZE} are allowed")
    try:
        return parse_size(text, dims)
    except ArgumentError as error:
        raise _Misfit(f": {error.what}") from None


@cache
def _field_decoders(cls: Any) -> dict[str, Decoder]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return {f.name: _decoder(hints[f.name]) for f in fields(cls)}


def _record_decoder(cls: Any) -> Decoder:
    def decode(value: Any, dims: Dims) -> Any:
        decoders = _field_decoders(cls)
        if type(value) is dict:
            value, dims = _completed(value, decoders, dims)
        if type(value) is not dict or value.keys() != decoders.keys():
            raise _Misfit(f" does not have exactly the fields {', '.join(sorted(decoders))}")
        arguments: dict[str, Any] = {}
        name = ""
        try:
            for name, decoder in decoders.items():
                arguments[name] = decoder(value[name], dims)
        except _Misfit as error:
            raise error.inside(f".{name}") from None
        return cls(**arguments)

    return decode


def _completed(value: dict[str, Any], names: Mapping[str, Decoder], dims: Dims) -> tuple[dict[str, Any], Dims]:
    """Add the optional fields that JSON omits; return the record and the dimensions declared in it."""
    if "dims" in names:
        try:
            declared = names["dims"](value.get("dims", []), {})
        except _Misfit as error:
            raise error.inside(".dims") from None
        dims = {d.name: d for d in declared}
    optional = {name: default for name, default in {**_OF_DIMS, **_OPTIONAL}.items() if name in names}
    if stray := [name for name, default in optional.items() if name in value and value[name] == default]:
        raise _Misfit(f".{', '.join(stray)} has the value that it has if it is left out")
    value = {**optional, **value}
    return value, dims
