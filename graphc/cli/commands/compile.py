"""``graphc compile``: compile a model in Python to a model file, an ONNX file, or a C library."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from graphc.base.errors import ArgumentError, GraphcError
from graphc.base.host_parts import host_parts_of
from graphc.calls.machine import HOST, compile_on, machine_named, strict_name
from graphc.cli import arguments, console, decoders, exported, library, recompile, targets
from graphc.cli.fields import Field
from graphc.cli.model_fields import MODEL, describe
from graphc.codegen.machine.target import Target, named_targets, target_named
from graphc.compiler.compile import CompiledGraph, compile_graph
from graphc.compiler.freeze import freeze
from graphc.files import model_content, model_manifest
from graphc.files.model_content import Artifact, Code
from graphc.files.model_manifest import ModelManifest
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import bind
from graphc.models.formats import GCM, ONNX, check_options, format_of
from graphc.models.golden import sample_calls
from graphc.models.model_entries import Entry
from graphc.models.model_export import (
    ContentOptions,
    check_native,
    codes_for,
    compiled_code,
    content_of,
    content_of_chain,
    expected_array,
    export,
    extended,
    machines_of,
    save_graph,
)
from graphc.models.model_file import load
from graphc.models.model_trace import entry_spec, nesting, snapshot
from graphc.nn.module import Module
from graphc.passes.pipeline import Arranged
from graphc.passes.precision import PRECISIONS
from graphc.tracing.trace import Traced

EXAMPLES = (
    "graphc compile net.py:Net --input x:f32[1,1,28,28] -o net.gcm",
    "graphc compile net.py:Net --input x:f32[1,1,28,28] --native --target sse2,avx2,neon --golden 2 -o net.gcm",
    "graphc compile net.py:Net --input x:f32[batch=1..64,1,28,28] --weights net.safetensors -o net.gcm",
    "graphc compile net.py:Net --input x:f32[1,1,28,28] -o net.onnx",
    "graphc compile net.pt2 --native -o net.gcm",
    "graphc compile net.py:Net --input x:f32[1,1,28,28] --emit so,h,c,py -o net.so",
    "graphc compile model.gguf --places 512 -o model.so",
)
JSON = (
    *MODEL,
    Field("native", "boolean", "whether the file holds object code"),
    Field("path", "string", "the file"),
    Field("bytes", "integer", "its size", "B"),
    Field("seconds", "number", "time of the whole command", "s"),
    Field("stages.*", "number", "time of each compiler stage", "s", optional=True),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    add_passes_argument(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="file to write: net.gcm for a model file, net.onnx for ONNX, net.so for a C library",
    )
    parser.add_argument("--native", action="store_true", help="add object code to the file")
    parser.add_argument(
        "--target",
        dest="machine",
        type=machine_names,
        default="host",
        metavar="NAME[,NAME...]",
        help="target machines of the object code; loading the file chooses the best one that runs: "
        f"{', '.join(named_targets())} (default: host)",
    )
    parser.add_argument(
        "--golden",
        type=arguments.count,
        default=0,
        metavar="N",
        help="add N sample calls, with outputs of the reference interpreter, for graphc selftest",
    )
    parser.add_argument(
        "--strict-order",
        action="store_true",
        help="compute sums in the order of the program, without fused multiply-add: the same bits on every machine",
    )
    arguments.add_device(
        parser, "compile for a device and store the code in the cache, where loading the file finds it"
    )
    add_precision_argument(parser)
    parser.add_argument(
        "--opset", type=int, metavar="N", help="version of the ONNX operators, at least 18 (default: 20)"
    )
    parser.add_argument("--dump", metavar="FOLDER", help="write every compiler stage to a folder, as GRAPHC_DUMP does")
    parser.add_argument("--json", action="store_true", help="print a report on the output file as JSON")
    decoders.add_argument(parser, arguments.count)
    library.add_arguments(parser)
    parser.set_defaults(run=run)


def add_precision_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--precision``."""
    parser.add_argument(
        "--precision", choices=list(PRECISIONS), help="store large weights in this form (default: unchanged)"
    )


def add_model_arguments(parser: argparse.ArgumentParser, target: str = "target") -> None:
    """Add the arguments that name a model and its example inputs and weights."""
    parser.add_argument(target, metavar=target.upper(), help=targets.FORMS)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME:TYPE[DIMS]",
        help="type of an input of the model, such as x:f32[1,28,28] or x:f32[batch=1..64,28]; once for each input",
    )
    parser.add_argument(
        "--weights",
        metavar="FILE",
        help="file to read parameters and buffers from: safetensors, torch.save, numpy, an index of shards, a folder "
        "with "
        "one of these, or a model file",
    )
    parser.add_argument(
        "--weights-entry",
        metavar="NAME",
        help="entry of the checkpoint that holds the weights, such as ema (default: the one that fits)",
    )
    parser.add_argument(
        "--no-strict", action="store_true", help="load only the weights whose names fit (default: all names must fit)"
    )
    parser.add_argument(
        "--shape",
        type=arguments.size,
        action="append",
        default=[],
        metavar="NAME=N",
        help="expected size of a named dimension: the model is traced and optimized for it (default: 32, or a size "
        "that the model accepts)",
    )
    parser.add_argument("--train", action="store_true", help="trace in training mode (default: evaluation mode)")


