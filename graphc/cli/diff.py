"""``graphc diff``: what differs between two models: graphs, weights, and outputs for the same inputs."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from graphc.checks.model_diff import (
    ArrayDifference,
    EntryDifference,
    ModelDifference,
    Tolerance,
    compare_models,
    compare_outputs,
    why_other_calls,
)
from graphc.cli import arguments, console, exported, targets
from graphc.cli.arrays import random_array
from graphc.cli.fields import Field
from graphc.files import model_content
from graphc.files.model_content import Artifact

EXAMPLES = (
    "graphc diff before.gcm after.gcm",
    "graphc diff net.gcm net.onnx --outputs --rtol 1e-4 --atol 1e-5 --seed 3",
    "graphc diff before.gcm after.gcm --weights --json",
)
PARTS = ("graph", "weights", "outputs")


def _array_fields(path: str, what: str) -> tuple[Field, ...]:
    return (
        Field(f"{path}[]", "object", what, optional=True),
        Field(f"{path}[].name", "string", "its name"),
        Field(f"{path}[].problem", "string", "why values cannot be compared; empty where they are"),
        Field(f"{path}[].absolute", "number", "the largest difference of two elements"),
        Field(f"{path}[].relative", "number", "the largest difference as a share of the second element"),
        Field(f"{path}[].count", "integer", "elements that are not equal"),
        Field(f"{path}[].size", "integer", "elements"),
        Field(f"{path}[].place[]", "integer", "index of the largest difference", optional=True),
        Field(f"{path}[].within", "boolean", "whether all are within the tolerance"),
    )


JSON = (
    Field("equal", "boolean", "whether nothing differs, but for numbers within the tolerance"),
    Field("compared", "object", "how many were compared"),
    Field("compared.*", "integer", "graphs, weights, outputs"),
    *_array_fields("weights", "a weight that differs"),
    Field("entries[]", "object", "an entry of either model"),
    Field("entries[].name", "string", "its name"),
    Field("entries[].problem", "string", "why it cannot be compared; empty where it is"),
    Field("entries[].graph", "string", "a unified diff of the graphs; empty where they have the same structure"),
    *_array_fields("entries[].outputs", "an output that differs"),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    for name in ("first", "second"):
        parser.add_argument(name, metavar="FILE", help="a model file (.gcm), a .pt2 of torch.export, or an .onnx")
    parser.add_argument("--graph", action="store_true", help="compare graphs only, or with other parts that are named")
    parser.add_argument("--weights", action="store_true", help="compare weights only, or with other parts")
    parser.add_argument("--outputs", action="store_true", help="compare outputs only, or with other parts")
    parser.add_argument("--atol", type=arguments.tolerance, default=0.0, metavar="X", help="allowed difference: X +")
    parser.add_argument("--rtol", type=arguments.tolerance, default=0.0, metavar="Y", help="Y * |second| (default: 0)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random inputs (default: 0)")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command; WRONG where something differs."""
    chosen = [part for part in PARTS if getattr(options, part)] or list(PARTS)
    tolerance = Tolerance(options.atol, options.rtol)
    texts = options.first, options.second
    stored = tuple(_stored(text) for text in texts)
    found = compare_models(*stored, tolerance=tolerance, graphs="graph" in chosen, weights="weights" in chosen)
    if "outputs" in chosen:
        _add_outputs(found, texts, stored, tolerance, options.seed)
    if options.json:
        console.emit_json({"equal": found.equal, **asdict(found)})
    else:
        console.emit(_text(found, chosen))
    return console.OK if found.equal else console.WRONG


def _stored(text: str) -> Artifact:
    if exported.is_exported(text):
        with targets.compiling():
            return exported.stored(text)
    return model_content.load(Path(text))


def _add_outputs(
    found: ModelDifference, texts: tuple[str, str], stored: tuple[Any, ...], tolerance: Tolerance, seed: int
) -> None:
    """Calls both models, each entry from the states of its file, with the same random inputs."""
    count = 0
    with targets.compiling():
        models = [exported.load_model(text, False, "host") for text in texts]
    for entry in found.entries:
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
    found.compared["outputs"] = count


def _text(found: ModelDifference, chosen: list[str]) -> str:
    lines = []
    if "weights" in chosen:
        lines.append(_summary("weights", found.compared["weights"], found.weights))
        lines += [f"  {_array_text(w)}" for w in found.weights]
    for entry in found.entries:
        lines += _entry_lines(entry, chosen)
    lines.append("equal" if found.equal else "different")
    return "\n".join(lines)


def _summary(what: str, count: int, differences: list[ArrayDifference]) -> str:
    if not differences:
        return f"{what}: {count} equal"
    within = sum(d.within for d in differences)
    return f"{what}: {count - len(differences)} of {count} equal" + (
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
        lines += [f"  {_array_text(o)}" for o in entry.outputs]
    return lines


def _array_text(found: ArrayDifference) -> str:
    if found.problem:
        return f"{found.name}: {found.problem}"
    place = "".join(f"[{i}]" for i in found.place)
    told = "within the tolerance" if found.within else "different"
    return (
        f"{found.name}: {told}: {found.count} of {found.size} elements, at most {found.absolute:.3g} "
        f"(relative {found.relative:.3g}), most at {place or 'its only element'}"
    )
