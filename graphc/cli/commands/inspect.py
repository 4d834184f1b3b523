"""``graphc inspect``: show the contents of a model file, without running or compiling it."""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

from graphc.base.lazy import deferred
from graphc.base.sizes.size import hint
from graphc.cli import console
from graphc.cli.fields import Field
from graphc.cli.loading import FOREIGN
from graphc.cli.model_fields import MODEL, describe
from graphc.files import model_content
from graphc.files.model_content import Code
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.verify import sub_graphs
from graphc.models.model_graph import read_graph

# Import the tracer only for files of other frameworks.
read_exported = deferred("graphc.cli.exported:stored")


def _native_fields(prefix: str) -> tuple[Field, ...]:
    """Return the fields of one native code."""
    return (
        Field(f"{prefix}.triple", "string", "LLVM target triple that it was built for", optional=True),
        Field(f"{prefix}.cpu", "string", "processor that it was built for", optional=True),
        Field(f"{prefix}.features[]", "string", "an instruction set extension that it needs", optional=True),
        Field(f"{prefix}.arena", "integer", "scratch memory of a call", "B", optional=True),
        Field(f"{prefix}.code_bytes", "integer", "its size", "B", optional=True),
        Field(f"{prefix}.chosen", "integer", "number of kernels that have several versions", optional=True),
        Field(f"{prefix}.versions.*", "string", "versions of graphc, llvmlite and LLVM that built it", optional=True),
    )


EXAMPLES = ("graphc inspect net.gcm",)
JSON = (
    Field("path", "string", "the file"),
    Field("bytes", "integer", "size of the file", "B"),
    Field("sha256", "string", "SHA-256 digest of the file"),
    *MODEL,
    Field("weights[].name", "string", "a parameter or state", optional=True),
    Field("weights[].dtype", "string", "its element type"),
    Field("weights[].shape", "array", "its shape"),
    Field("weights[].shape[]", "integer", "a size", optional=True),
    Field("weights[].bytes", "integer", "its size", "B"),
    Field("weights[].sha256", "string", "SHA-256 digest of its elements"),
    Field("weight_bytes", "integer", "size of all weights", "B"),
    Field("constant_bytes", "integer", "size of the constants of the graphs", "B"),
    Field("ops.*", "integer", "number of nodes of each op"),
    Field("native", "object or null", "the first native code in the file"),
    *(field for prefix in ("native", "natives[]") for field in _native_fields(prefix)),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="FILE", help="a model file (.gcm), a .pt2 of torch.export, an .onnx or .mlir")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    facts = collect(Path(options.model))
    if options.json:
        console.emit_json(facts)
    else:
        console.emit(_text(facts))
    return console.OK


def collect(path: Path) -> dict[str, Any]:
    """Read and verify a file as for a run, and return the fields ``JSON``. Raises ArtifactError and OSError."""
    stored = read_exported(str(path)) if path.suffix in FOREIGN else model_content.load(path)
    graphs = {spec.name: read_graph(stored, spec.name) for spec in stored.manifest.entries if not spec.segments}
    called = [name for spec in stored.manifest.public for name in spec.programs]
    ops = sum((count_ops(graphs[name]) for name in called), Counter[str]())
    weights = stored.manifest.weights
    natives = [_native(code) for name in stored.manifest.first.programs for code in stored.entry(name).natives]
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        **describe(stored.manifest),
        "weights": [
            {
                "name": t.name,
                "dtype": t.dtype,
                "shape": list(t.shape),
                "bytes": t.nbytes,
                "sha256": hashlib.sha256(stored.weights[t.name].tobytes()).hexdigest(),
            }
            for t in weights
        ],
        "weight_bytes": sum(t.nbytes for t in weights),
        "constant_bytes": sum(t.nbytes for t in stored.manifest.tensors if t.section == "data"),
        "ops": dict(sorted(ops.items(), key=lambda item: (-item[1], item[0]))),
        "native": next(iter(natives), None),
        "natives": natives,
    }


def _native(code: Code) -> dict[str, Any]:
    manifest = code.manifest
    return {
        "triple": manifest.target.triple,
        "cpu": manifest.target.cpu,
        "features": list(manifest.target.features),
        "arena": hint(manifest.arena),
        "code_bytes": len(code.object),
        **({"chosen": manifest.chosen} if manifest.dims else {}),
        "versions": manifest.versions,
    }


def count_ops(graph: Graph) -> Counter[str]:
    """Count the nodes of each op, including sub-graphs and excluding scalar literals."""
    counts: Counter[str] = Counter()
    stack = [graph]
    while stack:
        current = stack.pop()
        counts.update(n.op.name for n in current.nodes() if not (n.results and n.results[0].is_scalar_constant))
        stack.extend(sub_graphs(current))
    return counts


def _text(facts: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    rows = [
        ["file", f"{facts['path']}, {console.bytes_text(facts['bytes'])}"],
        ["sha256", facts["sha256"]],
        ["model", facts["name"]],
        *_entries(facts),
        ["weights", f"{len(facts['weights'])}, {console.bytes_text(facts['weight_bytes'])}"],
        *(["", f"{_type(w)}  {w['sha256'][:12]}"] for w in facts["weights"]),
        ["constants", console.bytes_text(facts["constant_bytes"])],
        ["ops", f"{sum(facts['ops'].values())}: " + ", ".join(f"{n} {c}" for n, c in facts["ops"].items())],
        *(["native", _native_text(native)] for native in facts["natives"] or [None]),
        ["built by", versions],
    ]
    return "\n".join(f"{label:10} {text}" for label, text in rows)


def _entries(facts: dict[str, Any]) -> list[list[str]]:
    """List inputs, outputs and dimensions of each entry, with its name if there are several."""
    rows = []
    for entry in facts.get("entries", [facts]):
        if "entries" in facts:
            rows.append(["entry", entry["entry"]])
        rows += [["input", _type(s)] for s in entry["inputs"]]
        rows += [["output", _type(s)] for s in entry["outputs"]]
        rows += [["dimension", _dimension(d)] for d in entry.get("dims", ())]
        rows += [["only where", a] for a in entry.get("assumptions", ())]
    return rows


def _dimension(entry: dict[str, Any]) -> str:
    return f"{entry['name']}: {entry['min']} to {entry['max']}, expected {entry['hint']}"


def _type(entry: dict[str, Any]) -> str:
    if "equals" in entry:
        return f"{entry['name']}: int = {entry['equals']}"
    return f"{entry['name']}: {entry['dtype']}[{','.join(map(str, entry['shape']))}]"


def _native_text(native: dict[str, Any] | None) -> str:
    if native is None:
        return "none: compiled when it is loaded"
    code, arena = console.bytes_text(native["code_bytes"]), console.bytes_text(native["arena"])
    chosen = f"{native['chosen']} kernels in several versions, " if native.get("chosen") else ""
    return f"{code} for {native['triple']} ({native['cpu']}), {chosen}arena {arena}; used with --trust only"