def add_passes_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--passes``, the user's graph passes."""
    parser.add_argument("--passes", action="append", default=[], metavar="FILE:NAME", help=targets.PASS_FORMS)


def run(options: argparse.Namespace) -> int:
    with _dumping(options.dump):
        return _write(options)


@contextmanager
def _dumping(folder: str | None) -> Iterator[None]:
    """Set GRAPHC_DUMP inside the block, so that every compiler stage is written to a folder."""
    before = os.environ.get("GRAPHC_DUMP")
    if folder is not None:
        os.environ["GRAPHC_DUMP"] = folder
    try:
        yield
    finally:
        if before is not None:
            os.environ["GRAPHC_DUMP"] = before
        elif folder is not None:
            del os.environ["GRAPHC_DUMP"]


def _write(options: argparse.Namespace) -> int:
    start, parts = time.perf_counter(), _decoder if decoders.is_decoder(options) else prepare
    if library.is_requested(options):
        return library.write(options, lambda: (*parts(options), passes_of(options)))
    if recompile.is_file(options):
        _check_machine(options)
        return _say(options, recompile.write(options, _machines(options)), {}, start, "written")
    _check_format(options)
    _check_machine(options)
    model, examples, dims = parts(options)
    passes = passes_of(options)
    output = Path(options.output)
    if not output.resolve().parent.is_dir():
        raise console.UsageError(f"there is no folder {str(output.parent)!r} to write {output.name!r} to")
    if isinstance(model, dict):
        manifest, stages = _write_entries(options, model, passes), {}
    elif host_parts_of(model) is not None and format_of(options.output) != ONNX:
        entries = {model_manifest.ENTRY: Entry(model, *examples, dims=dims)}
        manifest, stages = _write_entries(options, entries, passes), {}
    elif format_of(options.output) == ONNX:
        manifest, stages = _write_onnx(options, model, examples, dims), {}
    else:
        manifest, stages = _write_gcm(options, model, examples, dims, passes)
    if not options.weights and targets.is_random(options.target, model):
        console.say("note: the file holds the model's random initial weights; pass --weights FILE to use trained ones")
    done = "traced, compiled and written" if stages else "traced and written"
    return _say(options, manifest, stages, start, done)


def _say(
    options: argparse.Namespace, manifest: ModelManifest, stages: dict[str, float], start: float, done: str
) -> int:
    """Print a report on the output file."""
    seconds, size = time.perf_counter() - start, Path(options.output).stat().st_size
    if options.json:
        facts = {"path": str(Path(options.output)), "bytes": size, "seconds": seconds, "stages": stages}
        console.emit_json({**describe(manifest), **facts})
    else:
        spec = manifest.first
        signature = ", ".join(map(str, spec.inputs)), ", ".join(map(str, spec.outputs))
        console.emit(f"{options.output}: {spec.title}({signature[0]}) -> ({signature[1]}), {console.bytes_text(size)}")
        console.say(f"{done} in {console.seconds_text(seconds)}")
    return console.OK


def _decoder(options: argparse.Namespace) -> tuple[Any, list[Any], Any]:
    """Return the entries of a language model as ``prepare`` returns a model: without examples and dimensions."""
    return decoders.entries(options), [], None


def passes_of(options: argparse.Namespace) -> Arranged:
    """Return the user's passes named by ``--passes``."""
    return targets.resolve_passes(options.passes, options.target)


def _check_format(options: argparse.Namespace) -> None:
    """Raise UsageError for an output format that graphc cannot write, and for options of the other format."""
    own = ("native", "precision", "passes", "device", "golden")
    try:
        check_options(options.output, GCM, {f"--{name}": getattr(options, name) for name in own})
        check_options(options.output, ONNX, {"--opset": options.opset})
    except ArgumentError as error:
        raise console.UsageError(error.what, remedy=error.remedy) from None


def _write_onnx(options: argparse.Namespace, model: Any, examples: list[Any], dims: Any) -> ModelManifest:
    def write() -> ModelManifest:
        return export(model, *examples, path=options.output, dims=dims, opset=options.opset)

    with targets.compiling():
        return targets.guarded(write, f"tracing {options.target}")


