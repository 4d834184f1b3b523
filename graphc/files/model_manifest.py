"""Manifest of a model file: entries that share weights, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from math import prod

from graphc.base.dtypes import BY_NAME
from graphc.base.records import dataclass
from graphc.base.sizes.assumptions import Assumption, format_relation, relation_holds
from graphc.base.sizes.size import Dimension
from graphc.files.container import ALIGNMENT
from graphc.files.manifest import (
    MAX_ENTRIES,
    MAX_NAME,
    Extent,
    Manifest,
    TensorSpec,
    check_dims,
    check_tensor,
    require,
    signature,
)
from graphc.files.structure import Structure, check_structure

IR_VERSION = 1
"""Version of the graph text."""
MAX_PARTS = 1024
"""Largest number of entries, or of native codes or samples of an entry."""
TENSOR_SECTIONS = ("weights", "data", "golden")
"""Sections of tensors: params and states, constants of graphs, inputs and outputs of sample calls."""
ENTRY = "forward"
"""Name of the only entry of a model that names none."""
FORWARD, BACKWARD = "forward", "backward"
"""Names of the entries of a derivative, after the name of its entry and a dot."""


@dataclass(frozen=True)
class Stored:
    """Tensor in a section."""

    name: str
    """Qualified name of a param or state; in other sections any name that is unique there."""
    dtype: str
    shape: tuple[int, ...]
    section: str
    """One of TENSOR_SECTIONS."""
    offset: int
    """Bytes from the start of the section."""
    is_param: bool = False
    """Whether it is a parameter of the model."""
    free: bool = False
    """Whether its value changes between calls, so that programs must not treat it as a constant: some entry writes it,
    or it is a number that schedules change."""
    zeros: bool = False
    """Whether it is zero everywhere and takes no bytes of the section."""

    def __post_init__(self) -> None:
        check_tensor(self.name, self.dtype, self.shape)
        require(self.section in TENSOR_SECTIONS, f"tensor {self.name!r} is in the unknown section {self.section!r}")
        require(self.offset >= 0 and self.offset % ALIGNMENT == 0, f"tensor {self.name!r} has the offset {self.offset}")
        require(self.free or not self.zeros, f"tensor {self.name!r} is not stored, though no call changes it")

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return prod(self.shape) * BY_NAME[self.dtype].itemsize

    @property
    def stored_bytes(self) -> int:
        """Bytes of the tensor in the section."""
        return 0 if self.zeros else self.nbytes


@dataclass(frozen=True)
class AssumptionSpec:
    """Comparison of sizes with the answer for which the graph of a model is correct."""

    relation: str
    """``==`` or ``<=``."""
    a: Extent
    b: Extent
    answer: bool
    place: str = ""
    """Line of the model that depends on it."""

    def __post_init__(self) -> None:
        require(self.relation in ("==", "<="), f"sizes are compared by {self.relation[:60]!r}")

    def holds(self, sizes: Mapping[Dimension, int]) -> bool:
        """Return whether the assumption is true for these sizes."""
        return relation_holds(self.relation, self.a, self.b, self.answer, sizes)

    def known(self) -> Assumption:
        """Return the assumption as traces represent it."""
        return Assumption(self.relation, self.a, self.b, self.answer, self.place)

    def __str__(self) -> str:
        return format_relation(self.relation, self.a, self.b, self.answer, self.place)


@dataclass(frozen=True)
class DerivativeSpec:
    """Derivative of an entry: two further entries, named like it with suffixes ``.forward`` and ``.backward``.

    The forward entry has the inputs and outputs of the entry, and further outputs, the residuals. The backward entry
    takes the residuals, some inputs of the entry, and the gradients of outputs. It returns gradients of inputs and of
    params.
    """

    residuals: int
    """Number of outputs that the forward entry passes to the backward one."""
    kept: tuple[int, ...]
    """Indices of the entry's inputs that the backward entry takes next."""
    outputs: tuple[int, ...]
    """Indices of the entry's outputs whose gradients the backward entry takes last."""
    inputs: tuple[int, ...]
    """Indices of the entry's inputs whose gradients it returns first."""
    params: tuple[str, ...]
    """Paths of the params whose gradients it returns next."""


