"""Models in 8 bits beside other runtimes and beside the same models in f32: ``python -m benchmarks.int8``.

onnxruntime.quantization writes the int8 files from f32 files that torch exports: QDQ form with a scale for each output
channel, or dynamic scales of activations. ``--folder`` keeps the files for later runs. Every contender takes NumPy
arrays and returns them; graphc runs a model file exported from the same ONNX file.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import graphc
from benchmarks.harness.framework import load_weights, read_weights
from benchmarks.harness.process import LIMITS, TARGET, UNLIMITED, call_in_child, limits_note, make_environment, pin
from benchmarks.harness.results import Result, arrays_of, cell, difference, format_ms, format_problems, format_table
from benchmarks.harness.sweep import make_parser, pick, print_json, restart, select, tell
from benchmarks.harness.timing import Call, find_library, measure
from benchmarks.models import more, small_vision, standard
from benchmarks.peers.graphc_calls import OPTIONS
from benchmarks.peers.graphc_calls import TARGET as CURRENT
from benchmarks.peers.onnx_calls import RUNTIMES, Run, find_unlimited, keep_to_onednn, onnx_run, openvino_infer
from graphc.base.installation import group_command

F32, INT8, QUANTIZED = "graphc f32", "graphc int8", "graphc.quantize"
"""Contenders of graphc: both files, and the f32 model after ``graphc.quantize``."""
PEER_INT8 = "onnxruntime int8"
"""The contender whose results int8 files are compared with."""
FREE = "all products"
"""Note of a peer that no switch limits to the instructions of a target."""
LEAST = 1.15
"""A case is listed below the table if the best peer's time over graphc's is less."""
CALIBRATION = range(100, 104)
"""Seeds of the inputs from which ranges of activations are measured."""
COMPARED = range(200, 208)
"""Seeds of the inputs for which results are compared."""
LIMIT_S = 1800.0
"""Time limit for writing the files of a case."""


@dataclass(frozen=True)
class Case:
    """A model, and how its int8 file is written."""

    name: str
    build: Callable[[ModuleType], Any]
    shape: tuple[int, ...]
    tokens: int = 0
    """Number of different tokens; 0 for inputs of floats."""
    dynamic: bool = False
    """Whether scales of activations are computed in each call; else they are constants from calibration."""
    own: bool = False
    """Whether ``graphc.quantize`` is measured too."""

    @property
    def model(self) -> str:
        """Return the name of the f32 file, which a static and a dynamic case share."""
        return self.name.removesuffix("_dynamic")

    def draw(self, seed: int) -> np.ndarray:
        generator = np.random.default_rng(seed)
        if self.tokens:
            return generator.integers(0, self.tokens, self.shape)
        return generator.standard_normal(self.shape, dtype=np.float32)

    def file(self, folder: Path, precision: str) -> Path:
        """Return the path of the ONNX file of a precision, f32 or int8."""
        return folder / (f"{self.model}.f32.onnx" if precision == "f32" else f"{self.name}.int8.onnx")

    def weights(self, folder: Path) -> Path:
        """Return the folder of the weights of the f32 model."""
        return folder / f"{self.model}.weights"


_IMAGE, _IDS = (1, 3, 224, 224), (1, 128)
CASES = {
    case.name: case
    for case in (
        Case("resnet50", standard.build_resnet50, _IMAGE, own=True),
        Case("mobilenet_v2", more.build_mobilenet, _IMAGE, own=True),
        Case("mobilenet_v3", small_vision.build_mobilenet_v3, _IMAGE),
        Case("efficientnet", small_vision.build_efficientnet, _IMAGE),
        Case("unet", more.build_unet, (1, 3, 128, 128)),
        Case("vit", more.build_vit, _IMAGE),
        Case("minilm", standard.build_minilm, _IDS, tokens=30000),
        Case("minilm_dynamic", standard.build_minilm, _IDS, tokens=30000, dynamic=True),
        Case("gpt", standard.build_gpt, _IDS, tokens=256),
        Case("gpt_dynamic", standard.build_gpt, _IDS, tokens=256, dynamic=True),
        Case("lstm_dynamic", standard.build_lstm, (1, 64, 64), dynamic=True),
        Case("keyword", small_vision.build_keyword, (1, 1, 49, 10), own=True),
        Case("anomaly", small_vision.build_anomaly, (1, 640)),
        Case("person", small_vision.build_person, (1, 3, 96, 96), own=True),
    )
}

# ---- files


def write_files(name: str, folder: str) -> dict[str, Any]:
    """Write the files of a case that the folder lacks. Raises ImportError where a package is missing."""
    case, place = CASES[name], Path(folder)
    f32, int8 = (case.file(place, precision) for precision in ("f32", "int8"))
    if not f32.exists():
        _write_once(f32, partial(_write_f32, case, case.weights(place)))
    if not int8.exists():
        _write_once(int8, partial(_write_int8, case, f32))
    return {}


def _write_once(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file under another name first, so that an interrupted run leaves no file of that path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished.onnx")
    write(unfinished)
    unfinished.replace(path)


def _require(package: str, module: str = "") -> ModuleType:
    if find_library(package) is None:
        raise ImportError(f"{package} is not installed: {group_command('bench')}")
    return import_module(module or package)


def _write_f32(case: Case, weights: Path, path: Path) -> None:
    """Export a model of torch with random weights, batch normalizations folded."""
    torch, prepare = _require("torch"), _require("onnxruntime", "onnxruntime.quantization.shape_inference")
    _require("onnx")
    torch.manual_seed(0)
    model = case.build(torch.nn)
    _set_statistics(torch, model, case)
    weights.mkdir(parents=True, exist_ok=True)
    np.savez(weights / "weights.npz", **read_weights(model))  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder) / "exported.onnx"
        arguments = (torch.from_numpy(case.draw(0)),)
        torch.onnx.export(model.eval(), arguments, exported, dynamo=True, external_data=False, verbose=False)
        prepare.quant_pre_process(str(exported), str(path), skip_symbolic_shape=True)


def _set_statistics(torch: ModuleType, model: Any, case: Case) -> None:
    """Compute means and variances of batch normalizations from data, so that activations have ranges as in a trained
    model."""
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None  # the mean over all batches
    model.train()
    for batch in range(4) if norms else ():
        images = np.concatenate([case.draw(10 + 4 * batch + image) for image in range(4)])
        with torch.no_grad():
            model(torch.from_numpy(images))


class Samples:
    """Calibration data, in the form that onnxruntime.quantization reads."""

    def __init__(self, input_name: str, case: Case):
        self._feeds = iter([{input_name: case.draw(seed)} for seed in CALIBRATION])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._feeds, None)


def _write_int8(case: Case, source: Path, path: Path) -> None:
    onnx, quantization = _require("onnx"), _require("onnxruntime", "onnxruntime.quantization")
    kinds = quantization.QuantType
    if case.dynamic:
        quantization.quantize_dynamic(str(source), str(path), weight_type=kinds.QInt8)
        return
    quantization.quantize_static(
        *(str(source), str(path), Samples(onnx.load(source).graph.input[0].name, case)),
        quant_format=quantization.QuantFormat.QDQ,
        per_channel=True,
        activation_type=kinds.QUInt8,
        weight_type=kinds.QInt8,
    )


# ---- contenders


@dataclass(frozen=True)
class Setting:
    """The contenders of a case, whose ONNX files are in a folder."""

    case: Case
    folder: Path
    exported: Path
    """Folder for graphc's model files."""
    threads: int
    result: Result

    def own(self, precision: str) -> Run:
        """Return graphc's contender for an ONNX file."""
        module = graphc.from_onnx(self.case.file(self.folder, precision).read_bytes())
        return self._load(module, precision)

    def quantized(self) -> Run:
        """Return the model with the weights of the f32 file after ``graphc.quantize``."""
        model = self.case.build(graphc.nn)
        load_weights(graphc, model, self.case.weights(self.folder))
        calibration = [graphc.tensor(self.case.draw(seed)) for seed in CALIBRATION]
        return self._load(graphc.quantize(model.eval(), calibration), "quantized")

    def _load(self, module: Any, name: str) -> Run:
        path = self.exported / f"{name}.gcm"
        graphc.export(module.eval(), graphc.tensor(self.case.draw(0)), path=path)
        self.result.facts[f"{name} .gcm MB"] = path.stat().st_size / 1e6
        loaded = graphc.load(path, **OPTIONS)
        return lambda arrays: loaded(*arrays)

    def peer(self, runtime: str, precision: str) -> Run:
        """Return a peer's contender, and note where it uses more instructions than the target has."""
        _require(runtime)
        path, name = self.case.file(self.folder, precision), f"{runtime} {precision}"
        if runtime in UNLIMITED or CURRENT == "host":
            self.result.facts[name] = {"unlimited": "" if CURRENT == "host" else FREE}
            return onnx_run(runtime, path, self.threads)
        core = import_module("openvino").Core()
        source = core.read_model(path)
        if precision == "f32":
            keep_to_onednn(source)
        model, infer = openvino_infer(core, source, self.threads)
        self.result.facts[name] = {"unlimited": find_unlimited(model)}
        return lambda arrays: list(infer(arrays).values())

    def makers(self, peers: Sequence[str]) -> dict[str, Callable[[], Run]]:
        """Return all contenders, graphc's int8 first: the JSON's ``ratio`` is the one of that."""
        makers = {INT8: partial(self.own, "int8"), F32: partial(self.own, "f32")}
        for runtime in peers:
            makers |= {f"{runtime} {p}": partial(self.peer, runtime, p) for p in ("f32", "int8")}
        return makers | ({QUANTIZED: self.quantized} if self.case.own else {})


