"""Model files: graphs as text, weights that entries share, native code, sample calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import BY_NAME, layout_of
from graphc.base.errors import ArgumentError, ArtifactError
from graphc.base.records import dataclass
from graphc.files.container import MAX_BYTES, align, reading, write_sections
from graphc.files.digests import sha256
from graphc.files.manifest import MAX_ENTRIES, Manifest, from_json, require, to_json
from graphc.files.model_manifest import (
    IR_VERSION,
    MAX_PARTS,
    TENSOR_SECTIONS,
    AssumptionSpec,
    CodeSpec,
    EntrySpec,
    ModelManifest,
    SampleSpec,
    Stored,
)

MAX_MANIFEST = 1 << 26
MAX_TEXT = 1 << 28
SHARED_FROM = 4096
"""Bytes of a constant of native code, a page, from which it is read from the weights where they have the same bytes.
Smaller ones stay beside each other. States of this size that begin as zeros are not stored."""


class Code(NamedTuple):
    """Native code of an entry for one machine."""

    manifest: Manifest
    object: bytes
    """The object file."""
    constants: np.ndarray
    """The constant block, as bytes."""
    assumptions: tuple[AssumptionSpec, ...] = ()
    """Assumptions about sizes besides those of the graph."""


class Sample(NamedTuple):
    """Sample call with known outputs."""

    inputs: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class StoredEntry:
    """Entry with all data that belongs to it alone."""

    spec: EntrySpec
    text: str
    """The graph."""
    data: dict[str, np.ndarray] = field(default_factory=dict)
    """Constants of the graph that its text refers to by key."""
    natives: tuple[Code, ...] = ()
    golden: tuple[Sample, ...] = ()


@dataclass(frozen=True)
class Artifact:
    """Content of a model file; ``assemble`` makes it."""

    manifest: ModelManifest
    entries: tuple[StoredEntry, ...]
    """In the order of the manifest."""
    weights: dict[str, np.ndarray]
    """Params and states by qualified name; read-only if read from a file."""
    digest: bytes = b""
    """Digest of the file that it was read from."""

    @property
    def first(self) -> StoredEntry:
        """First entry, which a call of the model runs."""
        return self.entries[0]

    def entry(self, name: str) -> StoredEntry:
        """Return the entry with a name; raises KeyError."""
        return {e.spec.name: e for e in self.entries}[name]


def assemble(
    entries: Sequence[StoredEntry],
    weights: Mapping[str, np.ndarray],
    versions: Mapping[str, str],
    *,
    params: Collection[str] = (),
    free: Collection[str] = (),
) -> Artifact:
    """Assemble a model of entries and lay out its content as in a file.

    ``params`` names the parameters among the weights. ``free`` names weights that may change between calls although no
    entry writes them, so that programs must not treat them as constants.
    """
    return _arranged(entries, weights, versions, params, free)[0]


def save(path: str | os.PathLike[str], artifact: Artifact) -> ModelManifest:
    """Write a model to one file, atomically, and return its manifest; equal models give equal bytes."""
    stored = artifact.manifest.weights
    params, free = [t.name for t in stored if t.is_param], [t.name for t in stored if t.free]
    arranged, blocks = _arranged(artifact.entries, artifact.weights, artifact.manifest.versions, params, free)
    texts = {f"graph.{i}": [entry.text.encode()] for i, entry in enumerate(arranged.entries)}
    write_sections(path, {"manifest": [to_json(arranged.manifest)], **texts, **blocks})
    return arranged.manifest


def load(
    path: str | os.PathLike[str], mapped: bool | None = False, meanwhile: Callable[[Artifact], Any] | None = None
) -> Artifact:
    """Read a model, checking every byte against its digest and every size against the limits.

    The tensors are read-only views of one block of memory, or of the file if it is ``mapped``, see
    ``container.read_with_digest``. ``meanwhile`` gets the model while digests are computed: its tensors and code may be
    damaged. Raises ArtifactError and OSError.
    """
    with reading(path, mapped) as (sections, digest):
        try:
            model = replace(_model(sections), digest=digest)
        except ArtifactError as error:
            error.what = f"{os.fspath(path)}: {error.what}"
            raise
        if meanwhile is not None:
            meanwhile(model)
    return model


def entry_name(stored: Artifact, name: str | None) -> str:
    """Return the name of an entry; of the first one for None. Raise ArgumentError where it does not exist."""
    names = [spec.name for spec in stored.manifest.public]
    if name is not None and name not in names:
        raise ArgumentError(f"the model has no entry {name!r}", remedy=f"use one of {', '.join(names)}")
    return names[0] if name is None else name


def check_weights(stored: Artifact, expected: Sequence[tuple[str, str, tuple[int, ...]]]) -> None:
    """Raise ArtifactError unless the file holds weights of these paths and types."""
    stored_types = {t.name: (t.dtype, t.shape) for t in stored.manifest.weights}
    for path, dtype, shape in expected:
        if stored_types.get(path) != (dtype, shape):
            problem = (
                "is missing" if path not in stored_types else f"is {stored_types[path][0]}{list(stored_types[path][1])}"
            )
            raise ArtifactError(f"weight {path!r} {problem}, the graph takes {dtype}{list(shape)}")


def without_weights(
    manifest: Manifest, constants: np.ndarray, weights: Mapping[str, np.ndarray]
) -> tuple[Manifest, np.ndarray]:
    """Return the manifest and the constant block of native code without the constants whose bytes a weight has.

    The manifest names the weight. Constants of less than SHARED_FROM bytes stay.
    """
    contents = {b.name: constants[b.offset : b.offset + b.nbytes] for b in manifest.of_class("constant")}
    sizes = {content.nbytes for content in contents.values() if content.nbytes >= SHARED_FROM}
    same = {sha256(_dense(a).view(np.uint8)): path for path, a in weights.items() if a.nbytes in sizes}
    buffers, kept, end = [], [], 0
    for buffer in manifest.buffers:
        content = contents.get(buffer.name)
        path = "" if content is None or content.nbytes not in sizes else same.get(sha256(content), "")
        if content is not None and not path:
            kept += [np.zeros(align(end) - end, np.uint8), content]
            buffer, end = replace(buffer, offset=align(end)), align(end) + content.nbytes
        buffers.append(replace(buffer, path=path, offset=-1) if path else buffer)
    block = np.concatenate(kept) if kept else constants[:0]
    return replace(manifest, buffers=tuple(buffers), constants=end), block


# ---- to sections


def _dense(array: np.ndarray) -> np.ndarray:
    """Return the elements in their order in files."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(-1)


