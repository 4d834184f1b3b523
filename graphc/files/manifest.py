"""What a compiled model consists of: manifest records as plain data, and their file."""

from __future__ import annotations

import json
import os
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from graphc.base.assumptions import Assumption, is_so, told
from graphc.base.dtypes import BY_NAME, layout_of
from graphc.base.errors import ArgumentError, ArtifactError
from graphc.base.named_dims import dimensions, parse_size
from graphc.base.shape_patterns import Number
from graphc.base.size import LARGEST, Dimension, bounds, is_size
from graphc.files.container import ALIGNMENT, MAX_BYTES, align, read_with_digest, write_sections

IR_VERSION = 1
"""Version of the graph text."""
MAX_MANIFEST = 1 << 26
MAX_TEXT = 1 << 28
MAX_RANK = 64
MAX_ENTRIES = 1 << 20
"""Most tensors, buffers or ops of a file."""
MAX_NAME = 4096
MAX_SIZE = 16_384
MAX_DEPTH = 64
"""Deepest nesting of the output structure."""

INTERRUPTIBLE_NS = 10_000_000
"""Programs that are expected to take as long on one core have polls (see threads.polls), at which Ctrl-C ends them
early; nobody waits for others."""
PREPACKED = "%"
"""How the path of a param begins that another program makes of weights; the rest is the name of its output there."""
BUFFER_CLASSES = ("input", "param", "state", "output", "status", "constant", "arena")
SECTIONS = {"manifest": MAX_MANIFEST, "graph": MAX_TEXT, "data": MAX_BYTES, "weights": MAX_BYTES}
"""Sections that every file has, in this order, with their limits."""
NATIVE_SECTIONS = {"constants": MAX_BYTES, "object": MAX_BYTES}
"""Sections that follow when the file carries native code."""

Extent = typing.Annotated[int, "or a size"]
"""A number, or a size of the named dimensions that the record around it declares; in JSON the text of one."""
Structure = Any
"""How outputs are nested: an output's number, null, ``{"tuple": [...]}``, ``{"list": [...]}``,
``{"dict": [[key, ...], ...]}``."""


# ---- records


@dataclass(frozen=True)
class TensorSpec:
    """Name and type of an input, output, parameter or state of a model; extents may depend on named dimensions."""

    name: str
    dtype: str
    shape: tuple[Extent, ...]
    equals: Extent | None = field(default=None, kw_only=True)
    """The size that the only element of an input is, which is a whole number that each call gives."""

    def __post_init__(self) -> None:
        _check_tensor(self.name, self.dtype, self.shape)
        good = self.equals is None or (self.dtype == "i64" and self.shape == ())
        _require(good, f"{self.name!r} is {self.dtype}{list(self.shape)}, a size is given by an i64[]")

    @property
    def pattern(self) -> tuple[Extent, ...]:
        """The shape, as ShapePatterns takes it."""
        return self.shape if self.equals is None else Number((self.equals,))

    @property
    def nbytes(self) -> int:
        """Bytes of a dense array of this type."""
        return prod(self.shape) * BY_NAME[self.dtype].itemsize

    def __str__(self) -> str:
        if self.equals is not None:
            return f"{self.name}: int = {self.equals}"
        return f"{self.name}: {self.dtype}[{','.join(map(str, self.shape))}]"


class Recipe(NamedTuple):
    """How a prepacking makes one of its outputs: two outputs of equal digests are equal where their inputs are."""

    digest: str
    inputs: tuple[int, ...]
    """Numbers of the inputs of the prepacking that it reads, in the order that the digest counts them."""

    def __str__(self) -> str:
        return " ".join([self.digest, *map(str, self.inputs)])

    @classmethod
    def parse(cls, text: str) -> Recipe:
        """The recipe of which this is the text."""
        digest, *inputs = text.split()
        return cls(digest, tuple(map(int, inputs)))


