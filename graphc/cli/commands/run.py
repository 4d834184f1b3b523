"""``graphc run``: run a model file (graphc, ``torch.export`` or ONNX) on arrays, images, or folders of them.

Images need Pillow. The shape of the input chooses their layout: channels first or last (1, 3 or 4 of them). An image is
resized to cover the input and cropped around its centre; for float inputs, pixel values are divided by 255. A folder is
a batch of its files in sorted order, split into calls of the model's batch size. Inputs that are texts are JSON
(``[["red"],["blue"]]``) or a file ``@colors.txt`` with a text per line.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphc.base.difference import Difference, difference, tolerance_for
from graphc.base.dtypes import elements, named, numbers
from graphc.base.lazy import deferred
from graphc.base.progress import Progress
from graphc.cli import arguments, comparison, console, inputs, taps
from graphc.cli.arrays import read_array
from graphc.cli.batches import Folder, count_of, run_chunks
from graphc.cli.entry import add_entry, entry_of
from graphc.cli.fields import Field, below, spec_fields
from graphc.cli.loading import FOREIGN, load_model
from graphc.files.container import replacing
from graphc.files.manifest import TensorSpec
from graphc.files.numpy_file import read_npz

if TYPE_CHECKING:
    from graphc.models.model_file import LoadedModel

run_texts = deferred("graphc.cli.texts:run")
run_stream = deferred("graphc.cli.streaming:run")
file_options = deferred("graphc.cli.sources:file_options")
open_source = deferred("graphc.cli.sources:open_source")
SizesOfModel = deferred("graphc.models.sized_model:SizesOfModel")
SHOWN = 16
"""Largest number of elements of an output that is printed in full."""
ROWS = 8
"""Largest number of rows whose best classes are printed."""

EXAMPLES = (
    "graphc run net.gcm --input x=@digit.npy --print-top 3",
    "graphc run net.gcm --input x=@digit.png --mean 0.13 --std 0.31 --print-top 1",
    "graphc run net.gcm --input x=@digits --output scores.npy",
    "graphc run net.gcm --input x=@digit.npy --expect expected.npy --atol 1e-4",
    "graphc run net.gcm --fill random --seed 1 --taps",
    "graphc run denoiser.gcm --stream noisy.wav --output clean.wav",
)
JSON = (
    Field("model", "string", "name of the model"),
    Field("sizes.*", "integer", "sizes of named dimensions; of a folder none", optional=True),
    *spec_fields("outputs", "an output"),
    Field("outputs[].values", "any", "its elements, nested; absent if they were written to a file", optional=True),
    Field("outputs[].files[]", "string", "a file that it was written to", optional=True),
    Field("outputs[].top[][].class", "integer", "one of the best classes of a row", optional=True),
    Field("outputs[].top[][].probability", "number", "its probability", optional=True),
    Field("outputs[].top[][].score", "number", "its score, if the scores are not probabilities", optional=True),
    Field("files[]", "string", "the files of a folder, in the order of rows", optional=True),
    *below("expected[]", comparison.JSON, optional=True),
    Field("expected[].good", "boolean", "the same as ``within``", optional=True),
    Field("expected[].worst.index", "array or null", "the same as ``position``", optional=True),
    Field("expected[].worst.index[]", "integer", "its index in one dimension", optional=True),
    Field("expected[].worst.value", "any", "the same as ``actual``", optional=True),
    Field("expected[].worst.expected", "any", "the same as ``expected``", optional=True),
    Field("expected[].shape", "string", "the same as ``problem``, if there is one", optional=True),
    *taps.JSON,
    Field("stream.block", "integer", "with --stream: samples of a call", optional=True),
    Field("stream.calls", "integer", "calls made", optional=True),
    Field("stream.samples", "integer", "samples of the result", optional=True),
    Field("stream.rest", "integer", "samples at the end of the file that fill no block", optional=True),
    Field("stream.file", "string", "file with the result", optional=True),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="FILE", help="a model file (.gcm), a .pt2 of torch.export, an .onnx or .mlir")
    inputs.add_inputs(parser)
    parser.add_argument(
        "--shape",
        type=arguments.size,
        action="append",
        default=[],
        metavar="NAME=N",
        help="size of a named dimension: of generated inputs, and of the batches of a folder (default: the "
        "model's expected size)",
    )
    add_entry(parser)
    parser.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="write one output to an .npy file, or all outputs to an .npz file",
    )
    parser.add_argument(
        "--stream",
        metavar="FILE",
        help="feed the samples of a file to a stream, block by block, and write the results to --output; .wav, .npy or "
        ".raw (f32)",
    )
    parser.add_argument("--per-channel", action="store_true", help="with --stream: run each channel by itself")
    parser.add_argument(
        "--print-top",
        type=arguments.count,
        metavar="K",
        help="print the K highest scores along the last dimension, with their classes",
    )
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="compare one output with an .npy file, or those named in an .npz file; exit code 6 if one differs",
    )
    for name, kind, default in (("atol", "absolute", "1e-5 of the largest element"), ("rtol", "relative", "1e-4")):
        parser.add_argument(
            f"--{name}",
            type=arguments.tolerance,
            metavar="N",
            help=f"{kind} tolerance of --expect (default: by element type, for f32 {default})",
        )
    parser.add_argument("--weights", metavar="FILE", help="use the weights of another file instead of the model's own")
    parser.add_argument(
        "--taps", action="store_true", help="print statistics of the output of each module of the model"
    )
    parser.add_argument(
        "--trust", action="store_true", help="run object code from the file (only if you trust its author)"
    )
    arguments.add_threads(parser)
    arguments.add_machine(parser)
    arguments.add_device(parser, "run on a device")
    parser.add_argument("--json", action="store_true", help="print names, types and values as JSON")
    parser.set_defaults(run=run)


class Outcome(NamedTuple):
    """Results of a run."""

    results: list[np.ndarray]
    """The outputs; bf16 ones as float32."""
    files: tuple[Path, ...] = ()
    """The files of a folder, one for each row."""
    expected: tuple[Difference, ...] = ()
    taps: tuple[taps.Tap, ...] = ()
    sizes: Mapping[str, int] = {}
    """Sizes of named dimensions; empty for a folder."""


def run(options: argparse.Namespace) -> int:
    load = partial(load_model, options.model, options.trust, options.machine, options.device, options.weights)
    model = entry_of(load(), options.entry)
    if model.texts is not None:
        return run_texts(options, model)
    if options.stream is not None:
        return run_stream(options, model)
    values = inputs.read(options, model.inputs, arguments.by_name(options.shape))
    if PurePath(options.model).suffix in FOREIGN and not any(isinstance(x, Folder) for x in values):
        sizes = SizesOfModel(model.spec).refused(values)
        model = model if sizes is None else load(sizes.items())
    files = _output_files(options.output, model.outputs)
    expected = dict(_expected(options.expect, [spec.name for spec in model.outputs]))
    outcome = _run(options, model, values)
    by_name = {spec.name: array for spec, array in zip(model.outputs, outcome.results, strict=True)}
    types = {spec.name: named(spec.dtype) for spec in model.outputs}
    compared = [
        _compared(options, name, elements(by_name[name], types[name]), array) for name, array in expected.items()
    ]
    has_sizes = model.spec.dims and not outcome.files
    sizes = SizesOfModel(model.spec).by_name(values) if has_sizes else {}
    outcome = outcome._replace(expected=tuple(compared), sizes=sizes)
    if options.fill and sizes.keys() - arguments.by_name(options.shape).keys():
        console.say(f"note: the inputs have {console.with_sizes('', sizes).strip()}; --shape NAME=N chooses others")
    for path, chosen in files.items():
        _write(path, {model.outputs[i].name: outcome.results[i] for i in chosen})
    if options.json:
        console.emit_json(_as_json(model, outcome, files, options.print_top))
    else:
        _print(model, outcome, files, options.print_top)
    return console.OK if all(c.is_within for c in compared) else console.WRONG


def _run(options: argparse.Namespace, model: LoadedModel, values: list[Any]) -> Outcome:
    """Call the model once, or once for each chunk of a folder."""
    folders = [x for x in values if isinstance(x, Folder)]
    if not folders:
        statistics = _taps(options, values) if options.taps else ()
        return Outcome([*map(numbers, model.run(values))], taps=statistics)
    if options.taps:
        raise console.UsageError("--taps measures a single call", remedy="pass one file instead of a folder")
    names = [spec.name for spec in model.outputs]
    with Progress("running", count_of(folders), "files") as progress:
        chunks = list(run_chunks(model.run, values, inputs.scaling_of(options), names, progress.tell))
    return Outcome([numbers(np.concatenate(pieces)) for pieces in zip(*chunks, strict=True)], folders[0].files)


def _compared(options: argparse.Namespace, name: str, actual: np.ndarray, expected: np.ndarray) -> Difference:
    return difference(name, actual, expected, tolerance_for(actual, expected, options.rtol, options.atol))


def _expected_json(difference: Difference) -> dict[str, Any]:
    fields = difference.as_json()
    worst = {"index": fields["position"], "value": fields["actual"], "expected": fields["expected"]}
    shape = {"shape": difference.problem} if difference.problem else {}
    return {**fields, "good": difference.is_within, "worst": worst, **shape}


def _taps(options: argparse.Namespace, values: list[Any]) -> tuple[taps.Tap, ...]:
    source = open_source(file_options(options.model, options.entry))
    assert source.graph is not None
    return tuple(taps.tap(source.graph, source.weights, values))


def _expected(texts: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each output's name with its expected array. Raises UsageError, and the errors of ``read_array``."""
    done = set()
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or name not in names:
            name, path = "", text
        arrays = {name: read_array(path)} if name or not path.endswith(".npz") else _read_all(path)
        if list(arrays) == [""]:
            if len(names) != 1:
                raise console.UsageError(
                    f"--expect {text!r} names none of the outputs {', '.join(names)}", remedy="write NAME=FILE.npy"
                )
            arrays = {names[0]: arrays[""]}
        for output, array in arrays.items():
            if output not in names or output in done:
                problem = "is given twice" if output in done else f"is not an output; there are {', '.join(names)}"
                raise console.UsageError(f"--expect {text!r}: {output!r} {problem}")
            done.add(output)
            yield output, array