@dataclass(frozen=True)
class CodeSpec:
    """Native code of an entry for one machine."""

    program: Manifest
    constants: int
    """Number of the section with its constants."""
    object: int
    """Number of the section with the object file."""
    assumptions: tuple[AssumptionSpec, ...] = ()
    """Assumptions about the sizes of the entry under which the code is correct, besides those of the graph."""


@dataclass(frozen=True)
class SampleSpec:
    """Sample call with known outputs of the exported model: names of tensors in the section ``golden``."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class SegmentSpec:
    """One program of an entry that is a chain of programs, which run one after the other.

    The values of a call have indices: first the inputs of the entry, then the outputs of each program in order. The
    outputs of the last program are those of the entry.
    """

    inputs: tuple[int, ...]
    """Indices of the values that it takes."""
    sizes: tuple[str, ...] = ()
    """Named dimensions of later programs, whose sizes are the first outputs; none for the last program."""


@dataclass(frozen=True)
class EntrySpec:
    """Description of an entry in the manifest."""

    name: str
    """Identifier; for an entry of a derivative, the name of its entry, a dot, and FORWARD or BACKWARD; for a program of
    a chain and for other sizes, the name of its entry, a dot, and its index."""
    title: str
    """Name of the traced function or module."""
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    structure: Structure
    """Nesting of the outputs."""
    ops: tuple[str, ...]
    """Names of the ops that the graph uses, sorted."""
    uses: tuple[str, ...] = ()
    """Paths of the params and states that it takes, in the order of its graph; all entries share these tensors."""
    writes: tuple[str, ...] = ()
    """Paths in ``uses`` that it writes, sorted."""
    data: dict[str, str] = field(default_factory=dict)
    """Names of tensors in the section ``data``, by key of a constant that the graph's text refers to."""
    derivative: DerivativeSpec | None = None
    natives: tuple[CodeSpec, ...] = ()
    """Native codes, one for each machine; of those that run here, the one with the most instruction set extensions is
    used."""
    golden: tuple[SampleSpec, ...] = ()
    dims: tuple[Dimension, ...] = ()
    """Named dimensions in order of name."""
    assumptions: tuple[AssumptionSpec, ...] = ()
    """Assumptions under which the graph is correct; empty: for all sizes."""
    texts: str = ""
    """Operators on texts that run in Python before and after the graph, as JSON (interop.onnx.text_record)."""
    segments: tuple[SegmentSpec, ...] = ()
    """The programs of a chain, which are entries with names like ``forward.0``. Such an entry has no graph."""
    paths: tuple[str, ...] = ()
    """Names of entries that calls use where their sizes break an assumption of this one: ``forward.0`` and so on. They
    have the same inputs."""
    classes: dict[str, str] = field(default_factory=dict)
    """Classes of the modules that made nodes of the graph, by path."""

    def __post_init__(self) -> None:
        head, *suffix = self.name.split(".")
        good = head.isidentifier() and (
            suffix in ([], [FORWARD], [BACKWARD]) or (len(suffix) == 1 and suffix[0].isdecimal())
        )
        require(good and len(self.name) <= MAX_NAME, f"the entry {self.name[:60]!r} has an invalid name")
        sizes = [n for t in (*self.inputs, *self.outputs) for n in t.pattern]
        assumptions = [*self.assumptions, *(x for code in self.natives for x in code.assumptions)]
        check_dims(self.dims, [*sizes, *(n for x in assumptions for n in (x.a, x.b))])
        require(len(self.ops) + len(self.uses) <= MAX_ENTRIES, f"{self.name}: too many ops, params or states")
        require(len(self.natives) + len(self.golden) <= MAX_PARTS, f"{self.name}: too many codes or samples")
        require(len(self.classes) <= MAX_ENTRIES, f"{self.name}: too many classes of modules")
        require(len(set(self.uses)) == len(self.uses), f"{self.name} takes a param or state twice")
        require(set(self.writes) <= set(self.uses), f"{self.name} writes params or states that it does not take")
        check_structure(self.structure, len(self.outputs))
        self._check_derivative()

    def _check_derivative(self) -> None:
        derivative = self.derivative
        if derivative is None:
            return
        inputs, outputs = range(len(self.inputs)), range(len(self.outputs))
        good = all(n in inputs for n in (*derivative.kept, *derivative.inputs)) and all(
            n in outputs for n in derivative.outputs
        )
        good = good and 0 <= derivative.residuals <= MAX_ENTRIES and set(derivative.params) <= set(self.uses)
        require(good, f"the derivative of {self.name} names inputs, outputs or params that it does not have")

    @property
    def of(self) -> str:
        """Name of the entry to whose derivative or chain it belongs; else empty."""
        return self.name.partition(".")[0] if "." in self.name else ""

    @property
    def programs(self) -> tuple[str, ...]:
        """Names of the entries whose graphs a call runs, in order: its own, or those of its chain."""
        return tuple([f"{self.name}.{i}" for i in range(len(self.segments))]) or (self.name,)