@dataclass(frozen=True)
class BufferSpec(TensorSpec):
    """One argument of the native entry."""

    cls: str
    """One of BUFFER_CLASSES."""
    path: str = ""
    """Qualified name of a param or state; of an output of a prepacking, the text of its Recipe."""
    offset: int = -1
    """Byte offset of a constant in the constant block, else -1."""
    written: bool = False
    """Whether a call writes to it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.cls in BUFFER_CLASSES, f"buffer {self.name!r} has the unknown class {self.cls!r}")
        _require((self.offset >= 0) == (self.cls == "constant"), f"buffer {self.name!r} has the offset {self.offset}")

    def of_shape(self, shape: tuple[int, ...]) -> BufferSpec:
        """The same of the shape that a call has, which nothing checks: it is made anew for each size."""
        made = object.__new__(BufferSpec)
        made.__dict__.update(self.__dict__, shape=shape)
        return made


@dataclass(frozen=True)
class TargetSpec:
    """The machine that native code was built for."""

    triple: str
    cpu: str
    features: tuple[str, ...]
    """Names of the instruction set extensions that it may use, sorted; it runs only where all of them exist."""
    strict_order: bool = False
    """Whether it adds up in the order that is written (``machine.costs.Costs.strict_order``)."""


@dataclass(frozen=True)
class Manifest:
    """What the runtime knows of a native program: one entry, its buffers in call order, and its memory."""

    name: str
    entry: str
    """Symbol of ``void entry(void **buffers)``."""
    buffers: tuple[BufferSpec, ...]
    """In call order: inputs, params and states as the graph orders them, then outputs, the status (one bool, false at
    entry, which a call sets when it stops before it writes to params and states), constants, the arena last."""
    arena: Extent
    """Bytes of scratch memory that a call needs, 64-byte aligned."""
    constants: int
    """Bytes of the constant block, 64-byte aligned."""
    target: TargetSpec
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of graphc, llvmlite and llvm that built the code."""
    nanoseconds: int = 0
    """Expected time of a call on one core, roughly; 0 when unknown. Short calls keep the interpreter lock."""
    dims: tuple[Dimension, ...] = ()
    """The named dimensions, in order of name; a call gives their sizes behind the address of the arena."""
    chosen: int = 0
    """Kernels that have several versions, one of which runs in a call."""

    def __post_init__(self) -> None:
        _check_dims(self.dims, [*(n for b in self.buffers for n in b.pattern), self.arena])
        _require(self.chosen >= 0, f"{self.chosen} kernels have several versions")
        _require(self.nanoseconds >= 0, f"the expected time is {self.nanoseconds}")
        _require(self.entry.isidentifier(), f"the entry {self.entry!r} is no name")
        _require(
            is_size(self.arena) or 0 <= self.arena <= MAX_BYTES,
            f"the arena has {self.arena} bytes, at most {MAX_BYTES} are allowed",
        )
        _require(0 <= self.constants <= MAX_BYTES, f"the constants take {self.constants} bytes")
        _require(len(self.buffers) <= MAX_ENTRIES, f"there are {len(self.buffers)} buffers")
        names = {b.name for b in self.buffers}
        _require(len(names) == len(self.buffers), "two buffers have one name")
        for buffer in self.buffers:
            _require(buffer.offset % ALIGNMENT in (0, ALIGNMENT - 1), f"constant {buffer.name!r} is not aligned")
            inside = buffer.cls != "constant" or buffer.offset + buffer.nbytes <= self.constants
            _require(inside, f"constant {buffer.name!r} ends outside of the constant block")

    def of_class(self, *classes: str) -> tuple[BufferSpec, ...]:
        """The buffers of these classes, in call order."""
        return tuple(b for b in self.buffers if b.cls in classes)