class _Pool:
    """Deduplicated blocks of bytes, by index."""

    def __init__(self) -> None:
        self.blocks: list[Any] = []
        self._indices: dict[bytes, int] = {}

    def number(self, block: Any) -> int:
        """Return the index of a block with this content, adding it if it is new."""
        key = sha256(block)
        if key not in self._indices:
            self._indices[key] = len(self.blocks)
            self.blocks.append(block)
        return self._indices[key]


class _Tensors:
    """Tensors of one section, stored consecutively."""

    def __init__(self, section: str):
        self.section = section
        self.records: list[Stored] = []
        self.chunks: list[Any] = []
        self._end = 0
        self._names: dict[Any, str] = {}

    def add(self, name: str, array: np.ndarray, **facts: bool) -> None:
        """Append a tensor; ``facts`` are further fields of its record."""
        dtype = layout_of(array.dtype.newbyteorder("=")).name
        content = _dense(array).view(np.uint8)
        is_zero = facts.get("free", False) and content.nbytes >= SHARED_FROM and not content.any()
        record = Stored(name, dtype, tuple(array.shape), self.section, align(self._end), zeros=is_zero, **facts)
        self.records.append(record)
        self.chunks.append(bytes(record.offset - self._end))
        if not is_zero:
            self.chunks.append(content)
        self._end = record.offset + record.stored_bytes

    def once(self, array: np.ndarray) -> str:
        """Return the name, which is a number, of a tensor with this content; equal tensors are stored once."""
        dense = _dense(array)
        key = dense.dtype.str, array.shape, sha256(dense.view(np.uint8))
        if key not in self._names:
            self._names[key] = str(len(self.records))
            self.add(self._names[key], array)
        return self._names[key]


def _arranged(
    entries: Sequence[StoredEntry],
    weights: Mapping[str, np.ndarray],
    versions: Mapping[str, str],
    params: Collection[str],
    free: Collection[str],
) -> tuple[Artifact, dict[str, list[Any]]]:
    """Return the model with its manifest, and the sections that follow the graphs."""
    tensors = {section: _Tensors(section) for section in TENSOR_SECTIONS}
    constants, objects = _Pool(), _Pool()
    changing = set(free).union(*(e.spec.writes for e in entries))
    for name, array in weights.items():
        tensors["weights"].add(name, array, is_param=name in params, free=name in changing)
    data, golden = tensors["data"], tensors["golden"]
    arranged = []
    for entry in entries:
        codes = [
            CodeSpec(c.manifest, constants.number(c.constants), objects.number(c.object), c.assumptions)
            for c in entry.natives
        ]
        samples = [SampleSpec(*(tuple(map(golden.once, arrays)) for arrays in s)) for s in entry.golden]
        keys = {key: data.once(array) for key, array in sorted(entry.data.items())}
        spec = replace(entry.spec, data=keys, natives=tuple(codes), golden=tuple(samples))
        arranged.append(replace(entry, spec=spec))
    records = tuple(r for t in tensors.values() for r in t.records)
    manifest = ModelManifest(tuple(e.spec for e in arranged), records, dict(versions))
    blocks = {t.section: t.chunks for t in tensors.values()}
    blocks |= {f"constants.{i}": [block] for i, block in enumerate(constants.blocks)}
    blocks |= {f"object.{i}": [block] for i, block in enumerate(objects.blocks)}
    return Artifact(manifest, tuple(arranged), dict(weights)), blocks