def run_case(case: Case, folder: Path, peers: Sequence[str], rounds: int, seconds: float, threads: int = 1) -> Result:
    """Return a case, its missing files written first, by a process of its own."""
    result = Result(case.name)
    with tempfile.TemporaryDirectory(prefix="graphc-int8-") as temporary:
        environment = make_environment(threads, Path(temporary))
        answer = call_in_child("benchmarks.int8:write_files", environment, LIMIT_S, name=case.name, folder=str(folder))
        if "error" in answer:
            result.problems["files"] = str(answer["error"])
            return result
        setting, runs = Setting(case, folder, Path(temporary), threads, result), dict[str, Run]()

        def start(name: str, make: Callable[[], Run]) -> Call:
            runs[name] = make()
            return partial(runs[name], [case.draw(0)])

        makers = {name: partial(start, name, make) for name, make in setting.makers(peers).items()}
        # Processor time does not count the turns of other programs; several threads need the time that passes.
        clock = time.process_time if threads == 1 else time.perf_counter
        measure(result, makers, rounds, seconds, clock, compare=False)
        result.facts["int8 .onnx MB"] = case.file(folder, "int8").stat().st_size / 1e6
        add_agreement(result, case, {name: run for name, run in runs.items() if name in result.rounds_ms})
    result.facts |= {"best int8 peer": best_int8(result), "peer / int8": peer_ratio(result)}
    result.facts["f32 / int8"] = result.over(F32, INT8)
    return result


