"""``graphc bench``: how long a model file takes to compile and to run on this machine."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphc.cli import arguments, breakdown, console, exported, targets
from graphc.cli.arrays import random_array, read_inputs, specs_at
from graphc.compiled.model_file import LoadedModel
from graphc.runtime.devices import device_named
from graphc.runtime.devices.array import from_host

EXAMPLES = ("graphc bench net.gcm",)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    parser.add_argument("model", metavar="FILE", help="a .gcm, .pt2 or .onnx file; with --breakdown a target too")
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME=VALUE", help="as for run (default: random arrays)"
    )
    parser.add_argument(
        "--shape",
        type=arguments.sizes,
        action="append",
        default=[],
        metavar="NAME=N,...",
        help="sizes of a named dimension, such as batch=1,8,32; once per dimension (default: the expected ones)",
    )
    parser.add_argument("--rounds", type=arguments.count, default=30, help="number of measurements (default: 30)")
    seconds = "about how long to measure in all (default: 1)"
    parser.add_argument("--seconds", type=arguments.seconds, default=1.0, help=seconds)
    parser.add_argument(
        "--breakdown",
        nargs="?",
        const=breakdown.ALL,
        choices=(breakdown.ALL, *breakdown.STEPS),
        help="time every step from the model to the steady call, without the cache, or only one of them",
    )
    parser.add_argument("--train", action="store_true", help="trace a target in training mode")
    parser.add_argument("--trust", action="store_true", help="run object code from the file (only from who you trust)")
    arguments.add_entry(parser)
    arguments.add_threads(parser)
    arguments.add_machine(parser)
    arguments.add_device(parser, "run on a device")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    if options.breakdown:
        if options.device is not None:
            raise console.UsageError("--breakdown is for the CPU", remedy="--breakdown without --device")
        return breakdown.run(options)
    start = time.perf_counter()
    with targets.compiling():
        model = exported.load_model(options.model, options.trust, options.machine, options.device, options.entry)
    load_seconds = time.perf_counter() - start
    chosen = arguments.by_name(options.shape)
    shapes = [dict(zip(chosen, found, strict=True)) for found in itertools.product(*chosen.values())]
    calls = [(sizes, _figures(model, sizes, options)) for sizes in shapes]
    stages = dict(model.seconds or {})
    if options.json:
        call = {"call": calls[0][1]} if not chosen else {"calls": [{"sizes": s, "call": f} for s, f in calls]}
        facts = {"model": model.name, **call, "rounds": options.rounds, "load": load_seconds, "stages": stages}
        console.emit_json(facts)
        return console.OK
    console.emit(f"{model!r}".removeprefix("<LoadedModel ").removesuffix(">"))
    rows = []
    for sizes, figures in calls:
        shown = " ".join(f"{name}={n}" for name, n in sizes.items())
        rows += [[f"call {shown}".strip(), console.seconds_text(figures["median"]), "median"]]
        rows += [["", console.seconds_text(figures[p]), p] for p in ("p10", "p90")]
    rows += [["load", console.seconds_text(load_seconds), "read, check, compile, link"]]
    rows += [[f"  {stage}", console.seconds_text(seconds), ""] for stage, seconds in stages.items()]
    console.emit(console.table(rows))
    return console.OK


def _figures(model: LoadedModel, sizes: Mapping[str, int], options: argparse.Namespace) -> dict[str, float]:
    """Median, 10th and 90th percentile of a call with these sizes of named dimensions, in seconds."""
    texts = options.input
    specs = specs_at(model.inputs, sizes)
    inputs = read_inputs(texts, model.inputs, sizes) if texts else [random_array(s, i) for i, s in enumerate(specs)]
    placed, wait = _placed(inputs, options.device)
    times = measure(model, placed, options.rounds, options.seconds, wait)
    return {name: float(np.quantile(times, q)) for name, q in (("median", 0.5), ("p10", 0.1), ("p90", 0.9))}


def _placed(inputs: list[np.ndarray], device: str | None) -> tuple[list[Any], Callable[[], None]]:
    """The inputs where the model runs, and what waits until that is done."""
    if device is None or device.startswith("cpu"):
        return inputs, lambda: None
    found = device_named(device)
    return [from_host(found, x) if x.ndim else x for x in inputs], found.synchronize


def measure(
    model: LoadedModel, inputs: list[Any], rounds: int, seconds: float, wait: Callable[[], None] = lambda: None
) -> np.ndarray:
    """Seconds per call, one figure per round. A round has as many calls as fit its share of ``seconds``, or one; on a
    device all of its work is waited for."""
    model.run(inputs)
    wait()
    start = time.perf_counter()
    model.run(inputs)
    wait()
    once = max(time.perf_counter() - start, 1e-7)
    calls = max(1, int(seconds / rounds / once))
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            model.run(inputs)
        wait()
        times.append((time.perf_counter() - start) / calls)
    return np.array(times)