def _check_parts(entry: EntrySpec, forward: EntrySpec, backward: EntrySpec) -> None:
    """Raise ArtifactError unless the entries of a derivative match its description."""
    spec, inputs, outputs = entry.derivative, _types(entry.inputs), _types(entry.outputs)
    assert spec is not None
    results, count = _types(forward.outputs), len(outputs)
    residuals = results[count:]
    expected_inputs = [*residuals, *(inputs[i] for i in spec.kept), *(outputs[i] for i in spec.outputs)]
    gradients = [inputs[i] for i in spec.inputs]
    backward_results = _types(backward.outputs)
    checks = {
        "the forward entry has other inputs than the entry": forward.inputs == entry.inputs,
        "the forward entry has other outputs than the entry": results[:count] == outputs,
        f"the forward entry has not {spec.residuals} residuals": len(residuals) == spec.residuals,
        "the backward entry has other inputs than residuals, inputs and gradients": _types(backward.inputs)
        == expected_inputs,
        "the backward entry has gradients of other types than the inputs": (
            backward_results[: len(gradients)] == gradients
        ),
        f"the backward entry has not a gradient for each of {len(spec.inputs)} inputs and {len(spec.params)} params": (
            len(backward_results) == len(gradients) + len(spec.params)
        ),
    }
    for fault, holds in checks.items():
        require(holds, f"the derivative of {entry.name!r} is inconsistent: {fault}")


def _check_chain(entry: EntrySpec, programs: Sequence[EntrySpec]) -> None:
    """Raise ArtifactError unless each program of a chain takes values that exist then, and gives the next size."""
    dims = {d.name for d in entry.dims}
    values = _shapes(entry.inputs)
    for segment, program in zip(entry.segments, programs, strict=True):
        what = f"the program {program.name} of a chain"
        require(all(0 <= i < len(values) for i in segment.inputs), f"{what} takes values that do not exist yet")
        taken = [values[i] for i in segment.inputs]
        require(taken == _shapes(program.inputs), f"{what} takes values of other types than its inputs")
        outputs = _shapes(program.outputs)
        count = len(segment.sizes)
        are_counts = count > 0 and dims >= {*segment.sizes} and outputs[:count] == [("i64", ())] * count
        is_good = not count if program is programs[-1] else are_counts
        require(is_good, f"{what} gives {', '.join(segment.sizes) or 'nothing'} as sizes")
        values += outputs
    require(_shapes(programs[-1].outputs) == _shapes(entry.outputs), f"the chain {entry.name} has other outputs")


def _shapes(specs: Sequence[TensorSpec]) -> list[tuple[str, tuple[Extent, ...]]]:
    return [(s.dtype, s.shape) for s in specs]


def _types(specs: Sequence[TensorSpec]) -> list[tuple[str, tuple[Extent, ...]]]:
    return [(s.dtype, s.pattern) for s in specs]