# ---- from sections


def _model(sections: Mapping[str, np.ndarray]) -> Artifact:
    require("manifest" in sections, f"the file has the sections {', '.join(sections)}")
    if "graph" in sections:
        raise ArtifactError(
            "the file has the format of graphc 0.1.0, which this graphc does not read",
            remedy="convert it with graphc 0.2.0, the last version that reads it: graphc compile OLD.gcm -o NEW.gcm",
        )
    manifest = _manifest(sections["manifest"])
    check_sections(sections, dict(_limits(manifest)))
    tensors = read_tensors(manifest.tensors, sections, TENSOR_SECTIONS)
    entries = []
    for i, spec in enumerate(manifest.entries):
        data = {key: tensors["data"][name] for key, name in spec.data.items()}
        natives = tuple(_code(code, sections) for code in spec.natives)
        golden = tuple(
            Sample(*(tuple(tensors["golden"][n] for n in names) for names in (s.inputs, s.outputs)))
            for s in spec.golden
        )
        entries.append(StoredEntry(spec, read_text(sections[f"graph.{i}"]), data, natives, golden))
    return Artifact(manifest, tuple(entries), tensors["weights"])


def _manifest(section: np.ndarray) -> ModelManifest:
    require(section.size <= MAX_MANIFEST, f"the manifest has {section.size} bytes, at most {MAX_MANIFEST}")
    manifest = from_json(ModelManifest, section.tobytes())
    if manifest.ir_version != IR_VERSION:
        raise ArtifactError(
            f"the graph has IR version {manifest.ir_version}, this graphc reads version {IR_VERSION}",
            remedy="export the model again with this graphc",
        )
    return manifest


def _limits(manifest: ModelManifest) -> Iterator[tuple[str, int]]:
    """Yield the names of a model's sections in order, with their size limits in bytes."""
    yield "manifest", MAX_MANIFEST
    for i in range(len(manifest.entries)):
        yield f"graph.{i}", MAX_TEXT
    for section in TENSOR_SECTIONS:
        yield section, MAX_BYTES
    codes = [code for entry in manifest.entries for code in entry.natives]
    for kind in ("constants", "object"):
        numbers = {getattr(code, kind) for code in codes}
        good = numbers == set(range(len(numbers))) and len(numbers) <= MAX_PARTS
        require(good, f"native codes name the sections {sorted(numbers)[:9]} of {kind}")
        for i in range(len(numbers)):
            yield f"{kind}.{i}", MAX_BYTES


def check_sections(sections: Mapping[str, np.ndarray], limits: Mapping[str, int]) -> None:
    """Raise ArtifactError unless the file has exactly these sections, in this order, within their limits."""
    require(list(sections) == list(limits), f"the file has the sections {', '.join(sections)}")
    for name, limit in limits.items():
        require(sections[name].size <= limit, f"section {name!r} has {sections[name].size} bytes, at most {limit}")


def read_text(section: np.ndarray) -> str:
    """Return the text of a graph; raises ArtifactError."""
    data = section.tobytes()
    require(data.count(b"\n") <= MAX_ENTRIES, f"the graph has more than {MAX_ENTRIES} lines")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ArtifactError(f"the graph is not valid UTF-8: {error}") from None


def read_tensors(
    records: Sequence[Stored], sections: Mapping[str, np.ndarray], names: Sequence[str]
) -> dict[str, dict[str, np.ndarray]]:
    """Return the tensors by section, as views of its bytes. Raises ArtifactError unless they fill it, in order."""
    tensors: dict[str, dict[str, np.ndarray]] = {name: {} for name in names}
    ends = dict.fromkeys(names, 0)
    for record in records:
        end, size = record.offset + record.stored_bytes, sections[record.section].size
        require(end <= size, f"tensor {record.name!r} ends at byte {end} of section {record.section!r} ({size} bytes)")
        require(record.offset == align(ends[record.section]), f"tensor {record.name!r} does not follow the one before")
        ends[record.section] = end
        dtype = BY_NAME[record.dtype].numpy.newbyteorder("<")
        if record.zeros:
            tensors[record.section][record.name] = np.broadcast_to(dtype.newbyteorder("=").type(0), record.shape)
            continue
        flat = sections[record.section][record.offset : end].view(dtype)
        tensors[record.section][record.name] = flat.astype(dtype.newbyteorder("="), copy=False).reshape(record.shape)
    for name, end in ends.items():
        require(end == sections[name].size, f"section {name!r} has {sections[name].size - end} bytes of no tensor")
    return tensors


def _code(spec: CodeSpec, sections: Mapping[str, np.ndarray]) -> Code:
    constants = sections[f"constants.{spec.constants}"]
    require(constants.size == spec.program.constants, "the constant block has the wrong size")
    return Code(spec.program, sections[f"object.{spec.object}"].tobytes(), constants, spec.assumptions)