# ---- agreement

PAIRS = {
    "graphc to onnxruntime": (INT8, PEER_INT8),
    "graphc to f32": (INT8, F32),
    "onnxruntime to f32": (PEER_INT8, F32),
    "graphc.quantize to f32": (QUANTIZED, F32),
}
"""Compared contenders by the title of their column."""


def add_agreement(result: Result, case: Case, runs: Mapping[str, Run]) -> None:
    """Add to the facts the agreement of each of PAIRS whose contenders ran."""
    used = {name for pair in PAIRS.values() for name in pair if name in runs}
    outputs = {name: [arrays_of(runs[name]([case.draw(seed)]))[0] for seed in COMPARED] for name in used}
    scales = [float(np.abs(a).max()) for a in outputs.get(F32, ())]
    for title, (name, other) in PAIRS.items():
        if scales and name in outputs and other in outputs:
            result.facts[title] = agreement(outputs[name], outputs[other], scales)


def agreement(
    results: Sequence[np.ndarray], others: Sequence[np.ndarray], scales: Sequence[float]
) -> tuple[float, float]:
    """Return the largest difference relative to the scale of each result, and the fraction of equal positions of the
    largest value: over the channels of images, else over the last dimension."""
    pairs = list(zip(results, others, strict=True))
    differences = [
        difference([a], [b]) * (float(np.abs(b).max()) or 1.0) / (scale or 1.0)
        for (a, b), scale in zip(pairs, scales, strict=True)
    ]
    equal = [a.argmax(axis) == b.argmax(axis) for a, b in pairs for axis in (1 if a.ndim == 4 else -1,)]
    return max(differences), float(np.mean(equal))


