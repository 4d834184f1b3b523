"""What a model file says of its model: entries that share weights, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from graphc.base.dtypes import BY_NAME
from graphc.base.sizes.assumptions import Assumption, is_so, told
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
"""Most entries, native codes of an entry, or samples of an entry."""
TENSOR_SECTIONS = ("weights", "data", "golden")
"""Sections of tensors: params and states, constants of graphs, inputs and outputs of sample calls."""
FORWARD, BACKWARD = "forward", "backward"
"""What the entries of a derivative are called behind the name of the entry that it is of, and a dot."""


@dataclass(frozen=True)
class Stored:
    """A tensor in the data or weights section."""

    name: str
    """Qualified name of a param or state; anything, once in its section, for others."""
    dtype: str
    shape: tuple[int, ...]
    section: str
    """One of TENSOR_SECTIONS."""
    offset: int
    """From the start of the section."""
    is_param: bool = False
    """Whether it is a parameter of the model."""
    free: bool = False
    """Whether it changes between calls, so that it is a constant of no program: some entry writes it, or it is a number
    that schedules change."""

    def __post_init__(self) -> None:
        check_tensor(self.name, self.dtype, self.shape)
        require(self.section in TENSOR_SECTIONS, f"tensor {self.name!r} lies in the unknown section {self.section!r}")
        require(self.offset >= 0 and self.offset % ALIGNMENT == 0, f"tensor {self.name!r} has the offset {self.offset}")

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
        require(self.relation in ("==", "<="), f"sizes are compared by {self.relation[:60]!r}")

    def holds(self, sizes: Mapping[Dimension, int]) -> bool:
        """Whether it is so for these sizes."""
        return is_so(self.relation, self.a, self.b, self.answer, sizes)

    def known(self) -> Assumption:
        """What a trace calls it."""
        return Assumption(self.relation, self.a, self.b, self.answer, self.place)

    def __str__(self) -> str:
        return told(self.relation, self.a, self.b, self.answer, self.place)


@dataclass(frozen=True)
class DerivativeSpec:
    """How gradients go through an entry: two entries more, called as it is with ``.forward`` and ``.backward`` behind.

    The first has the inputs and outputs of the entry, and then outputs that the second reads. That one takes them, some
    of the inputs, and the gradients of outputs, and gives those of inputs and of params."""

    residuals: int
    """How many outputs of the forward entry go to the backward one."""
    kept: tuple[int, ...]
    """Numbers of the inputs of the entry that the backward one takes then."""
    outputs: tuple[int, ...]
    """Numbers of the outputs of the entry that have gradients, which it takes last."""
    inputs: tuple[int, ...]
    """Numbers of the inputs whose gradients it gives first."""
    params: tuple[str, ...]
    """Paths of the params whose gradients it gives then."""


@dataclass(frozen=True)
class CodeSpec:
    """Native code of an entry for one machine."""

    program: Manifest
    constants: int
    """Number of the section with its constants."""
    object: int
    """Number of the section with the object file."""


@dataclass(frozen=True)
class SampleSpec:
    """A call whose outputs are known, of the model as it was exported: names of tensors in the section ``golden``."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class EntrySpec:
    """What a file says of one of its entries."""

    name: str
    """An identifier; for the parts of a derivative one of these behind that of its entry, and a dot."""
    title: str
    """The name of what was traced."""
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    structure: Structure
    """How a call nests its outputs."""
    ops: tuple[str, ...]
    """Names of the ops that the graph uses, sorted."""
    uses: tuple[str, ...] = ()
    """Paths of the params and states that it takes, in the order of its graph: names of tensors, shared by all."""
    writes: tuple[str, ...] = ()
    """Those that it writes, sorted."""
    data: dict[str, str] = field(default_factory=dict)
    """By key of a constant that stands beside its graph: the name of the tensor in the section ``data``."""
    derivative: DerivativeSpec | None = None
    natives: tuple[CodeSpec, ...] = ()
    """Native codes, one for each machine; where several run, that with the most instruction set extensions is used."""
    golden: tuple[SampleSpec, ...] = ()
    dims: tuple[Dimension, ...] = ()
    """The named dimensions, in order of name."""
    assumptions: tuple[AssumptionSpec, ...] = ()
    """The sizes for which the graph is right; all where there are none."""

    def __post_init__(self) -> None:
        parts = self.name.split(".")
        good = parts[0].isidentifier() and (len(parts) == 1 or parts[1:] in ([FORWARD], [BACKWARD]))
        require(good and len(self.name) <= MAX_NAME, f"the entry {self.name[:60]!r} has no name of an entry")
        sizes = [n for t in (*self.inputs, *self.outputs) for n in t.pattern]
        check_dims(self.dims, [*sizes, *(n for x in self.assumptions for n in (x.a, x.b))])
        require(len(self.ops) + len(self.uses) <= MAX_ENTRIES, f"{self.name}: too many ops, params or states")
        require(len(self.natives) + len(self.golden) <= MAX_PARTS, f"{self.name}: too many codes or samples")
        require(len(set(self.uses)) == len(self.uses), f"{self.name} takes a param or state twice")
        require(set(self.writes) <= set(self.uses), f"{self.name} writes params or states that it does not take")
        check_structure(self.structure, len(self.outputs))
        self._check_derivative()

    def _check_derivative(self) -> None:
        found = self.derivative
        if found is None:
            return
        inputs, outputs = range(len(self.inputs)), range(len(self.outputs))
        good = all(n in inputs for n in (*found.kept, *found.inputs)) and all(n in outputs for n in found.outputs)
        good = good and 0 <= found.residuals <= MAX_ENTRIES and set(found.params) <= set(self.uses)
        require(good, f"the derivative of {self.name} names inputs, outputs or params that it does not have")

    @property
    def of(self) -> str:
        """The name of the entry whose derivative it is a part of, or an empty text."""
        return self.name.partition(".")[0] if "." in self.name else ""