@dataclass(frozen=True)
class Stored:
    """A tensor in the data or weights section."""

    name: str
    """Qualified name of a param or state; key of a constant of the graph."""
    dtype: str
    shape: tuple[int, ...]
    section: str
    """``weights`` or ``data``."""
    offset: int
    """From the start of the section."""

    def __post_init__(self) -> None:
        _check_tensor(self.name, self.dtype, self.shape)
        _require(
            self.section in ("weights", "data"), f"tensor {self.name!r} lies in the unknown section {self.section!r}"
        )
        _require(
            self.offset >= 0 and self.offset % ALIGNMENT == 0, f"tensor {self.name!r} has the offset {self.offset}"
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return prod(self.shape) * BY_NAME[self.dtype].itemsize


@dataclass(frozen=True)
class AssumptionSpec:
    """What the graph of a model relies on: a relation of sizes, and whether it holds."""

    relation: str
    """``==`` or ``<=``."""
    a: Extent
    b: Extent
    answer: bool
    place: str = ""
    """The line of the model that depends on it."""

    def __post_init__(self) -> None:
        _require(self.relation in ("==", "<="), f"sizes are compared by {self.relation[:60]!r}")

    def holds(self, sizes: Mapping[Dimension, int]) -> bool:
        """Whether it is so for these sizes."""
        return is_so(self.relation, self.a, self.b, self.answer, sizes)

    def known(self) -> Assumption:
        """What a trace calls it."""
        return Assumption(self.relation, self.a, self.b, self.answer, self.place)

    def __str__(self) -> str:
        return told(self.relation, self.a, self.b, self.answer, self.place)


@dataclass(frozen=True)
class ModelManifest:
    """What a file says of its model."""

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    structure: Structure
    """How a call nests its outputs."""
    ops: tuple[str, ...]
    """Names of the ops that the graph uses, sorted."""
    tensors: tuple[Stored, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    ir_version: int = IR_VERSION
    native: Manifest | None = None
    dims: tuple[Dimension, ...] = ()
    """The named dimensions, in order of name."""
    assumptions: tuple[AssumptionSpec, ...] = ()
    """The sizes for which the graph is right; all where there are none."""

    def __post_init__(self) -> None:
        sizes = [n for t in (*self.inputs, *self.outputs) for n in t.pattern]
        _check_dims(self.dims, [*sizes, *(n for x in self.assumptions for n in (x.a, x.b))])
        _require(len(self.tensors) <= MAX_ENTRIES and len(self.ops) <= MAX_ENTRIES, "too many tensors or ops")
        keys = {(t.section, t.name) for t in self.tensors}
        _require(len(keys) == len(self.tensors), "two tensors have one name")
        check_structure(self.structure, len(self.outputs))


@dataclass(frozen=True)
class Artifact:
    """A model as one file holds it."""

    manifest: ModelManifest
    text: str
    """The graph."""
    weights: dict[str, np.ndarray]
    """Params and states by qualified name; read-only when they come from a file."""
    data: dict[str, np.ndarray] = field(default_factory=dict)
    """Constants of the graph that stand beside its text."""
    constants: np.ndarray | None = None
    """Constant block of the native code (bytes)."""
    object: bytes | None = None
    """Native code as an object file."""
    digest: bytes = b""
    """What stands for the whole content of the file that it was read from."""


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ArtifactError(what)


def _check_tensor(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    _require(len(name) <= MAX_NAME, f"a name has {len(name)} characters, at most {MAX_NAME} are allowed")
    _require(dtype in BY_NAME and BY_NAME[dtype].name == dtype, f"{name!r} has the unknown element type {dtype!r}")
    _require(len(shape) <= MAX_RANK, f"{name!r} has rank {len(shape)}, at most {MAX_RANK} is allowed")
    # Sizes may be negative where what a model assumes does not hold: time - 1 of a time that is more than 1.
    ranges = [bounds(extent) for extent in shape]
    _require(all(most >= 0 for _, most in ranges), f"{name!r} has the shape {list(shape)}")
    nbytes = prod(max(least, 1) for least, _ in ranges) * BY_NAME[dtype].itemsize
    _require(nbytes <= MAX_BYTES, f"{name!r} with shape {list(shape)} takes {nbytes} bytes, at most {MAX_BYTES}")


def _check_dims(dims: tuple[Dimension, ...], sizes: list[Any]) -> None:
    names = [d.name for d in dims]
    _require(names == sorted(set(names)), "the dimensions are not in order of their names")
    for d in dims:
        good = d.name.isidentifier() and 0 <= d.low <= d.hint <= d.high <= LARGEST and len(d.name) <= MAX_NAME
        _require(good, f"the dimension {d.name[:60]!r} has the sizes {d.low}..{d.high}, expected {d.hint}")
    try:
        used = dimensions(sizes)
    except ArgumentError as error:
        raise ArtifactError(error.what) from None
    _require(all(d in dims for d in used.values()), f"the dimensions {', '.join(used)} are not all declared")


# ---- output structure


def check_structure(structure: Structure, outputs: int) -> None:
    """Raises ArtifactError unless ``structure`` is well formed and its leaves number existing outputs."""
    stack: list[tuple[Any, int]] = [(structure, 0)]
    while stack:
        item, depth = stack.pop()
        _require(depth <= MAX_DEPTH, f"the output structure is nested deeper than {MAX_DEPTH}")
        if item is None:
            continue
        if isinstance(item, int) and not isinstance(item, bool):
            _require(0 <= item < outputs, f"the output structure names output {item} of {outputs}")
            continue
        stack.extend((child, depth + 1) for _, child in _children(item))


def _children(item: Any) -> list[tuple[Any, Any]]:
    """(key, child) of each element of one container of a structure."""
    _require(isinstance(item, dict) and len(item) == 1, f"the output structure has the unknown part {item!r}")
    kind, parts = next(iter(item.items()))
    _require(kind in ("tuple", "list", "dict") and isinstance(parts, list | tuple), f"unknown structure {kind!r}")
    if kind != "dict":
        return list(enumerate(parts))
    pairs = [tuple(p) for p in parts if isinstance(p, list | tuple)]
    good = len(pairs) == len(parts) and all(len(p) == 2 and isinstance(p[0], str) for p in pairs)
    _require(good, "a dict of the output structure is not made of [key, part] pairs")
    return pairs


def nest(structure: Structure, outputs: Sequence[Any]) -> Any:
    """The outputs of a call nested as the structure says."""
    if structure is None:
        return None
    if isinstance(structure, int):
        return outputs[structure]
    kind, parts = next(iter(structure.items()))
    if kind == "dict":
        return {key: nest(part, outputs) for key, part in parts}
    made = [nest(part, outputs) for part in parts]
    return tuple(made) if kind == "tuple" else made


# ---- records to JSON and back


def to_json(record: Any) -> bytes:
    """A record as JSON; equal records give equal bytes. Sizes known at run time are texts; raises ArtifactError for one
    whose text could not be read again."""
    plain = _without_dims(asdict(record))
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_encode_size).encode()


def _encode_size(size: Any) -> str:
    text = str(size)
    _decode_size(text, "a size", dimensions([size]))
    return text


_OF_DIMS: Mapping[str, Any] = {"dims": [], "assumptions": [], "chosen": 0}
"""Fields that only records with named dimensions have, and what says that there are none."""
_GIVEN = "equals"
"""That which only numbers among inputs have."""
_ORDER = "strict_order"
"""That which only code in strict order has."""


def _without_dims(value: Any) -> Any:
    """The same, where no dimensions are declared and nothing is a size without the fields for that."""
    if isinstance(value, (list, tuple)):
        return [_without_dims(part) for part in value]
    if not isinstance(value, dict):
        return value
    empty = {key for key in (*_OF_DIMS, _ORDER) if not value.get(key)}
    empty |= {_GIVEN} if value.get(_GIVEN) is None else set()
    return {key: _without_dims(part) for key, part in value.items() if key not in empty}


def from_json(cls: type, text: bytes) -> Any:
    """The record of class ``cls`` that ``to_json`` wrote; raises ArtifactError for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"the manifest is not valid JSON: {error}") from None
    return _decode(cls, value, "manifest", {})


Dims = Mapping[str, Dimension]


def _decode(kind: Any, value: Any, where: str, dims: Dims) -> Any:
    """``value`` as a ``kind`` (a record, a scalar type, a tuple or dict of these), strictly; sizes of ``dims``."""
    if is_dataclass(kind):
        return _decode_record(kind, value, where, dims)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and isinstance(value, list):
        return tuple(_decode(args[0], item, f"{where}[{i}]", dims) for i, item in enumerate(value))
    if origin is dict and isinstance(value, dict):
        return {key: _decode(args[1], item, f"{where}.{key}", dims) for key, item in value.items()}
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _decode(args[0], value, where, dims)
    if kind == Extent:
        return _decode_size(value, where, dims) if type(value) is str else _decode(int, value, where, dims)
    if kind is Any or (kind in (str, int, bool) and type(value) is kind):
        return value
    raise ArtifactError(f"{where} has the wrong type: {str(value)[:60]!r}")


def _decode_size(text: str, where: str, dims: Dims) -> Any:
    _require(len(text) <= MAX_SIZE, f"{where} has {len(text)} characters, at most {MAX_SIZE} are allowed")
    try:
        return parse_size(text, dims)
    except ArgumentError as error:
        raise ArtifactError(f"{where}: {error.what}") from None


def _decode_record(cls: Any, value: Any, where: str, dims: Dims) -> Any:
    hints = _types_of(cls)
    names = set(hints)
    if "dims" in names and isinstance(value, dict):
        declared = _decode(hints["dims"], value.get("dims", []), f"{where}.dims", {})
        empty = [name for name, none in _OF_DIMS.items() if name in names and value.get(name) == none]
        _require(not empty, f"{where}.{', '.join(empty)} declares none")
        dims = {d.name: d for d in declared}
        value = {**{name: none for name, none in _OF_DIMS.items() if name in names}, **value}
    if _GIVEN in names and isinstance(value, dict) and value.get(_GIVEN, 0) is not None:
        value = {_GIVEN: None, **value}
    if _ORDER in names and isinstance(value, dict) and value.get(_ORDER) is not False:
        value = {_ORDER: False, **value}
    if not isinstance(value, dict) or set(value) != names:
        raise ArtifactError(f"{where} does not have exactly the fields {', '.join(sorted(names))}")
    return cls(**{name: _decode(hints[name], value[name], f"{where}.{name}", dims) for name in names})


@cache
def _types_of(cls: Any) -> dict[str, Any]:
    """The types of a record's fields by their names."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {f.name: hints[f.name] for f in fields(cls)}


# ---- models


def store(tensors: Mapping[str, np.ndarray], section: str) -> tuple[list[Stored], list[Any]]:
    """The records of tensors laid one after the other in a section, and the parts that ``write_sections`` takes."""
    records: list[Stored] = []
    parts: list[Any] = []
    position = 0
    for name, array in tensors.items():
        parts.append(bytes(align(position) - position))
        dense = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        record = Stored(name, _dtype_name(array.dtype), tuple(array.shape), section, align(position))
        records.append(record)
        parts.append(dense.reshape(-1).view(np.uint8))
        position = record.offset + record.nbytes
    return records, parts


def _dtype_name(dtype: np.dtype) -> str:
    return layout_of(dtype.newbyteorder("=")).name


def save(path: str | os.PathLike[str], artifact: Artifact) -> ModelManifest:
    """Writes a model to one file, atomically, and returns the manifest with the places of its tensors filled in."""
    manifest, weight_parts, data_parts = _placed(artifact)
    sections = {
        "manifest": [to_json(manifest)],
        "graph": [artifact.text.encode()],
        "data": data_parts,
        "weights": weight_parts,
    }
    if artifact.object is not None and artifact.constants is not None:
        sections |= {"constants": [artifact.constants], "object": [artifact.object]}
    write_sections(path, sections)
    return manifest


def placed(artifact: Artifact) -> Artifact:
    """A model with the places in its manifest that its tensors would have in a file."""
    return replace(artifact, manifest=_placed(artifact)[0])


def _placed(artifact: Artifact) -> tuple[ModelManifest, list[Any], list[Any]]:
    """The manifest with the places of the tensors, and the sections of weights and of data."""
    weights, weight_parts = store(artifact.weights, "weights")
    data, data_parts = store(artifact.data, "data")
    return replace(artifact.manifest, tensors=(*weights, *data)), weight_parts, data_parts


def load(path: str | os.PathLike[str]) -> Artifact:
    """Reads a model; every byte has been checked against its digest and every size against the limits.

    The tensors are read-only views of one block of memory. Raises ArtifactError and OSError.
    """
    sections, digest = read_with_digest(path)
    try:
        return replace(_model(sections), digest=digest)
    except ArtifactError as error:
        error.what = f"{os.fspath(path)}: {error.what}"
        raise


def _model(sections: dict[str, np.ndarray]) -> Artifact:
    limits = SECTIONS | (NATIVE_SECTIONS if "object" in sections else {})
    _require(list(sections) == list(limits), f"the file has the sections {', '.join(sections)}")
    for name, limit in limits.items():
        _require(sections[name].size <= limit, f"section {name!r} has {sections[name].size} bytes, at most {limit}")
    manifest: ModelManifest = from_json(ModelManifest, sections["manifest"].tobytes())
    if manifest.ir_version != IR_VERSION:
        raise ArtifactError(
            f"the graph has IR version {manifest.ir_version}, this graphc reads version {IR_VERSION}",
            remedy="export the model again with this graphc",
        )
    native = manifest.native is not None
    _require(sections["graph"].tobytes().count(b"\n") <= MAX_ENTRIES, f"the graph has more than {MAX_ENTRIES} lines")
    _require(native == ("object" in sections), "the manifest and the sections disagree about native code")
    tensors: dict[str, dict[str, np.ndarray]] = {"weights": {}, "data": {}}
    ends = {"weights": 0, "data": 0}
    for record in manifest.tensors:
        end, size = record.offset + record.nbytes, sections[record.section].size
        _require(end <= size, f"tensor {record.name!r} ends at byte {end} of section {record.section!r} ({size} bytes)")
        _require(record.offset == align(ends[record.section]), f"tensor {record.name!r} does not follow the one before")
        ends[record.section] = end
        dtype = BY_NAME[record.dtype].numpy.newbyteorder("<")
        flat = sections[record.section][record.offset : end].view(dtype)
        tensors[record.section][record.name] = flat.astype(dtype.newbyteorder("="), copy=False).reshape(record.shape)
    for name, end in ends.items():
        _require(end == sections[name].size, f"section {name!r} has {sections[name].size - end} bytes of no tensor")
    try:
        text = sections["graph"].tobytes().decode()
    except UnicodeDecodeError as error:
        raise ArtifactError(f"the graph is not valid UTF-8: {error}") from None
    if manifest.native is None:
        return Artifact(manifest, text, tensors["weights"], tensors["data"])
    _require(sections["constants"].size == manifest.native.constants, "the constant block has the wrong size")
    code = sections["object"].tobytes()
    return Artifact(manifest, text, tensors["weights"], tensors["data"], sections["constants"], code)
