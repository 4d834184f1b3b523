"""``graphc run``: a model file, graphc's own, of ``torch.export``, or of ONNX, on arrays, images, or folders of them.

Images become what the input's shape says, with Pillow: channels before rows or behind them (1, 3 or 4 of them), resized
so that they cover it and cropped around the middle, their numbers divided by 255 for inputs of floats. A folder is a
batch of its files in sorted order, in as many calls as the model's batch makes of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphc.base.dtypes import numbers
from graphc.base.lazy import deferred
from graphc.cli import arguments, comparison, console, inputs, taps
from graphc.cli.arrays import read_array
from graphc.cli.batches import Folder, count_of, run_chunks
from graphc.cli.comparison import Comparison, compare_arrays
from graphc.cli.entry import add_entry, entry_of
from graphc.cli.fields import Field, spec_fields
from graphc.cli.loading import load_model
from graphc.cli.progress import Progress
from graphc.files.container import replacing
from graphc.files.manifest import TensorSpec
from graphc.files.numpy_file import read_npz

if TYPE_CHECKING:
    from graphc.models.model_file import LoadedModel

asked, open_source = deferred("graphc.cli.sources:asked"), deferred("graphc.cli.sources:open_source")
SHOWN = 16
"""Most elements of an output that are printed one by one."""
ROWS = 8
"""Most rows whose best classes are printed."""
ATOL, RTOL = 1e-5, 1e-4
"""By how much outputs may differ from expected ones: ``ATOL + RTOL * |expected|``."""

EXAMPLES = (
    "graphc run net.gcm --input x=@digit.npy --print-top 3",
    "graphc run net.gcm --input x=@digit.png --mean 0.13 --std 0.31 --print-top 1",
    "graphc run net.gcm --input x=@digits --output scores.npy",
    "graphc run net.gcm --input x=@digit.npy --expect expected.npy --atol 1e-4",
    "graphc run net.gcm --fill random --seed 1 --taps",
)
JSON = (
    Field("model", "string", "name of the model"),
    *spec_fields("outputs", "an output"),
    Field("outputs[].values", "any", "its elements, nested; absent where they went to a file", optional=True),
    Field("outputs[].files[]", "string", "where it was written", optional=True),
    Field("outputs[].top[][].class", "integer", "one of the best classes of a row", optional=True),
    Field("outputs[].top[][].probability", "number", "its probability", optional=True),
    Field("outputs[].top[][].score", "number", "its score, where these are no probabilities", optional=True),
    Field("files[]", "string", "the files of a folder, in the order of rows", optional=True),
    *comparison.JSON,
    *taps.JSON,
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    parser.add_argument("model", metavar="FILE", help="a model file (.gcm), a .pt2 of torch.export, or an .onnx")
    inputs.add_inputs(parser)
    parser.add_argument(
        "--shape",
        type=arguments.size,
        action="append",
        default=[],
        metavar="NAME=N",
        help="size of a named dimension for what is made, and batch of a folder (default: the expected one)",
    )
    add_entry(parser)
    parser.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="write an output as .npy; or all of them as .npz",
    )
    parser.add_argument(
        "--print-top", type=arguments.count, metavar="K", help="print the K best classes along the last dimension"
    )
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="compare an output with an .npy, or those that an .npz names; exit code 6 where one differs",
    )
    for name, default, what in (("atol", ATOL, "by how much"), ("rtol", RTOL, "by which share of the expected number")):
        parser.add_argument(
            f"--{name}",
            type=arguments.tolerance,
            default=default,
            metavar="N",
            help=f"{what} elements may differ (default: {default:g})",
        )
    parser.add_argument("--weights", metavar="FILE", help="take these weights in the place of those of the file")
    parser.add_argument("--taps", action="store_true", help="print statistics of what each module of the model makes")
    parser.add_argument("--trust", action="store_true", help="run object code from the file (only from who you trust)")
    arguments.add_threads(parser)
    arguments.add_machine(parser)
    arguments.add_device(parser, "run on a device")
    parser.add_argument("--json", action="store_true", help="print names, types and values as JSON")
    parser.set_defaults(run=run)


class Outcome(NamedTuple):
    """What a run gave."""

    results: list[np.ndarray]
    """The outputs, of bf16 as float32."""
    files: tuple[Path, ...] = ()
    """The files of a folder, one for each row."""
    expected: tuple[Comparison, ...] = ()
    taps: tuple[taps.Tap, ...] = ()


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    loaded = load_model(options.model, options.trust, options.machine, options.device, options.weights)
    model = entry_of(loaded, options.entry)
    given = inputs.read(options, model.inputs, arguments.by_name(options.shape))
    places = _places(options.output, model.outputs)
    wanted = dict(_expected(options.expect, [spec.name for spec in model.outputs]))
    outcome = _run(options, model, given)
    by_name = {spec.name: array for spec, array in zip(model.outputs, outcome.results, strict=True)}
    compared = [compare_arrays(n, by_name[n], array, options.atol, options.rtol) for n, array in wanted.items()]
    outcome = outcome._replace(expected=tuple(compared))
    for path, chosen in places.items():
        _write(path, {model.outputs[i].name: outcome.results[i] for i in chosen})
    if options.json:
        console.emit_json(_as_json(model, outcome, places, options.print_top))
    else:
        _print(model, outcome, places, options.print_top)
    return console.OK if all(c.good for c in compared) else console.WRONG


def _run(options: argparse.Namespace, model: LoadedModel, given: list[Any]) -> Outcome:
    """Calls the model, once or for each chunk of a folder."""
    folders = [x for x in given if isinstance(x, Folder)]
    if not folders:
        tapped = _tapped(options, given) if options.taps else ()
        return Outcome([*map(numbers, model.run(given))], taps=tapped)
    if options.taps:
        raise console.UsageError("--taps is for one call", remedy="one file instead of a folder")
    names = [spec.name for spec in model.outputs]
    with Progress("running", count_of(folders), "files") as progress:
        chunks = list(run_chunks(model.run, given, inputs.scaling_of(options), names, progress.tell))
    return Outcome([numbers(np.concatenate(parts)) for parts in zip(*chunks, strict=True)], folders[0].files)


def _tapped(options: argparse.Namespace, given: list[Any]) -> tuple[taps.Tap, ...]:
    source = open_source(asked(options.model, options.entry))
    assert source.graph is not None
    return tuple(taps.tap(source.graph, source.weights, given))


def _expected(texts: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Outputs with what they should be; raises UsageError, and what ``read_array`` does."""
    seen = set()
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or name not in names:
            name, path = "", text
        found = {name: read_array(path)} if name or not path.endswith(".npz") else _read_all(path)
        if list(found) == [""]:
            if len(names) != 1:
                raise console.UsageError(f"--expect {text!r} names none of {', '.join(names)}", remedy="NAME=FILE.npy")
            found = {names[0]: found[""]}
        for one, array in found.items():
            if one not in names or one in seen:
                problem = "is expected twice" if one in seen else f"is no output, there are {', '.join(names)}"
                raise console.UsageError(f"--expect {text!r}: {one!r} {problem}")
            seen.add(one)
            yield one, array