def _check_parts(entry: EntrySpec, forward: EntrySpec, backward: EntrySpec) -> None:
    """Raises ArtifactError unless the parts of a derivative take and give what it says."""
    found, types = entry.derivative, [(s.dtype, s.pattern) for s in entry.outputs]
    assert found is not None
    given = [(s.dtype, s.pattern) for s in forward.outputs]
    waiting = given[len(types) :]
    kept = [(entry.inputs[i].dtype, entry.inputs[i].pattern) for i in found.kept]
    good = forward.inputs == entry.inputs and given[: len(types)] == types and len(waiting) == found.residuals
    taken = [(s.dtype, s.pattern) for s in backward.inputs]
    good = good and taken == [*waiting, *kept, *(types[i] for i in found.outputs)]
    wanted = [(entry.inputs[i].dtype, entry.inputs[i].pattern) for i in found.inputs]
    made = [(s.dtype, s.pattern) for s in backward.outputs]
    good = good and made[: len(wanted)] == wanted and len(made) == len(wanted) + len(found.params)
    require(good, f"the parts of the derivative of {entry.name!r} do not take and give what it says")


@dataclass(frozen=True, repr=False)
class ModelManifest:
    """What a file says of its model."""

    entries: tuple[EntrySpec, ...]
    """The first is what a call of the model stands for."""
    tensors: tuple[Stored, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    ir_version: int = IR_VERSION

    def __post_init__(self) -> None:
        require(1 <= len(self.entries) <= MAX_PARTS, f"the file has {len(self.entries)} entries")
        require(len(self.tensors) <= MAX_ENTRIES, "too many tensors")
        keys = {(t.section, t.name) for t in self.tensors}
        require(len(keys) == len(self.tensors), "two tensors have one name")
        names = {e.name: e for e in self.entries}
        require(len(names) == len(self.entries), "two entries have one name")
        require(not self.entries[0].of, f"the first entry is {self.entries[0].name!r}, a part of another one")
        for entry in self.entries:
            self._check_entry(entry, names, keys)

    def __repr__(self) -> str:
        entries = (f"{e.name}: {signature(e.title, e.inputs, e.outputs)}" for e in self.entries if not e.of)
        size = sum(t.nbytes for t in self.tensors)
        return f"<ModelManifest {'; '.join(entries)}; {len(self.tensors)} tensors of {size:,} bytes>"

    def _check_entry(self, entry: EntrySpec, names: Mapping[str, EntrySpec], keys: set[tuple[str, str]]) -> None:
        samples = (n for s in entry.golden for n in (*s.inputs, *s.outputs))
        wanted: dict[str, Iterable[str]] = {"weights": entry.uses, "data": entry.data.values(), "golden": samples}
        for section, found in wanted.items():
            unknown = next((name for name in found if (section, name) not in keys), None)
            require(unknown is None, f"the entry {entry.name} takes {unknown!r}, which is not in section {section!r}")
        for sample in entry.golden:
            counts = len(sample.inputs), len(sample.outputs)
            require(counts == (len(entry.inputs), len(entry.outputs)), f"a sample of {entry.name} is of another entry")
        free = {t.name for t in self.tensors if t.free}
        require(set(entry.writes) <= free, f"the entry {entry.name} writes tensors that are not free")
        if entry.of:
            owner = names.get(entry.of)
            require(owner is not None and owner.derivative is not None, f"nothing has {entry.name!r} as a part")
        if entry.derivative is not None:
            parts = {f"{entry.name}.{part}" for part in (FORWARD, BACKWARD)}
            require(not entry.of and parts <= names.keys(), f"the derivative of {entry.name!r} is not in the file")
            _check_parts(entry, *(names[f"{entry.name}.{part}"] for part in (FORWARD, BACKWARD)))

    @property
    def first(self) -> EntrySpec:
        """The first entry."""
        return self.entries[0]

    @property
    def name(self) -> str:
        """What was traced as the first entry."""
        return self.first.title

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Those of the first entry."""
        return self.first.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Those of the first entry."""
        return self.first.outputs

    @property
    def dims(self) -> tuple[Dimension, ...]:
        """Those of the first entry."""
        return self.first.dims

    @property
    def assumptions(self) -> tuple[AssumptionSpec, ...]:
        """Those of the first entry."""
        return self.first.assumptions

    @property
    def public(self) -> tuple[EntrySpec, ...]:
        """The entries that are called by name: all but the parts of derivatives."""
        return tuple(e for e in self.entries if not e.of)

    def entry(self, name: str) -> EntrySpec:
        """The entry of a name; raises KeyError."""
        return {e.name: e for e in self.entries}[name]

    @property
    def weights(self) -> tuple[Stored, ...]:
        """The params and states, in the order in which they lie."""
        return tuple(t for t in self.tensors if t.section == "weights")
