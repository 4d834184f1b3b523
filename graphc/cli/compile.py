"""``graphc compile``: a model in Python to a model file, or a file of ONNX."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, GraphcError
from graphc.base.sizes.size import Dimension
from graphc.calls.machine import HOST, compile_on, machine_named, strict_name
from graphc.cli import arguments, console, exported, library, recompile, targets
from graphc.cli.fields import Field, below, spec_fields
from graphc.codegen.machine.target import Target, named_targets, target_named
from graphc.compiler.compile import CompiledGraph, compile_graph
from graphc.compiler.freeze import freeze
from graphc.files.model_manifest import EntrySpec, ModelManifest
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import bind, settle
from graphc.models.formats import GCM, ONNX, check_options, format_of
from graphc.models.golden import sample_calls
from graphc.models.model_export import check_native, export, extended, save_graph
from graphc.models.model_tensors import array_of
from graphc.models.model_trace import nesting, snapshot
from graphc.models.sized_model import for_all_sizes
from graphc.nn.module import Module
from graphc.passes.pipeline import Arranged
from graphc.passes.precision import PRECISIONS

EXAMPLES = (
    "graphc compile net.py:Net --input x:f32[1,1,28,28] -o net.gcm",
    "graphc compile net.py:Net --input x:f32[1,1,28,28] --native --target sse2,avx2,neon --golden 2 -o net.gcm",
    "graphc compile net.py:Net --input x:f32[batch=1..64,1,28,28] --weights net.safetensors -o net.gcm",
    "graphc compile net.py:Net --input x:f32[1,1,28,28] -o net.onnx",
    "graphc compile net.pt2 --native -o net.gcm",
    "graphc compile net.py:Net --input x:f32[1,1,28,28] --emit so,h,c,py -o net.so",
)
ENTRY = (
    Field("name", "string", "name of the model"),
    Field("entry", "string", "name of the entry"),
    *spec_fields("inputs", "an input"),
    *spec_fields("outputs", "an output"),
    Field("dims[].name", "string", "a named dimension", optional=True),
    Field("dims[].min", "integer", "its smallest size"),
    Field("dims[].max", "integer", "its largest size"),
    Field("dims[].hint", "integer", "the size that is expected"),
    Field("assumptions[]", "string", "what must hold of sizes", optional=True),
)
MODEL = (
    *ENTRY,
    *below("entries[]", ENTRY, optional=True),
    Field("versions.*", "string", "of graphc, llvmlite and LLVM, which wrote the file"),
)
JSON = (
    *MODEL,
    Field("native", "boolean", "whether there is object code in the file"),
    Field("path", "string", "the file"),
    Field("bytes", "integer", "its size", "B"),
    Field("seconds", "number", "all that was done", "s"),
    Field("stages.*", "number", "each stage of the compile", "s", optional=True),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    add_model_arguments(parser)
    add_passes_argument(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="the file to write: net.gcm, net.onnx for ONNX, net.so for a C library",
    )
    parser.add_argument("--native", action="store_true", help="put object code into the file too")
    parser.add_argument(
        "--target",
        dest="machine",
        type=machine_names,
        default="host",
        metavar="NAME[,NAME...]",
        help=f"machines of that code, the best of which runs where the file is loaded: {', '.join(named_targets())} "
        "(default: host)",
    )
    parser.add_argument(
        "--golden",
        type=arguments.count,
        default=0,
        metavar="N",
        help="put N sample calls with the outputs of the reference interpreter into the file, for graphc selftest",
    )
    parser.add_argument(
        "--strict-order",
        action="store_true",
        help="sums in the order in which they are written, nothing fused: the same bits on every machine",
    )
    arguments.add_device(parser, "compile for a device, to find it in the cache where the file is loaded for it")
    add_precision_argument(parser)
    parser.add_argument("--opset", type=int, metavar="N", help="version of ONNX's operators (18 and more; default: 20)")
    parser.add_argument(
        "--dump", metavar="FOLDER", help="write every stage of each program to a folder, as GRAPHC_DUMP does"
    )
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")
    library.add_arguments(parser)
    parser.set_defaults(run=run)


def add_precision_argument(parser: argparse.ArgumentParser) -> None:
    """The argument that says what large weights are stored as."""
    parser.add_argument(
        "--precision", choices=list(PRECISIONS), help="store large weights in this form (default: as they are)"
    )


def add_model_arguments(parser: argparse.ArgumentParser, target: str = "target") -> None:
    """The arguments that name a model and what it is traced with."""
    parser.add_argument(target, metavar=target.upper(), help=targets.FORMS)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME:TYPE[DIMS]",
        help="type of an argument of forward, such as x:f32[1,28,28] or x:f32[batch=1..64,28]; once per argument",
    )
    parser.add_argument(
        "--weights",
        metavar="FILE",
        help="parameters and buffers: a file of safetensors, torch.save or numpy, an index of shards, a folder with "
        "one of these, or a model file",
    )
    parser.add_argument(
        "--weights-entry", metavar="NAME", help="which entry of a checkpoint they are, such as ema (default: what fits)"
    )
    parser.add_argument(
        "--no-strict", action="store_true", help="take of --weights what fits by name (default: all names must fit)"
    )
    parser.add_argument("--train", action="store_true", help="trace in training mode (default: evaluation mode)")


def add_passes_argument(parser: argparse.ArgumentParser) -> None:
    """The argument that names graph passes of a user."""
    parser.add_argument("--passes", action="append", default=[], metavar="FILE:NAME", help=targets.PASS_FORMS)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    with _dumping(options.dump):
        return _write(options)


@contextmanager
def _dumping(folder: str | None) -> Iterator[None]:
    """While the block runs, every stage of what is compiled goes to a folder."""
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
    start = time.perf_counter()
    if library.is_wanted(options):
        return library.write(options, lambda: (*prepare(options), passes_of(options)))
    if recompile.is_file(options):
        _check_machine(options)
        return _say(options, recompile.write(options, _machines(options)), {}, start, "written")
    _check_format(options)
    _check_machine(options)
    model, examples, dims = prepare(options)
    passes = passes_of(options)
    place = Path(options.output)
    if not place.resolve().parent.is_dir():
        raise console.UsageError(f"there is no folder {str(place.parent)!r} to write {place.name!r} to")
    if format_of(options.output) == ONNX:
        manifest, stages = _write_onnx(options, model, examples, dims), {}
    else:
        manifest, stages = _write_gcm(options, model, examples, dims, passes)
    if not options.weights and targets.is_random(options.target, model):
        console.say("note: the weights in the file are the random ones of construction; --weights FILE takes others")
    done = "traced, compiled and written" if stages else "traced and written"
    return _say(options, manifest, stages, start, done)


def _say(
    options: argparse.Namespace, manifest: ModelManifest, stages: dict[str, float], start: float, done: str
) -> int:
    """Tells what was written."""
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


def passes_of(options: argparse.Namespace) -> Arranged:
    """The passes of a user that the arguments name."""
    return targets.resolve_passes(options.passes, options.target)


def _check_format(options: argparse.Namespace) -> None:
    """Raises UsageError for a file of a format that graphc does not write, and for options of the other one."""
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


def _write_gcm(
    options: argparse.Namespace, model: Any, examples: list[Any], dims: Any, passes: Arranged
) -> tuple[ModelManifest, dict[str, float]]:
    """Compiles a model and writes it; what the file says of it, and the seconds of each stage."""
    machine = target_named(_machine(options))
    with targets.compiling():
        traced = targets.guarded(lambda: snapshot(model, examples, dims=dims), f"tracing {options.target}")
        state = traced.state()
        graph = extended(traced.graph, state, passes, options.precision, machine.costs)
        build = partial(_compiled, machine=machine, device=options.device)
        compiled = for_all_sizes(graph, state, build) if graph.dims else build(freeze(graph, state))
        if isinstance(compiled, GraphcError):
            if options.native:
                raise console.UsageError(
                    f"native code is one program for all sizes, which there is not: {compiled.what}"
                )
            console.say(f"there is no program for all sizes, so each will have its own: {compiled.what}")
            fixed = bind(graph, {d.name: d.hint for d in graph.dims.values()})
            compiled = build(freeze(fixed, state))
        manifest = save_graph(
            graph,
            state,
            options.output,
            structure=nesting(traced.structure),
            native=[compiled, *_others(options, graph, state)] if options.native else False,
            golden=sample_calls(graph, state, list(map(array_of, examples)), options.golden),
        )
    return manifest, compiled.stages.seconds


def _others(options: argparse.Namespace, graph: Graph, state: Mapping[str, np.ndarray]) -> list[CompiledGraph]:
    """The code for the machines after the first one."""
    frozen = freeze(settle(graph), state)
    return [compile_graph(frozen, target=target_named(name)) for name in _machines(options)[1:]]


def _check_machine(options: argparse.Namespace) -> None:
    """Raises UsageError for arguments that say of native code what there is not."""
    if options.machine != "host" and not options.native:
        raise console.UsageError("--target names the machine of native code", remedy="--native")
    if options.strict_order and not options.native:
        raise console.UsageError("--strict-order says how native code adds up", remedy="--native")
    if options.device is not None and options.native:
        raise console.UsageError(
            "a model file holds no code for devices: that is made where the file is loaded, and kept in the cache",
            remedy=f"without --native; graphc run FILE --device {options.device}",
        )
    try:
        for name in _machines(options):
            check_native(target_named(name))
    except ArgumentError as error:
        raise console.UsageError(error.what, remedy="graphc run FILE --device cuda, without --native here") from None


def _machine(options: argparse.Namespace) -> str:
    """The only machine, or the first one."""
    return _machines(options)[0]


def _machines(options: argparse.Namespace) -> list[str]:
    names = options.machine.split(",")
    return [strict_name(name) if options.strict_order else name for name in names]


def machine_names(text: str) -> str:
    """Names of machines with commas between them; raises ArgumentTypeError for an unknown one."""
    for name in text.split(","):
        if name not in ("host", *named_targets()):
            known = ", ".join(("host", *named_targets()))
            raise argparse.ArgumentTypeError(f"there is no machine {name!r}; one or several of {known}")
    return text


def _compiled(graph: Graph, machine: Target, device: str | None) -> CompiledGraph:
    if device is None:
        return compile_graph(graph, target=machine)
    return compile_on(graph, machine_named(HOST, device))


def prepare(options: argparse.Namespace, target: str = "target") -> tuple[Any, list[Any], Any]:
    """The model with its weights and mode, example tensors, and their named dimensions (None where they have none)."""
    text = getattr(options, target)
    if exported.is_exported(text):
        return exported.prepare(text, options)
    model = targets.resolve(text)
    if options.weights:
        targets.load_weights(model, options)
    if isinstance(model, Module):
        model.train(options.train)
    return model, *targets.examples(model, options.input)


def _dim_json(dimension: Dimension) -> dict[str, Any]:
    return {"name": dimension.name, "min": dimension.low, "max": dimension.high, "hint": dimension.hint}


def describe(manifest: ModelManifest) -> dict[str, Any]:
    """What a manifest says of the model and of its first entry, for JSON."""
    spec = manifest.first
    more = {"entries": [describe_entry(e) for e in manifest.public]} if len(manifest.public) > 1 else {}
    return {**describe_entry(spec), **more, "native": bool(spec.natives), "versions": manifest.versions}


def describe_entry(spec: EntrySpec) -> dict[str, Any]:
    """What a manifest says of an entry, for JSON."""
    return {
        "name": spec.title,
        "entry": spec.name,
        "inputs": [console.spec_json(s) for s in spec.inputs],
        "outputs": [console.spec_json(s) for s in spec.outputs],
        **({"dims": [_dim_json(d) for d in spec.dims]} if spec.dims else {}),
        **({"assumptions": [str(a) for a in spec.assumptions]} if spec.assumptions else {}),
    }