def _read_all(path: str) -> dict[str, np.ndarray]:
    if not Path(path).is_file():
        raise FileNotFoundError(2, "no such file", path)
    return read_npz(path)


def _print(model: LoadedModel, outcome: Outcome, files: dict[Path, list[int]], count: int | None) -> None:
    for i, (spec, array) in enumerate(zip(model.outputs, outcome.results, strict=True)):
        written = "".join(f" -> {path}" for path, chosen in files.items() if i in chosen)
        values = "" if written or count or array.size > SHOWN else f" = {_values(array)}"
        shape = TensorSpec(spec.name, spec.dtype, array.shape)
        console.emit(f"{spec.name}: {console.type_text(shape)}{written}{values}")
        if count:
            _print_top(array, count, [path.name for path in outcome.files])
    for compared in outcome.expected:
        console.emit(str(compared))
    if outcome.taps:
        console.emit(taps.text(outcome.taps))


def _output_files(texts: Sequence[str], specs: Sequence[TensorSpec]) -> dict[Path, list[int]]:
    """Map each output file to the indices of the outputs to write to it. Raises UsageError."""
    names = [s.name for s in specs]
    indices_by_file: dict[Path, list[int]] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or name not in names:
            name, path = "", text
        file = Path(path)
        if file.suffix not in (".npy", ".npz"):
            raise console.UsageError(f"--output {text!r} is not an .npy or .npz file")
        if not file.resolve().parent.is_dir():
            raise console.UsageError(f"there is no folder {str(file.parent)!r} to write {file.name!r} to")
        if file.suffix == ".npy" and not name and len(names) != 1:
            raise console.UsageError(
                f"--output {text!r} names none of the outputs {', '.join(names)}", remedy="write NAME=FILE.npy"
            )
        indices_by_file.setdefault(file, []).extend([names.index(name)] if name else range(len(names)))
    for file, chosen in indices_by_file.items():
        if len(set(chosen)) != len(chosen) or (file.suffix == ".npy" and len(chosen) != 1):
            raise console.UsageError(f"--output {str(file)!r} is given twice")
    return indices_by_file


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
    omitted = array.size // max(array.shape[-1] if array.ndim else 1, 1) - len(rows)
    if omitted > 0:
        console.emit(f"  ... and {omitted} more rows")


