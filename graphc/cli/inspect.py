"""``graphc inspect``: what a model file holds, without running or compiling it."""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

from graphc.base.sizes.size import hint
from graphc.cli import console, exported
from graphc.cli.compile import MODEL, describe
from graphc.cli.fields import Field
from graphc.files import model_content
from graphc.files.model_content import Artifact, Code
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.verify import sub_graphs
from graphc.models.model_graph import read_graph


def _native_fields(prefix: str) -> tuple[Field, ...]:
    """What is said of object code."""
    return (
        Field(f"{prefix}.triple", "string", "what it was made for", optional=True),
        Field(f"{prefix}.cpu", "string", "what it was made for", optional=True),
        Field(f"{prefix}.features[]", "string", "an instruction set extension that it uses", optional=True),
        Field(f"{prefix}.arena", "integer", "scratch memory of a call", "B", optional=True),
        Field(f"{prefix}.code_bytes", "integer", "its size", "B", optional=True),
        Field(f"{prefix}.chosen", "integer", "kernels in several versions", optional=True),
        Field(f"{prefix}.versions.*", "string", "of graphc, llvmlite and LLVM, which made it", optional=True),
    )


EXAMPLES = ("graphc inspect net.gcm",)
JSON = (
    Field("path", "string", "the file"),
    Field("bytes", "integer", "its size", "B"),
    Field("sha256", "string", "its digest"),
    *MODEL,
    Field("weights[].name", "string", "a parameter or state", optional=True),
    Field("weights[].dtype", "string", "its element type"),
    Field("weights[].shape", "array", "its shape"),
    Field("weights[].shape[]", "integer", "a size", optional=True),
    Field("weights[].bytes", "integer", "what it takes", "B"),
    Field("weights[].sha256", "string", "digest of its elements"),
    Field("weight_bytes", "integer", "what all of them take", "B"),
    Field("constant_bytes", "integer", "what constants of the graph take", "B"),
    Field("ops.*", "integer", "how many nodes of each op there are"),
    Field("native", "object or null", "the object code in the file, the first where there are several"),
    *(field for prefix in ("native", "natives[]") for field in _native_fields(prefix)),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    parser.add_argument("model", metavar="FILE", help="a model file (.gcm), a .pt2 of torch.export, or an .onnx")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    facts = collect(Path(options.model))
    if options.json:
        console.emit_json(facts)
    else:
        console.emit(_text(facts))
    return console.OK


def collect(path: Path) -> dict[str, Any]:
    """All facts about a file; it is read and verified as for a run. Raises ArtifactError and OSError."""
    stored = exported.stored(str(path)) if exported.is_exported(path.name) else model_content.load(path)
    graphs = {spec.name: read_graph(stored, spec.name) for spec in stored.manifest.entries}
    ops = sum((count_ops(graphs[spec.name]) for spec in stored.manifest.public), Counter[str]())
    weights = stored.manifest.weights
    natives = [_native(code) for code in stored.first.natives]
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
                "sha256": _digest(stored, t.name),
            }
            for t in weights
        ],
        "weight_bytes": sum(t.nbytes for t in weights),
        "constant_bytes": sum(t.nbytes for t in stored.manifest.tensors if t.section == "data"),
        "ops": dict(sorted(ops.items(), key=lambda item: (-item[1], item[0]))),
        "native": next(iter(natives), None),
        "natives": natives,
    }


def _digest(stored: Artifact, name: str) -> str:
    return hashlib.sha256(stored.weights[name].tobytes()).hexdigest()


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
    """How often the graph applies each op, sub-graphs included and literals aside."""
    found: Counter[str] = Counter()
    stack = [graph]
    while stack:
        present = stack.pop()
        found.update(n.op.name for n in present.nodes() if not (n.results and n.results[0].is_scalar_constant))
        stack.extend(sub_graphs(present))
    return found


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
    """What calls take and give; of several entries each with its name."""
    found = []
    for entry in facts.get("entries", [facts]):
        if "entries" in facts:
            found.append(["entry", entry["entry"]])
        found += [["input", _type(s)] for s in entry["inputs"]]
        found += [["output", _type(s)] for s in entry["outputs"]]
        found += [["dimension", _dimension(d)] for d in entry.get("dims", ())]
        found += [["only where", a] for a in entry.get("assumptions", ())]
    return found


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
