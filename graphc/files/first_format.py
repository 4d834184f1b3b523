"""First format of model files, which hold one entry: its manifest, converted to current records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphc.base.sizes.size import Dimension
from graphc.files.manifest import Manifest, TensorSpec, require
from graphc.files.model_manifest import IR_VERSION, AssumptionSpec, EntrySpec, Stored
from graphc.files.structure import Structure, check_structure

ENTRY = "forward"
"""Name of the only entry."""


@dataclass(frozen=True)
class FirstStored:
    """Tensor in the data or weights section."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    section: str
    offset: int


@dataclass(frozen=True)
class FirstManifest:
    """Manifest of a file of the first format."""

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    structure: Structure
    ops: tuple[str, ...]
    tensors: tuple[FirstStored, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    ir_version: int = IR_VERSION
    native: Manifest | None = None
    dims: tuple[Dimension, ...] = ()
    assumptions: tuple[AssumptionSpec, ...] = ()

    def __post_init__(self) -> None:
        check_structure(self.structure, len(self.outputs))
        keys = {(t.section, t.name) for t in self.tensors}
        require(len(keys) == len(self.tensors), "two tensors have the same name")
        require(all(t.section in ("weights", "data") for t in self.tensors), "a tensor is in an unknown section")

    @property
    def records(self) -> tuple[Stored, ...]:
        """Current records of the tensors, checked."""
        return tuple(Stored(t.name, t.dtype, t.shape, t.section, t.offset) for t in self.tensors)

    def entry(self, uses: tuple[str, ...]) -> EntrySpec:
        """Return the only entry as a current record; ``uses`` are the weights that it takes."""
        return EntrySpec(
            ENTRY,
            self.name,
            self.inputs,
            self.outputs,
            self.structure,
            self.ops,
            uses,
            dims=self.dims,
            assumptions=self.assumptions,
        )


def is_old(sections: Mapping[str, Any]) -> bool:
    """Return whether the sections are those of the first format."""
    return {"manifest", "graph"} <= sections.keys()