def top(array: np.ndarray, count: int, limit: int = ROWS) -> tuple[str, list[list[tuple[int, float]]]]:
    """Return the kind of the scores, and the best classes with their scores for each of the first ``limit`` rows.

    Logarithms of probabilities become probabilities; other scores are unchanged.
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


def _as_json(model: LoadedModel, outcome: Outcome, output_files: dict[Path, list[int]], count: Any) -> Any:
    outputs = []
    for i, (spec, array) in enumerate(zip(model.outputs, outcome.results, strict=True)):
        entry: dict[str, Any] = console.spec_json(TensorSpec(spec.name, spec.dtype, array.shape))
        files = [str(path) for path, chosen in output_files.items() if i in chosen]
        if files:
            entry["files"] = files
        else:
            entry["values"] = array.tolist()
        if count:
            kind, rows = top(array, count, len(outcome.files) or ROWS)
            entry["top"] = [[{"class": label, kind: score} for label, score in row] for row in rows]
        outputs.append(entry)
    facts: dict[str, Any] = {"model": model.name, "sizes": outcome.sizes, "outputs": outputs}
    if outcome.expected:
        facts["expected"] = [_expected_json(difference) for difference in outcome.expected]
    if outcome.taps:
        facts["taps"] = [tap.as_json() for tap in outcome.taps]
    if outcome.files:
        facts["files"] = [str(path) for path in outcome.files]
    return facts
