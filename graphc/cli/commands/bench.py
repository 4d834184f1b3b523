"""``graphc bench``: measure how long each call of a model file takes on this machine, alone or compared with others.

Each call is timed by itself, and the cost of reading the clock is subtracted. With ``--rate``, the time of a call
counts from the moment it was due, so that it includes the wait for earlier calls. With ``--compare``, the model and the
others take turns.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphc.base.progress import Progress
from graphc.cli import (
    arguments,
    assertions,
    breakdown,
    comparison,
    console,
    decoders,
    exported,
    inputs,
    language_bench,
    peers,
    targets,
)
from graphc.cli.arrays import read_inputs
from graphc.cli.assertions import Assertion, assertion
from graphc.cli.entry import add_entry, entry_of
from graphc.cli.fields import Field, below
from graphc.cli.latency import SECOND, Pace, Samples, clock_cost, measure_round, rounds_of, warm_up
from graphc.models.model_file import LoadedModel
from graphc.models.sized_model import SizesOfModel
from graphc.runtime.devices import device_named
from graphc.runtime.devices.array import from_host

EXAMPLES = (
    "graphc bench net.gcm",
    "graphc bench net.gcm --shape batch=1,8 --threads 1 --duration 0.2",
    "graphc bench net.gcm --streams 2 --rate 500 --duration 0.2",
    'graphc bench net.gcm --duration 0.2 --assert "p50<1s" --assert "throughput>1"',
    "graphc bench net.gcm --compare onnxruntime --compare openvino --rounds 10 --json",
    "graphc bench net.gcm --duration 0.2 --compare before.json --compare other.gcm",
    "graphc bench denoiser.gcm --rate 48000 --block 64 --duration 0.2",
    "graphc bench net.py:Net --input x:f32[1,1,28,28] --breakdown",
    "graphc bench model.gguf --prompt 16 --tokens 8 --duration 0.2",
)
_FIGURES = (
    *(Field(name, "number", f"{name} of the calls", "s") for name in assertions.TIMES),
    Field("throughput", "number", "calls per second", "calls/s"),
    Field("calls", "integer", "number of calls"),
    Field("missed", "integer", "calls that --rate made due but that were never made"),
    Field("real-time", "number", "with --block: time of the samples of a call divided by p50", optional=True),
    Field("late", "integer", "with --block: calls that took longer than their samples", optional=True),
)


_PEER = (
    Field("name", "string", "name of the peer", optional=True),
    Field("version", "string", "its version"),
    *below("call", _FIGURES, optional=True),
    Field("ratio.median", "number", "its p50 divided by the model's: median of the rounds"),
    Field("ratio.low", "number or null", "10th percentile of the rounds; null for figures of a file"),
    Field("ratio.high", "number or null", "90th percentile of the rounds; null for figures of a file"),
    Field("difference", "number or null", "largest difference of an output; null for figures of a file"),
    *(f._replace(path=f"outputs.{f.path}", optional=True) for f in comparison.JSON),
)
JSON = (
    Field("model", "string", "name of the model", optional=True),
    Field("sizes.*", "integer", "without --shape: sizes of named dimensions", optional=True),
    *below("call", _FIGURES, optional=True),
    *below("compare[]", _PEER, optional=True),
    *below("asserts[]", assertions.JSON, optional=True),
    Field("calls[].sizes.*", "integer", "with --shape: sizes of named dimensions", optional=True),
    *below("calls[].call", _FIGURES, optional=True),
    *below("calls[].compare[]", _PEER, optional=True),
    *below("calls[].asserts[]", assertions.JSON, optional=True),
    *language_bench.JSON,
    Field("rounds", "integer", "number of rounds", optional=True),
    Field("threads", "integer", "largest number of threads of a call", optional=True),
    Field("streams", "integer", "concurrent callers", optional=True),
    Field("rate", "number or null", "calls per second of --rate; null for calls back to back", "calls/s", True),
    Field("clock", "number", "cost of reading the clock, which was subtracted", "s", True),
    Field("load", "number", "time to read, check, compile and link the file", "s", True),
    Field("stages.*", "number", "time of each compiler stage", "s", True),
    Field("steps.*", "number", "with --breakdown: time of each step", "s", True),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="FILE", help="a .gcm, .pt2, .onnx, .mlir or .gguf file; with --breakdown a model in Python too"
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of an input, as for graphc run; once for each input (default: random arrays)",
    )
    inputs.add_fill(parser)
    parser.add_argument(
        "--shape",
        type=arguments.sizes,
        action="append",
        default=[],
        metavar="NAME=N,...",
        help="sizes of a named dimension to measure, such as batch=1,8,32; once for each dimension (default: the "
        "model's expected size)",
    )
    add_entry(parser)
    _add_pace(parser)
    parser.add_argument(
        "--assert",
        dest="asserts",
        type=assertion,
        action="append",
        default=[],
        metavar="BOUND",
        help="require a bound such as p99<50us (p50, p90, p99, p99.9, min, max, mean; ns, us, ms, s) or "
        "throughput>1000; "
        "exit code 6 if it is not met; may be given several times",
    )
    parser.add_argument(
        "--compare",
        action="append",
        default=[],
        metavar="PEER",
        help="compare with onnxruntime, openvino, torch (for a .pt2) or another model file, taking turns; or with the "
        ".json file of an earlier --json; may be given several times",
    )
    parser.add_argument(
        "--breakdown",
        nargs="?",
        const=breakdown.ALL,
        choices=(breakdown.ALL, *breakdown.STEPS),
        help="time every step from the model to the steady-state call, without the cache; or print one step only",
    )
    parser.add_argument("--train", action="store_true", help="with --breakdown: trace the model in training mode")
    parser.add_argument(
        "--trust", action="store_true", help="run object code from the file (only if you trust its author)"
    )
    _add_language(parser)
    arguments.add_threads(parser)
    arguments.add_machine(parser)
    arguments.add_device(parser, "run on a device")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.set_defaults(run=run)


def _add_pace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--warmup",
        type=arguments.tolerance,
        default=0.1,
        metavar="S",
        help="seconds of calls before measuring (default: 0.1)",
    )
    parser.add_argument(
        "--duration",
        "--seconds",
        dest="seconds",
        type=arguments.seconds,
        default=1.0,
        metavar="S",
        help="seconds to measure each model, approximately (default: 1)",
    )
    parser.add_argument(
        "--rounds",
        type=arguments.count,
        default=30,
        help="number of rounds to split the measurement into (default: 30)",
    )
    rate = "make N calls per second, by all callers together (default: each call follows the previous one)"
    parser.add_argument("--rate", type=arguments.positive, metavar="N", help=rate)
    parser.add_argument(
        "--block",
        type=arguments.count,
        metavar="N",
        help="samples of a call of a stream: --rate is their number per second, and the calls that take longer than "
        "their samples are counted",
    )
    parser.add_argument(
        "--streams", type=arguments.count, default=1, metavar="N", help="number of concurrent callers (default: 1)"
    )


def _add_language(parser: argparse.ArgumentParser) -> None:
    for name, most, meaning in (
        ("--prompt", language_bench.PROMPT, "random tokens to read"),
        ("--tokens", language_bench.TOKENS, "tokens to generate"),
    ):
        text = f"language models: {meaning} (default: {most})"
        parser.add_argument(name, type=arguments.count, metavar="N", help=text)


class Measurement(NamedTuple):
    """Figures of calls with given sizes of named dimensions."""

    sizes: Mapping[str, int]
    figures: dict[str, float]
    peers: tuple[dict[str, Any], ...]
    """JSON fields of each peer."""

    def as_json(self, asserts: Sequence[Assertion]) -> dict[str, Any]:
        """Return the JSON fields, without the sizes."""
        fields: dict[str, Any] = {"call": self.figures}
        if self.peers:
            fields["compare"] = list(self.peers)
        if asserts:
            fields["asserts"] = [a.as_json(self.figures) for a in asserts]
        return fields


def run(options: argparse.Namespace) -> int:
    if decoders.is_language_model(options.model):
        return language_bench.run(options)
    if options.prompt or options.tokens:
        raise console.UsageError(f"{options.model} is no language model", remedy="leave out --prompt and --tokens")
    if options.breakdown:
        if options.device is not None:
            raise console.UsageError("--breakdown measures the CPU only", remedy="leave out --device")
        if options.compare or options.asserts or options.rate or options.streams > 1:
            raise console.UsageError(
                "--breakdown measures steps, not calls", remedy="leave out --compare, --assert, --rate and --streams"
            )
        return breakdown.run(options)
    if options.block and not options.rate:
        raise console.UsageError("--block needs the rate of the samples", remedy="pass --rate 48000")
    start = time.perf_counter()
    with targets.compiling():
        loaded = exported.load_model(options.model, options.trust, options.machine, options.device)
    load_seconds = time.perf_counter() - start
    model = entry_of(loaded, options.entry)
    chosen = arguments.by_name(options.shape)
    shapes = [dict(zip(chosen, combination, strict=True)) for combination in itertools.product(*chosen.values())]
    pace = Pace(options.rate / (options.block or 1) if options.rate else None, clock_cost())
    calls = [_measure_sizes(model, sizes, options, pace) for sizes in shapes]
    stages = dict(loaded.seconds or {})
    if options.json:
        one = calls[0].as_json(options.asserts)
        several = [{"sizes": c.sizes, **c.as_json(options.asserts)} for c in calls]
        console.emit_json(
            {
                "model": model.name,
                **({"calls": several} if chosen else {"sizes": calls[0].sizes, **one}),
                **{"rounds": options.rounds, "threads": peers.get_num_threads(), "streams": options.streams},
                **{"rate": options.rate, "clock": pace.clock_ns * 1e-9, "load": load_seconds, "stages": stages},
            }
        )
    else:
        console.emit(console.wrap(f"{model!r}".removeprefix("<LoadedModel ").removesuffix(">")))
        console.emit(text(calls, options.asserts))
        rows = [["load", console.seconds_text(load_seconds), "read, check, compile, link"]]
        rows += [[f"  {stage}", console.seconds_text(seconds), ""] for stage, seconds in stages.items()]
        console.emit(console.table(rows))
    return console.OK if all(a.holds(c.figures) for c in calls for a in options.asserts) else console.WRONG


def _measure_sizes(
    model: LoadedModel, sizes: Mapping[str, int], options: argparse.Namespace, pace: Pace
) -> Measurement:
    """Measure calls with these sizes of named dimensions, taking turns with the peers."""
    fill = inputs.fill_of(options, None if options.input else "random")
    arrays = read_inputs(options.input, model.inputs, sizes, fill)
    call = _caller(model, arrays, options.device)
    case = peers.Case(options.model, options, tuple(arrays), options.streams)
    names = [name for name in options.compare if Path(name).suffix != ".json"]
    if names and options.device is not None:
        raise console.UsageError("--compare runs on the CPU only", remedy="leave out --device")
    others = [peers.open_peer(name, case) for name in names]
    everyone = [(call,) * options.streams, *(other.callers for other in others)]
    samples = measure(everyone, options.rounds, options.seconds, options.warmup, pace)
    own = samples[0]
    results = model.run(arrays) if others else []
    compared = [_peer_facts(own, s, other, results) for other, s in zip(others, samples[1:], strict=True)]
    for path in (name for name in options.compare if Path(name).suffix == ".json"):
        stored = peers.stored_figures(path, sizes)
        ratio = {"median": stored["p50"] / own.figures()["p50"], "low": None, "high": None}
        compared.append({"name": path, "version": "", "call": stored, "ratio": ratio, "difference": None})
    stream = deadlines(own, options.block, options.rate) if options.block else {}
    return Measurement(SizesOfModel(model.spec).by_name(arrays), {**_figures(own), **stream}, tuple(compared))


def _figures(samples: Samples) -> dict[str, float]:
    return {**samples.figures(), "missed": samples.missed}


def deadlines(samples: Samples, block: int, rate: float) -> dict[str, float]:
    """Return how many times faster than their samples the calls of a stream are, and how many were late."""
    period = block / rate
    times = np.frombuffer(samples.times, np.int64) / SECOND
    return {"real-time": period / samples.figures()["p50"], "late": int((times > period).sum())}


def _peer_facts(own: Samples, samples: Samples, peer: peers.Peer, results: Sequence[np.ndarray]) -> dict[str, Any]:
    """Return the JSON fields of a peer."""
    ratios = np.array(samples.medians) / np.array(own.medians)
    low, median, high = (float(np.quantile(ratios, share)) for share in (0.1, 0.5, 0.9))
    difference = peers.output_difference(results, peer.outputs())
    ratio = {"median": median, "low": low, "high": high}
    facts = {"name": peer.name, "version": peer.version, "call": _figures(samples)}
    return {**facts, "ratio": ratio, "difference": difference.absolute, "outputs": difference.as_json()}


def _caller(model: LoadedModel, arrays: list[Any], device: str | None) -> Callable[[], Any]:
    """Return a call of the model with these inputs. On a device, inputs are copied once and each call synchronizes."""
    if device is None or device.startswith("cpu"):
        return partial(model, *arrays)
    target_device = device_named(device)
    device_inputs: list[Any] = [
        from_host(target_device, x) if isinstance(x, np.ndarray) and x.ndim else x for x in arrays
    ]

    def run() -> None:
        model.run(device_inputs)
        target_device.synchronize()

    return run


def measure(
    subjects: Sequence[Sequence[Callable[[], Any]]], rounds: int, seconds: float, warmup: float, pace: Pace
) -> list[Samples]:
    """Measure several subjects in turns; each subject has one call for each concurrent caller."""
    rounds = rounds_of(rounds, seconds, pace.rate)
    for calls in subjects:
        warm_up(calls, warmup)
    samples_of_subjects = [Samples() for _ in subjects]
    with Progress("measuring", rounds * len(subjects), "rounds") as progress:
        for number in range(rounds):
            for i, (calls, samples) in enumerate(zip(subjects, samples_of_subjects, strict=True)):
                measure_round(calls, seconds / rounds, pace, samples)
                median = samples_of_subjects[0].medians[-1]
                progress.tell(number * len(subjects) + i + 1, f"p50 {console.seconds_text(median)}")
    return samples_of_subjects


SHOWN = ("p50", "p90", "p99", "p99.9", "min", "max", "mean")


def text(calls: Sequence[Measurement], asserts: Sequence[Assertion]) -> str:
    """Format the table of figures, and the result of each assertion."""
    compared = any(call.peers for call in calls)
    rows = [["", *SHOWN, "calls/s", "calls", *(["p50 / graphc's", "of rounds", "difference"] if compared else [])]]
    notes = []
    for call in calls:
        name = console.with_sizes("", call.sizes).strip()
        rows.append(
            [console.with_sizes("graphc", call.sizes), *_cells(call.figures), *(["1", "", ""] if compared else [])]
        )
        rows += [_peer_row(peer, name) for peer in call.peers]
        if call.figures["missed"]:
            notes.append(f"{call.figures['missed']} calls were due and never made: the rate is too high")
        if "late" in call.figures:
            calls_text = f"{call.figures['late']} of {call.figures['calls']} calls took longer than their samples"
            notes.append(f"{call.figures['real-time']:.1f} times real time; {calls_text}")
        for one in asserts:
            value = call.figures[one.figure]
            shown = f"{value:.4g}/s" if one.figure in assertions.RATES else console.seconds_text(value)
            notes.append(f"{one.text} {name}: {shown}, {'holds' if one.holds(call.figures) else 'DOES NOT HOLD'}")
    return "\n".join([console.table(rows, USES), *map(console.wrap, notes)])


USES = ("", "p50", "p99", "p50 / graphc's", "calls/s", "difference", "mean", "min", "p90", "max", "calls", "of rounds")
"""Headings, the most useful first: narrow terminals show the first ones."""


def _cells(figures: Mapping[str, float]) -> list[str]:
    times = [console.seconds_text(figures[name]) if name in figures else "-" for name in SHOWN]
    return [*times, f"{figures['throughput']:.4g}", str(figures.get("calls", "-"))]


def _peer_row(peer: Mapping[str, Any], name: str) -> list[str]:
    ratio, difference = peer["ratio"], peer["difference"]
    spread = "measured before" if ratio["low"] is None else f"{ratio['low']:.2f} .. {ratio['high']:.2f}"
    label = " ".join(text for text in (peer["name"], peer["version"], name) if text)
    largest = "-" if difference is None else f"{difference:.1e} ({peer['outputs']['ratio']:.1g} of allowed)"
    return [label, *_cells(peer["call"]), f"{ratio['median']:.2f}", spread, largest]