def _write_entries(options: argparse.Namespace, entries: Mapping[str, Entry], passes: Arranged) -> ModelManifest:
    """Write entries: of a language model, or the one of a model with texts, whose operators on texts run in Python.
    Raises UsageError."""
    content_options = _content_options(options, passes)

    def content() -> Artifact:
        return content_of(entries, None, content_options)

    with targets.compiling():
        return model_content.save(options.output, targets.guarded(content, f"tracing {options.target}"))


def _write_gcm(
    options: argparse.Namespace, model: Any, examples: list[Any], dims: Any, passes: Arranged
) -> tuple[ModelManifest, dict[str, float]]:
    """Compile a model and write it; return the file's manifest, and the seconds of each stage."""
    machine = target_named(_machine(options))
    with targets.compiling():
        traced = targets.guarded(
            lambda: snapshot(model, examples, dims=dims, by_hints=True, reads_sizes=True), f"tracing {options.target}"
        )
        if traced.reads:
            return _write_chain(options, traced, passes)
        state = traced.state()
        graph = extended(traced.graph, state, passes, options.precision, machine.costs)
        build = partial(_compiled, machine=machine, device=options.device)
        codes: list[Code] = []
        try:
            code, compiled = compiled_code(graph, state, build)
            if options.native:
                codes = [code, *codes_for(graph, state, [target_named(name) for name in _machines(options)[1:]])]
        except GraphcError as error:
            if not graph.dims:
                raise
            if options.native:
                raise console.UsageError(
                    f"--native needs one program for all sizes, and the model has none: {error.what}"
                ) from None
            console.say(
                f"note: one program cannot serve all sizes, so each size will be compiled when it is used: {error.what}"
            )
            fixed = bind(graph, {d.name: d.hint for d in graph.dims.values()})
            compiled = build(freeze(fixed, state))
        manifest = save_graph(
            graph,
            state,
            options.output,
            structure=nesting(traced.structure),
            native=codes,
            golden=sample_calls(
                entry_spec(model_manifest.ENTRY, graph),
                [graph],
                state,
                list(map(expected_array, traced.inputs)),
                options.golden,
            ),
        )
    return manifest, compiled.stages.seconds


def _write_chain(
    options: argparse.Namespace, traced: Traced, passes: Arranged
) -> tuple[ModelManifest, dict[str, float]]:
    """Write a model that reads sizes in each call, and compile its programs as loading the file does."""
    content = content_of_chain(traced, _content_options(options, passes))
    manifest = model_content.save(options.output, content)
    return manifest, dict(load(options.output, device=options.device).seconds or {})


def _content_options(options: argparse.Namespace, passes: Arranged) -> ContentOptions:
    machines = machines_of(_machines(options), False, options.native)
    native = machines if options.native else ()
    return ContentOptions(machines[0].costs, passes, options.precision, native, options.golden)


def _check_machine(options: argparse.Namespace) -> None:
    """Raise UsageError for options of native code that cannot be honoured."""
    if options.machine != "host" and not options.native:
        raise console.UsageError("--target chooses the machine of native code", remedy="pass --native")
    if options.strict_order and not options.native:
        raise console.UsageError("--strict-order applies to native code", remedy="pass --native")
    if options.device is not None and options.native:
        raise console.UsageError(
            "a model file holds no code for devices: loading the file compiles it and stores it in the cache",
            remedy=f"leave out --native, and run graphc run FILE --device {options.device}",
        )
    try:
        for name in _machines(options):
            check_native(target_named(name))
    except ArgumentError as error:
        raise console.UsageError(
            error.what, remedy="leave out --native here, and run graphc run FILE --device cuda"
        ) from None


def _machine(options: argparse.Namespace) -> str:
    """Return the first machine."""
    return _machines(options)[0]


def _machines(options: argparse.Namespace) -> list[str]:
    names = options.machine.split(",")
    return [strict_name(name) if options.strict_order else name for name in names]


def machine_names(text: str) -> str:
    """Check names of machines separated by commas. Raises ArgumentTypeError for an unknown one."""
    for name in text.split(","):
        if name not in ("host", *named_targets()):
            names = ", ".join(("host", *named_targets()))
            raise argparse.ArgumentTypeError(f"unknown machine {name!r}; choose one or several of {names}")
    return text


def _compiled(graph: Graph, machine: Target, device: str | None) -> CompiledGraph:
    if device is None:
        return compile_graph(graph, target=machine)
    return compile_on(graph, machine_named(HOST, device))


def prepare(options: argparse.Namespace, target: str = "target") -> tuple[Any, list[Any], Any]:
    """Return the model with weights and mode set, example inputs, and their named dimensions (None without any)."""
    text = getattr(options, target)
    if exported.is_exported(text):
        return exported.prepare(text, options)
    model = targets.resolve(text)
    if options.weights:
        targets.load_weights(model, options)
    if isinstance(model, Module):
        model.train(options.train)
    return model, *targets.hinted(model, *targets.examples(model, options.input), getattr(options, "shape", ()))