# ---- printing


def best_int8(result: Result) -> str | None:
    """Return the fastest int8 peer; one that is not limited to the target does not count."""
    names = [f"{runtime} int8" for runtime in RUNTIMES]
    limited = [name for name in names if result.facts.get(name, {}).get("unlimited") != FREE]
    return min((n for n in limited if result.ms(n)), key=lambda n: result.ms(n) or 0.0, default=None)


def peer_ratio(result: Result) -> float | None:
    """Return the time of the best int8 peer over graphc's: above 1, graphc is faster."""
    return result.over(best_int8(result), INT8)


def time_text(result: Result, name: str) -> str:
    """Return a time: bold for the best int8 peer, ``^`` for one that uses more instructions than the target has."""
    ms = result.ms(name)
    if ms is None:
        return "-"
    text = format_ms(ms) + "^" * bool(result.facts.get(name, {}).get("unlimited"))
    return f"**{text}**" if name == best_int8(result) else text


def format_times(results: Sequence[Result], peers: Sequence[str]) -> str:
    names = [*(f"{runtime} {p}" for runtime in peers for p in ("f32", "int8")), F32, INT8, QUANTIZED]
    rows = []
    for r in results:
        ratios = [cell(peer_ratio(r)), cell(r.over(F32, INT8))]
        rows.append([r.name, *(time_text(r, name) for name in names), *ratios])
    return format_table(["case", *names, "best peer / int8", "f32 / int8"], rows)


def format_agreement(results: Sequence[Result]) -> str:
    sizes = ("int8 .onnx MB", "int8 .gcm MB")
    rows = []
    for r in results:
        pairs = (f"{p[0]:.1e}, {p[1]:.1%}" if (p := r.facts.get(title)) else "-" for title in PAIRS)
        megabytes = (format_ms(r.facts[name]) if name in r.facts else "-" for name in sizes)
        rows.append([r.name, *megabytes, *pairs])
    return format_table(["case", *sizes, *PAIRS], rows)


def summary(results: Sequence[Result]) -> list[str]:
    """Count the cases that are behind, with the geometric means of both ratios."""
    kinds = (
        ("best int8 peer / graphc int8", f"below {LEAST}", LEAST, peer_ratio),
        ("graphc f32 / graphc int8", "int8 slower", 1.0, lambda result: result.over(F32, INT8)),
    )
    lines = []
    for title, verdict, least, ratio_of in kinds:
        ratios = {r.name: ratio for r in results if (ratio := ratio_of(r)) is not None}
        if ratios:
            low, mean = [n for n, ratio in ratios.items() if ratio < least], statistics.geometric_mean(ratios.values())
            text = f"{title}: geometric mean {mean:.2f} of {len(ratios)}; {verdict}: {len(low)}"
            lines.append(text + f" ({', '.join(low)})" * bool(low))
    return lines


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser("benchmarks.int8", __doc__, rounds=5, seconds=0.15)
    add = parser.add_argument
    add("--peers", type=pick(RUNTIMES), default=list(RUNTIMES), metavar=",".join(RUNTIMES))
    add("--folder", type=Path, metavar="FOLDER", help="keep the ONNX files in this folder (default: a temporary one)")
    limited = "limit graphc and openvino to these instructions (default: all of this machine)"
    add("--target", choices=("host", *LIMITS), default="host", help=limited)
    add("--threads", type=int, default=1, metavar="N", help="number of threads (default: 1)")
    return select(parser, list(CASES), argv)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    if argv is None:
        restart("benchmarks.int8", options.threads, {TARGET: options.target, **LIMITS.get(options.target, {})})
    pin(options.threads)
    results = []
    with tempfile.TemporaryDirectory(prefix="graphc-int8-") as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        for name in options.cases:
            tell(name)
            turns = (options.rounds, options.seconds, options.threads)
            results.append(run_case(CASES[name], folder, options.peers, *turns))
    if options.json:
        print_json(results, target=options.target)
    else:
        note = f"Milliseconds per call, {options.threads} thread(s), medians of {options.rounds} rounds."
        tables = [note, format_times(results, options.peers), format_agreement(results)]
        print("\n\n".join(tables), "", *summary(results), *format_problems(results), sep="\n")
        print(limits_note(options.target, options.peers), end="")
    return 1 if any(r.problems for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
