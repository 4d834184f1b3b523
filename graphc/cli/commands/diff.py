"""``graphc diff``: compare two models: graphs, weights, and outputs for the same inputs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.difference import Difference, Tolerance
from graphc.checks.model_diff import EntryDifference, ModelDifference, compare_models, compare_outputs, why_other_calls
from graphc.cli import arguments, comparison, console, exported, targets
from graphc.cli.fields import Field, below
from graphc.compiler.example_arrays import random_array
from graphc.files import model_content
from graphc.files.model_content import Artifact

EXAMPLES = (
    "graphc diff before.gcm after.gcm",
    "graphc diff net.gcm net.onnx --outputs --rtol 1e-4 --atol 1e-5 --seed 3",
    "graphc diff before.gcm after.gcm --weights --json",
)
PARTS = ("graph", "weights", "outputs")


def _array_fields(path: str, meaning: str) -> tuple[Field, ...]:
    return (
        Field(f"{path}[]", "object", meaning, optional=True),
        *below(f"{path}[]", comparison.JSON),
        Field(f"{path}[].place[]", "integer", "the same as ``position``", optional=True),
    )


JSON = (
    Field("equal", "boolean", "whether the models are equal up to differences within the tolerance"),
    Field("compared", "object", "number of graphs, weights and outputs compared"),
    Field("compared.*", "integer", "number of graphs, weights or outputs"),
    *_array_fields("weights", "a weight that differs"),
    Field("entries[]", "object", "an entry of one of the models"),
    Field("entries[].name", "string", "its name"),
    Field("entries[].problem", "string", "why it cannot be compared; empty if it was"),
    Field("entries[].graph", "string", "unified diff of the graphs; empty if they have the same structure"),
    *_array_fields("entries[].outputs", "an output that differs"),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    for name in ("first", "second"):
        parser.add_argument(name, metavar="FILE", help="a model file (.gcm), a .pt2 of torch.export, an .onnx or .mlir")
    parser.add_argument(
        "--graph",
        action="store_true",
        help="compare graphs; with any of --graph, --weights and --outputs, nothing else is compared",
    )
    parser.add_argument("--weights", action="store_true", help="compare weights")
    parser.add_argument("--outputs", action="store_true", help="compare outputs for random inputs")
    parser.add_argument(
        "--atol",
        type=arguments.tolerance,
        default=0.0,
        metavar="X",
        help="allow a difference of X + Y * |second| (default: 0)",
    )
    parser.add_argument(
        "--rtol",
        type=arguments.tolerance,
        default=0.0,
        metavar="Y",
        help="factor Y of the allowed difference (default: 0)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the random inputs (default: 0)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command; return WRONG if something differs."""
    chosen = [aspect for aspect in PARTS if getattr(options, aspect)] or list(PARTS)
    tolerance = Tolerance(options.rtol, options.atol)
    texts = options.first, options.second
    stored = tuple(_stored(text) for text in texts)
    report = compare_models(*stored, tolerance=tolerance, graphs="graph" in chosen, weights="weights" in chosen)
    if "outputs" in chosen:
        _add_outputs(report, texts, stored, tolerance, options.seed)
    if options.json:
        console.emit_json(_as_json(report))
    else:
        console.emit(_text(report, chosen))
    return console.OK if report.equal else console.WRONG


def _as_json(report: ModelDifference) -> dict[str, Any]:
    entries = [
        {"name": e.name, "problem": e.problem, "graph": e.graph, "outputs": [_fields(o) for o in e.outputs]}
        for e in report.entries
    ]
    weights = [_fields(w) for w in report.weights]
    return {"equal": report.equal, "weights": weights, "entries": entries, "compared": report.compared}


def _fields(difference: Difference) -> dict[str, Any]:
    return {**difference.as_json(), "place": list(difference.position or ())}


def _stored(text: str) -> Artifact:
    if exported.is_exported(text):
        with targets.compiling():
            return exported.stored(text)
    return model_content.load(Path(text))


def _add_outputs(
    report: ModelDifference, texts: tuple[str, str], stored: tuple[Any, ...], tolerance: Tolerance, seed: int
) -> None:
    """Compare the outputs of both models for the same random inputs; each entry starts from the states in its file."""
    count = 0
    with targets.compiling():
        models = [exported.load_model(text, False, "host") for text in texts]
    for entry in report.entries:
        if entry.problem or "." in entry.name:
            continue
        specs = tuple(model.entry(entry.name).spec for model in stored)
        entry.problem = why_other_calls(*specs)
        if entry.problem:
            continue
        inputs = [random_array(spec, seed + i) for i, spec in enumerate(specs[0].inputs)]
        results = []
        for model in models:
            model.reset_state()
            results.append([np.array(a) for a in model.entry(entry.name).run(inputs)])
        entry.outputs = compare_outputs(specs, results[0], results[1], tolerance)
        count += len(results[0])
    report.compared["outputs"] = count


def _text(report: ModelDifference, chosen: list[str]) -> str:
    lines = []
    if "weights" in chosen:
        lines.append(_summary("weights", report.compared["weights"], report.weights))
        lines += [f"  {w}" for w in report.weights]
    for entry in report.entries:
        lines += _entry_lines(entry, chosen)
    lines.append("equal" if report.equal else "different")
    return "\n".join(lines)


def _summary(kind: str, count: int, differences: list[Difference]) -> str:
    if not differences:
        return f"{kind}: {count} equal"
    within = sum(d.is_within for d in differences)
    return f"{kind}: {count - len(differences)} of {count} equal" + (
        f", {within} within the tolerance" if within else ""
    )


def _entry_lines(entry: EntryDifference, chosen: list[str]) -> list[str]:
    if entry.problem:
        return [f"entry {entry.name}: {entry.problem}"]
    lines = []
    if "graph" in chosen:
        lines.append(f"entry {entry.name}: graphs {'differ' if entry.graph else 'equal'}")
        lines += [f"  {line}" for line in entry.graph.splitlines()]
    if "outputs" in chosen and "." not in entry.name:
        lines.append(f"entry {entry.name}: outputs {'differ' if entry.outputs else 'equal'}")
        lines += [f"  {o}" for o in entry.outputs]
    return lines
