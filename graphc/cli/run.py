"""``graphc run``: a model file, graphc's own, of ``torch.export``, or of ONNX, on input arrays."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphc.cli import arguments, console, exported, targets
from graphc.cli.arrays import read_inputs
from graphc.compiled.model_file import LoadedModel
from graphc.files.container import replacing
from graphc.files.manifest import TensorSpec

SHOWN = 16
"""Most elements of an output that are printed one by one."""
ROWS = 8
"""Most rows whose best classes are printed."""

EXAMPLES = ("graphc run net.gcm --input x=@digit.npy --print-top 3",)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    parser.add_argument("model", metavar="FILE", help="a model file (.gcm), a .pt2 of torch.export, or an .onnx")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="@file.npy, @file.npz:KEY, zeros, ones, random[:SEED] or JSON numbers; once per input",
    )
    parser.add_argument(
        "--shape",
        type=arguments.size,
        action="append",
        default=[],
        metavar="NAME=N",
        help="size of a named dimension for zeros, ones and random (default: the expected one)",
    )
    parser.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="write an output as .npy; or all of them as .npz",
    )
    parser.add_argument(
        "--print-top", type=_count, metavar="K", help="print the K best classes along the last dimension"
    )
    parser.add_argument("--trust", action="store_true", help="run object code from the file (only from who you trust)")
    arguments.add_entry(parser)
    arguments.add_threads(parser)
    arguments.add_machine(parser)
    arguments.add_device(parser, "run on a device")
    parser.add_argument("--json", action="store_true", help="print names, types and values as JSON")
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    with targets.compiling():
        model = exported.load_model(options.model, options.trust, options.machine, options.device, options.entry)
    inputs = read_inputs(options.input, model.inputs, arguments.by_name(options.shape))
    places = _places(options.output, model.outputs)
    results = model.run(inputs)
    for path, chosen in places.items():
        _write(path, {model.outputs[i].name: results[i] for i in chosen})
    if options.json:
        console.emit_json(_as_json(model, results, places, options.print_top))
        return console.OK
    for i, (spec, array) in enumerate(zip(model.outputs, results, strict=True)):
        written = "".join(f" -> {path}" for path, chosen in places.items() if i in chosen)
        values = "" if written or options.print_top or array.size > SHOWN else f" = {_values(array)}"
        shape = TensorSpec(spec.name, spec.dtype, array.shape)
        console.emit(f"{spec.name}: {console.type_text(shape)}{written}{values}")
        if options.print_top:
            _print_top(array, options.print_top)
    return console.OK


def _places(texts: Sequence[str], specs: Sequence[TensorSpec]) -> dict[Path, list[int]]:
    """Which outputs go to which file; raises UsageError."""
    names = [s.name for s in specs]
    found: dict[Path, list[int]] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or name not in names:
            name, path = "", text
        place = Path(path)
        if place.suffix not in (".npy", ".npz"):
            raise console.UsageError(f"--output {text!r} is no .npy or .npz file")
        if not place.resolve().parent.is_dir():
            raise console.UsageError(f"there is no folder {str(place.parent)!r} to write {place.name!r} to")
        if place.suffix == ".npy" and not name and len(names) != 1:
            raise console.UsageError(f"--output {text!r} names none of {', '.join(names)}", remedy="NAME=FILE.npy")
        found.setdefault(place, []).extend([names.index(name)] if name else range(len(names)))
    for place, chosen in found.items():
        if len(set(chosen)) != len(chosen) or (place.suffix == ".npy" and len(chosen) != 1):
            raise console.UsageError(f"--output {str(place)!r} is given twice")
    return found


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with replacing(path) as file:
        if path.suffix == ".npy":
            np.save(file, next(iter(arrays.values())), allow_pickle=False)
        else:
            np.savez(file, **arrays)  # type: ignore[arg-type]


def _values(array: np.ndarray) -> str:
    return np.array2string(array, separator=", ", threshold=SHOWN, precision=6).replace("\n", "")


def _print_top(array: np.ndarray, count: int) -> None:
    kind, rows = top(array, count)
    for number, row in enumerate(rows):
        prefix = f"[{number}] " if len(rows) > 1 else ""
        for label, score in row:
            text = f"{score:8.2%}" if kind == "probability" else f"{score:10.6g}"
            console.emit(f"  {prefix}class {label:>4} {text}")
    left = array.size // max(array.shape[-1] if array.ndim else 1, 1) - len(rows)
    if left > 0:
        console.emit(f"  ... and {left} rows more")


def top(array: np.ndarray, count: int) -> tuple[str, list[list[tuple[int, float]]]]:
    """(kind of the scores, the best classes with their scores, row by row).

    Logarithms of probabilities come out as probabilities; other scores as they are.
    """
    if not array.ndim or not array.size:
        return "score", []
    rows = array.reshape(-1, array.shape[-1]).astype(np.float64)
    kind = "score"
    with np.errstate(over="ignore"):
        powers = np.exp(rows)
    if _are_probabilities(powers):
        kind, rows = "probability", powers
    elif _are_probabilities(rows):
        kind = "probability"
    rows = rows[:ROWS]
    best = np.argsort(-rows, axis=1, kind="stable")[:, :count]
    return kind, [[(int(c), float(row[c])) for c in order] for row, order in zip(rows, best, strict=True)]


def _are_probabilities(rows: np.ndarray) -> bool:
    sums_to_one = np.allclose(rows.sum(axis=1), 1, atol=1e-3)
    return bool(rows.shape[1] > 1 and (rows >= 0).all() and (rows <= 1 + 1e-6).all() and sums_to_one)


def _as_json(model: LoadedModel, results: Sequence[np.ndarray], places: dict[Path, list[int]], count: Any) -> Any:
    outputs = []
    for i, (spec, array) in enumerate(zip(model.outputs, results, strict=True)):
        entry: dict[str, Any] = console.spec_json(TensorSpec(spec.name, spec.dtype, array.shape))
        files = [str(path) for path, chosen in places.items() if i in chosen]
        if files:
            entry["files"] = files
        else:
            entry["values"] = array.tolist()
        if count:
            kind, rows = top(array, count)
            entry["top"] = [[{"class": label, kind: score} for label, score in row] for row in rows]
        outputs.append(entry)
    return {"model": model.name, "outputs": outputs}