def _read_all(path: str) -> dict[str, np.ndarray]:
    if not Path(path).is_file():
        raise FileNotFoundError(2, "no such file", path)
    return read_npz(path)


def _print(model: LoadedModel, outcome: Outcome, places: dict[Path, list[int]], count: int | None) -> None:
    for i, (spec, array) in enumerate(zip(model.outputs, outcome.results, strict=True)):
        written = "".join(f" -> {path}" for path, chosen in places.items() if i in chosen)
        values = "" if written or count or array.size > SHOWN else f" = {_values(array)}"
        shape = TensorSpec(spec.name, spec.dtype, array.shape)
        console.emit(f"{spec.name}: {console.type_text(shape)}{written}{values}")
        if count:
            _print_top(array, count, [path.name for path in outcome.files])
    for compared in outcome.expected:
        console.emit(str(compared))
    if outcome.taps:
        console.emit(taps.text(outcome.taps))


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


def _print_top(array: np.ndarray, count: int, files: Sequence[str]) -> None:
    kind, rows = top(array, count, len(files) or ROWS)
    for number, row in enumerate(rows):
        prefix = f"{files[number]}: " if len(files) == len(rows) else f"[{number}] " if len(rows) > 1 else ""
        for label, score in row:
            text = f"{score:8.2%}" if kind == "probability" else f"{score:10.6g}"
            console.emit(f"  {prefix}class {label:>4} {text}")
    left = array.size // max(array.shape[-1] if array.ndim else 1, 1) - len(rows)
    if left > 0:
        console.emit(f"  ... and {left} rows more")


def top(array: np.ndarray, count: int, limit: int = ROWS) -> tuple[str, list[list[tuple[int, float]]]]:
    """(kind of the scores, the best classes with their scores, row by row of the first ``limit``).

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
    rows = rows[:limit]
    best = np.argsort(-rows, axis=1, kind="stable")[:, :count]
    return kind, [[(int(c), float(row[c])) for c in order] for row, order in zip(rows, best, strict=True)]


def _are_probabilities(rows: np.ndarray) -> bool:
    sums_to_one = np.allclose(rows.sum(axis=1), 1, atol=1e-3)
    return bool(rows.shape[1] > 1 and (rows >= 0).all() and (rows <= 1 + 1e-6).all() and sums_to_one)


def _as_json(model: LoadedModel, outcome: Outcome, places: dict[Path, list[int]], count: Any) -> Any:
    outputs = []
    for i, (spec, array) in enumerate(zip(model.outputs, outcome.results, strict=True)):
        entry: dict[str, Any] = console.spec_json(TensorSpec(spec.name, spec.dtype, array.shape))
        files = [str(path) for path, chosen in places.items() if i in chosen]
        if files:
            entry["files"] = files
        else:
            entry["values"] = array.tolist()
        if count:
            kind, rows = top(array, count, len(outcome.files) or ROWS)
            entry["top"] = [[{"class": label, kind: score} for label, score in row] for row in rows]
        outputs.append(entry)
    told: dict[str, Any] = {"model": model.name, "outputs": outputs}
    for name, parts in (("expected", outcome.expected), ("taps", outcome.taps)):
        if parts:
            told[name] = [part.as_json() for part in parts]
    if outcome.files:
        told["files"] = [str(path) for path in outcome.files]
    return told
