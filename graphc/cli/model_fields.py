"""JSON fields of a model file's manifest, which several commands print under the same names."""

from __future__ import annotations

from typing import Any

from graphc.base.sizes.size import Dimension
from graphc.cli import console
from graphc.cli.fields import Field, below, spec_fields
from graphc.files.model_manifest import EntrySpec, ModelManifest

ENTRY = (
    Field("name", "string", "name of the model"),
    Field("entry", "string", "name of the entry"),
    *spec_fields("inputs", "an input"),
    *spec_fields("outputs", "an output"),
    Field("dims[].name", "string", "name of a named dimension", optional=True),
    Field("dims[].min", "integer", "smallest size"),
    Field("dims[].max", "integer", "largest size"),
    Field("dims[].hint", "integer", "expected size"),
    Field("assumptions[]", "string", "a condition that the sizes must meet", optional=True),
)
MODEL = (
    *ENTRY,
    *below("entries[]", ENTRY, optional=True),
    Field("versions.*", "string", "versions of graphc, llvmlite and LLVM that wrote the file"),
)


def _dim_json(dimension: Dimension) -> dict[str, Any]:
    return {"name": dimension.name, "min": dimension.low, "max": dimension.high, "hint": dimension.hint}


def describe(manifest: ModelManifest) -> dict[str, Any]:
    """Return the fields ``MODEL`` of a manifest."""
    spec = manifest.first
    more = {"entries": [describe_entry(e) for e in manifest.public]} if len(manifest.public) > 1 else {}
    native = any(manifest.entry(name).natives for name in spec.programs)
    return {**describe_entry(spec), **more, "native": native, "versions": manifest.versions}


def describe_entry(spec: EntrySpec) -> dict[str, Any]:
    """Return the fields ``ENTRY`` of an entry's manifest."""
    return {
        "name": spec.title,
        "entry": spec.name,
        "inputs": [console.spec_json(s) for s in spec.inputs],
        "outputs": [console.spec_json(s) for s in spec.outputs],
        **({"dims": [_dim_json(d) for d in spec.dims]} if spec.dims else {}),
        **({"assumptions": [str(a) for a in spec.assumptions]} if spec.assumptions else {}),
    }