@dataclass(frozen=True, repr=False)
class ModelManifest:
    """Manifest of a model file."""

    entries: tuple[EntrySpec, ...]
    """A call of the model calls the first one."""
    tensors: tuple[Stored, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    ir_version: int = IR_VERSION

    def __post_init__(self) -> None:
        require(1 <= len(self.entries) <= MAX_PARTS, f"the file has {len(self.entries)} entries")
        require(len(self.tensors) <= MAX_ENTRIES, "too many tensors")
        keys = {(t.section, t.name) for t in self.tensors}
        require(len(keys) == len(self.tensors), "two tensors have the same name")
        names = {e.name: e for e in self.entries}
        require(len(names) == len(self.entries), "two entries have the same name")
        require(not self.entries[0].of, f"the first entry is {self.entries[0].name!r}, a derivative of another entry")
        for entry in self.entries:
            self._check_entry(entry, names, keys)

    def __repr__(self) -> str:
        entries = (f"{e.name}: {signature(e.title, e.inputs, e.outputs)}" for e in self.entries if not e.of)
        size = sum(t.nbytes for t in self.tensors)
        return f"<ModelManifest {'; '.join(entries)}; {len(self.tensors)} tensors of {size:,} bytes>"

    def _check_entry(self, entry: EntrySpec, names: Mapping[str, EntrySpec], keys: set[tuple[str, str]]) -> None:
        samples = (n for s in entry.golden for n in (*s.inputs, *s.outputs))
        used: dict[str, Iterable[str]] = {"weights": entry.uses, "data": entry.data.values(), "golden": samples}
        for section, tensors in used.items():
            unknown = next((name for name in tensors if (section, name) not in keys), None)
            require(unknown is None, f"the entry {entry.name} takes {unknown!r}, which is not in section {section!r}")
        for sample in entry.golden:
            counts = len(sample.inputs), len(sample.outputs)
            require(
                counts == (len(entry.inputs), len(entry.outputs)),
                f"a sample of {entry.name} has not its number of inputs and outputs",
            )
        free = {t.name for t in self.tensors if t.free}
        require(set(entry.writes) <= free, f"the entry {entry.name} writes tensors that are not marked as free")
        if entry.of:
            owner = names.get(entry.of)
            names_of = () if owner is None else (*owner.programs, *owner.paths)
            is_owned = owner is not None and (owner.derivative is not None or entry.name in names_of)
            require(is_owned, f"{entry.name!r} is the derivative or the program of no entry")
        if entry.segments:
            programs = entry.programs
            is_plain = not entry.of and entry.derivative is None and not entry.natives
            require(is_plain, f"the chain {entry.name!r} has a derivative or code of its own")
            require(names.keys() >= set(programs), f"the programs of {entry.name!r} are not in the file")
            _check_chain(entry, [names[name] for name in programs])
        others = [names[name] for name in entry.paths if name in names]
        is_right = len(others) == len(entry.paths) and all(o.of == entry.name and not o.segments for o in others)
        require(is_right and not (others and entry.segments), f"the entry {entry.name!r} names wrong entries as paths")
        ends = [[(s.name, s.dtype, len(s.shape)) for s in spec.inputs] for spec in (entry, *others)]
        require(ends.count(ends[0]) == len(ends), f"the paths of {entry.name!r} have other inputs")
        if entry.derivative is not None:
            required = {f"{entry.name}.{suffix}" for suffix in (FORWARD, BACKWARD)}
            require(not entry.of and required <= names.keys(), f"the derivative of {entry.name!r} is not in the file")
            _check_parts(entry, *(names[f"{entry.name}.{suffix}"] for suffix in (FORWARD, BACKWARD)))

    @property
    def first(self) -> EntrySpec:
        """Entry that a call of the model runs."""
        return self.entries[0]

    @property
    def name(self) -> str:
        """Name of the function or module behind the first entry."""
        return self.first.title

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Inputs of the first entry."""
        return self.first.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Outputs of the first entry."""
        return self.first.outputs

    @property
    def dims(self) -> tuple[Dimension, ...]:
        """Dimensions of the first entry."""
        return self.first.dims

    @property
    def assumptions(self) -> tuple[AssumptionSpec, ...]:
        """Assumptions of the first entry."""
        return self.first.assumptions

    @property
    def public(self) -> tuple[EntrySpec, ...]:
        """Entries called by name: all except derivatives and programs of chains."""
        return tuple(e for e in self.entries if not e.of)

    def entry(self, name: str) -> EntrySpec:
        """Return the entry with a name; raises KeyError."""
        return {e.name: e for e in self.entries}[name]

    @property
    def weights(self) -> tuple[Stored, ...]:
        """Params and states in the order of their section."""
        return tuple(t for t in self.tensors if t.section == "weights")
