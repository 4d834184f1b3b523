"""Models as files: export traces entries and writes their graphs with the weights that they share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.sizes.assumptions import Assumption
from graphc.base.sizes.size import hint
from graphc.calls.machine import HOST, machine_named, strict_name
from graphc.codegen.machine.costs import Costs
from graphc.codegen.machine.cuda.facts import is_gpu
from graphc.codegen.machine.target import Target, target_named
from graphc.compiler import cache
from graphc.compiler.compile import CompiledGraph, compile_graph
from graphc.compiler.freeze import freeze, freeze_narrow, written_states
from graphc.files import model_content
from graphc.files.model_content import Artifact, Code, Sample, StoredEntry, without_weights
from graphc.files.model_manifest import ENTRY, EntrySpec, ModelManifest
from graphc.files.structure import Structure
from graphc.ir.graph.graph import Graph, Value, input_class, input_equals, input_path
from graphc.ir.graph.interpret import assumed
from graphc.models.formats import GCM, ONNX, check_options, format_of, write_onnx
from graphc.models.golden import sample_calls
from graphc.models.model_derivative import derive
from graphc.models.model_entries import Entry, TracedEntry, entries_of, trace_entry, with_shared_names, without_texts
from graphc.models.model_file import LoadedModel, make_model
from graphc.models.model_graph import read_graph
from graphc.models.model_trace import assumption_specs, entry_spec, nesting, stored_entry
from graphc.models.sized_graph import made_for_all
from graphc.passes.base import Pass
from graphc.passes.pipeline import PIPELINE, Arranged, arrange, optimize
from graphc.passes.precision import check_precision
from graphc.steps.step import CompiledStep
from graphc.tensors.placement import on_host
from graphc.tensors.structure import flatten
from graphc.tracing.trace import Traced

TRAIN_STEP = "train_step"
"""Name of the entry of a step that is exported by itself."""


class ContentOptions(NamedTuple):
    """Options of ``export`` for what a file stores of its entries."""

    costs: Costs
    """Costs of the machine that the passes optimize for."""
    passes: Arranged = Arranged()
    precision: str | None = None
    native: Sequence[Target] = ()
    """Machines with object code in the file."""
    golden: int = 0


def export(
    model: Any,
    *examples: Any,
    path: str | os.PathLike[str],
    native: bool = False,
    precision: str | None = None,
    passes: Sequence[Pass] = (),
    target: str | Sequence[str] = "host",
    dims: Any = None,
    opset: int | None = None,
    strict_order: bool = False,
    derivative: bool = False,
    root: Any = None,
    golden: bool | int = False,
    **keyword_examples: Any,
) -> ModelManifest:
    """Trace a model on example arguments, in its present mode, and write it to one file, atomically.
    docs/deploy.md has programs for entries, derivatives, training steps and sample calls.

    Args:
        model: a Module, a function, a graph, a step of ``compile_step``, or a dictionary of ``gc.Entry`` by name.
        examples, keyword_examples: example tensors or arrays; a graph and a dictionary take none.
        path: file to write: ``.onnx`` (docs/onnx_out.md) or ``.gcm``. The options below are for ``.gcm``.
        precision, passes, strict_order: as for ``compile``; ``precision`` and late passes make weights constants.
        native, target: store object code for one machine or several (``"host"``, ``"avx2"``, ``"neon"`` ...).
        dims: names of sizes that vary, as for ``compile``; for both formats.
        opset: opset of an ONNX file, 18 or later.
        derivative: store the entry ``vjp`` too, so that gradients flow through the loaded model.
        root: module whose names the parameters of several entries take.
        golden: number of sample calls to store per entry for ``selftest``; True is one.

    Returns:
        The ModelManifest of the file.

    Raises:
        ArgumentError: an output that is not a tensor; an unknown precision or opset; an option of the other format.
        TraceError: the model cannot be traced.
        OSError: the file cannot be written.

    Example:
        >>> import graphc as gc
        >>> manifest = gc.export(lambda x: x * 2, gc.zeros(3), path="double.gcm")
        >>> gc.load("double.gcm")(gc.ones(3))
        tensor([2., 2., 2.])
    """
    check_precision(precision)
    names = [target] if isinstance(target, str) else list(target)
    own = {"native": native, "precision": precision, "passes": passes, "target": names != ["host"]}
    own |= {"strict_order": strict_order, "derivative": derivative, "root": root is not None, "golden": golden}
    check_options(path, GCM, own | {"a dictionary of entries": isinstance(model, Mapping)})
    check_options(path, ONNX, {"opset": opset})
    if format_of(path) == ONNX:
        return write_onnx(model, examples, keyword_examples, path, dims, opset)
    machines = machines_of(names, strict_order, native)
    requested = wanted_entries(model, examples, keyword_examples, dims)
    if derivative:
        requested = {name: _with_derivative(entry) for name, entry in requested.items()}
    options = ContentOptions(machines[0].costs, arrange(passes), precision, machines if native else (), golden)
    return model_content.save(path, content_of(requested, root, options))


def content_of(entries: Mapping[str, Entry], root: Any, options: ContentOptions) -> Artifact:
    """Return the content of a file with these entries. For ``root`` see ``export``."""
    entries = {name: without_texts(entry) for name, entry in entries.items()}
    has_constants = options.precision is not None or options.passes.pipeline is not PIPELINE
    if has_constants and any(e.derivative for e in entries.values()):
        raise ArgumentError(
            "weights that are constants of the graph have no derivative", remedy="pass derivative=False"
        )
    traced = [part for name, entry in entries.items() for part in trace_entry(name, entry)]
    calls = {name: _sampled(entry, options.golden) for name, entry in entries.items()}
    return _assembled(with_shared_names(traced, root), options, calls)


def content_of_chain(traced: Traced, options: ContentOptions) -> Artifact:
    """Return the content of a file with the entry ``ENTRY``, of a trace that reads sizes."""
    calls = {ENTRY: partial(sample_calls, examples=list(map(expected_array, traced.inputs)), count=options.golden)}
    return _assembled(with_shared_names(entries_of(ENTRY, traced)), options, calls)


_Sampler = Callable[[EntrySpec, Sequence[Graph], Mapping[str, np.ndarray]], tuple[Sample, ...]]
"""Makes sample calls of an entry from its graphs and the contents of their params and states."""


def _sampled(entry: Entry, count: int) -> _Sampler:
    leaves = flatten((entry.examples, entry.keyword_examples))[0] if count else ()
    return partial(sample_calls, examples=[on_host(tensor._data) for tensor in leaves], count=count)


def wanted_entries(model: Any, examples: Sequence[Any], named: Mapping[str, Any], dims: Any) -> dict[str, Entry]:
    """Return the requested entries by name. Raise ArgumentError."""
    if not isinstance(model, Mapping):
        return {TRAIN_STEP if isinstance(model, CompiledStep) else ENTRY: Entry(model, *examples, dims=dims, **named)}
    if examples or named or dims is not None:
        raise ArgumentError(
            "export takes no examples and no dims beside entries", remedy="pass them to gc.Entry(model, x, dims=...)"
        )
    for name, entry in model.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError(f"the entry name {name!r} is not an identifier", remedy="use a name like 'encode'")
        if not isinstance(entry, Entry):
            raise ArgumentError(
                f"the entry {name!r} is {type(entry).__name__}", remedy="pass gc.Entry(model.encode, x)"
            )
    if not model:
        raise ArgumentError("a file needs at least one entry", remedy="pass {'encode': gc.Entry(model.encode, x)}")
    return dict(model)


def _with_derivative(entry: Entry) -> Entry:
    if isinstance(entry.target, CompiledStep):
        return entry
    return Entry(
        entry.target,
        *entry.examples,
        dims=entry.dims,
        train=entry.train,
        derivative=True,
        **entry.keyword_examples,
    )


def _assembled(entries: Sequence[TracedEntry], options: ContentOptions, calls: Mapping[str, _Sampler]) -> Artifact:
    """Return the content of a file with these entries and the sample calls of ``calls``."""
    weights = {path: held.array for entry in entries for path, held in entry.held.items()}
    changing = {input_path(v) for entry in entries for v in written_states(entry.graph)}
    free = {path for entry in entries for path in entry.free}
    constants = {path: array for path, array in weights.items() if path not in changing | free}
    form = options.passes, options.precision, options.costs
    graphs = {e.name: extended(e.graph, constants, *form) for e in entries if not e.segments}
    stored: list[StoredEntry] = []
    for entry in entries:
        if entry.segments:
            stored.append(_chain(entry, graphs, weights, calls[entry.name]))
            continue
        derived = derive(entry, len(entries) == 1)
        graph = graphs[entry.name]
        spec = None if derived is None else derived.spec
        own = stored_entry(entry.name, graph, entry.structure, codes_for(graph, constants, options.native), spec)
        golden = calls[entry.name](own.spec, [graph], weights) if entry.name in calls else ()
        stored.append(replace(own, spec=replace(own.spec, texts=entry.texts, paths=entry.paths), golden=golden))
        for derived_entry in () if derived is None else derived.parts:
            codes = codes_for(derived_entry.graph, constants, options.native)
            stored.append(stored_entry(derived_entry.name, derived_entry.graph, derived_entry.structure, codes))
    return _artifact(stored, [e.graph for e in entries], weights, free)


def _chain(
    entry: TracedEntry, graphs: Mapping[str, Graph], weights: Mapping[str, np.ndarray], sampled: _Sampler
) -> StoredEntry:
    """Return the record of an entry that is a chain of programs, which have these ``graphs`` by name."""
    spec = entry_spec(entry.name, entry.graph, entry.structure)
    sizes = {size for segment in entry.segments for size in segment.sizes}
    inputs = tuple([s for s in spec.inputs if s.name not in sizes])
    spec = replace(spec, inputs=inputs, texts=entry.texts, segments=entry.segments)
    programs = [graphs[name] for name in spec.programs]
    records = [entry_spec(name, graph) for name, graph in zip(spec.programs, programs, strict=True)]
    ops = tuple(sorted({name for r in records for name in r.ops}))
    writes = tuple(sorted({path for r in records for path in r.writes}))
    uses = tuple(dict.fromkeys(path for r in records for path in r.uses))
    spec = replace(spec, ops=ops, uses=uses, writes=writes)
    return StoredEntry(spec, "", golden=sampled(spec, programs, weights))


def with_code(stored: Artifact, native: Sequence[Target]) -> Artifact:
    """Return the content of a file with its code replaced by code for these machines. Raise CompileError."""
    free = {tensor.name for tensor in stored.manifest.weights if tensor.free}
    constants = {path: array for path, array in stored.weights.items() if path not in free}

    def built(entry: StoredEntry) -> StoredEntry:
        if entry.spec.segments:
            return entry
        return replace(entry, natives=tuple(codes_for(read_graph(stored, entry.spec.name), constants, native)))

    return replace(stored, entries=tuple(map(built, stored.entries)))


def machines_of(names: Sequence[str], strict_order: bool, native: bool) -> list[Target]:
    """Return the target machines of a file without duplicates.

    Raise ArgumentError for no target, for a device, and for a target without native code. Raise CompileError for an
    unknown name.
    """
    if not names:
        raise ArgumentError("a file with native code needs a target", remedy="pass target=('avx2', 'avx512')")
    distinct_names = list({strict_name(name) if strict_order else name: None for name in names})
    machines = [target_named(name) for name in distinct_names]
    if not native and (len(machines) > 1 or machines[0] is not target_named(HOST)):
        order = ", in strict order" if strict_order else ""
        what = f"a file without native code takes no target, got {', '.join(names)}{order}"
        raise ArgumentError(what, remedy="pass native=True")
    for machine in machines if native else ():
        check_native(machine)
    return machines


def codes_for(graph: Graph, constants: Mapping[str, np.ndarray], native: Sequence[Target]) -> list[Code]:
    """Return the native codes of an entry's graph for these machines. Raise CompileError."""
    return [compiled_code(graph, constants, partial(compile_graph, target=machine))[0] for machine in native]


def compiled_code(
    graph: Graph, constants: Mapping[str, np.ndarray], compile: Callable[[Graph], CompiledGraph]
) -> tuple[Code, CompiledGraph]:
    """Return the native code of an entry's graph for all sizes, and its compilation. Raise CompileError."""
    compiled, added = made_for_all(graph, lambda restricted: compile(freeze(restricted, constants)))
    written = {input_path(value) for value in written_states(graph)}
    return _code(compiled, {p: a for p, a in constants.items() if p not in written}, added), compiled


def _code(
    compiled: CompiledGraph, weights: Mapping[str, np.ndarray] = MappingProxyType({}), added: Sequence[Assumption] = ()
) -> Code:
    """Return code whose constants with the bytes of a weight are that weight, so that the file holds them once."""
    manifest, constants = without_weights(compiled.manifest, compiled.constants, weights)
    return Code(manifest, compiled.object, constants, assumption_specs(added))


def _artifact(
    entries: Sequence[StoredEntry], graphs: Sequence[Graph], weights: Mapping[str, np.ndarray], free: set[str]
) -> Artifact:
    used = {path for entry in entries for path in entry.spec.uses}
    params = {input_path(v) for graph in graphs for v in graph.inputs if input_class(v) == "param"}
    used_weights = {path: np.asarray(array) for path, array in weights.items() if path in used}
    return model_content.assemble(entries, used_weights, cache.versions(), params=params, free=free)


def extended(
    graph: Graph, state: Mapping[str, np.ndarray], passes: Arranged, precision: str | None, costs: Costs
) -> Graph:
    """Return a traced graph in the form stored by a file: after a user's passes, and with narrow weights where
    requested.

    It keeps the assumptions of the trace.
    """
    result = graph
    with assumed(graph):
        if passes.first:
            result = optimize(result, passes.first, costs)
        if precision is not None:
            result = freeze_narrow(result, state, precision, passes.pipeline, costs).graph
        elif passes.pipeline is not PIPELINE:
            result = optimize(freeze(result, state), passes.pipeline, costs)
    result.assumptions = graph.assumptions
    return result


def check_native(target: Target | None) -> None:
    """Raise ArgumentError where a file cannot hold object code for a target."""
    if target is not None and is_gpu(target):
        raise ArgumentError(
            f"a model file holds no code for {target.cpu}: loading compiles it and keeps it in the cache",
            remedy="export without native code, and load with graphc.load(path, device='cuda')",
        )


# ---- graphs


def save_graph(
    graph: Graph,
    weights: Mapping[str, np.ndarray],
    path: str | os.PathLike[str],
    *,
    structure: Structure = None,
    native: bool | CompiledGraph | Sequence[Code] = False,
    golden: Sequence[Sample] = (),
) -> ModelManifest:
    """Write a graph with the arrays of its params and states (by path) to one file, atomically.

    ``structure`` is the nesting of the outputs of a call; the default is one output by itself, and several as a tuple.
    ``native`` adds object code: True compiles for this machine; or pass the compiled frozen graph, or codes of
    ``compiled_code``. ``golden`` adds sample calls. Raise ArgumentError when an array is missing, or for another
    suffix than ``.gcm``.
    """
    check_options(path, GCM, {"a graph with its weights": True})
    return model_content.save(path, _of_graph(graph, weights, structure, native, golden))


def _of_graph(
    graph: Graph,
    weights: Mapping[str, np.ndarray],
    structure: Structure,
    native: bool | CompiledGraph | Sequence[Code],
    golden: Sequence[Sample] = (),
) -> Artifact:
    """Return the content of a file with this graph; see ``save_graph``."""
    paths = [input_path(v) for v in graph.inputs if input_class(v) != "input"]
    missing = [p for p in paths if p not in weights]
    if missing:
        raise ArgumentError(f"the model needs arrays for {', '.join(missing)}")
    if native is True:
        native = [compiled_code(graph, weights, compile_graph)[0]]
    codes = [_code(native)] if isinstance(native, CompiledGraph) else native or ()
    entry = stored_entry(ENTRY, graph, structure, codes, golden=golden)
    return _artifact([entry], [graph], {path: weights[path] for path in paths}, set())


def manifest_of(graph: Graph, weights: Mapping[str, np.ndarray], structure: Structure = None) -> ModelManifest:
    """Return the manifest of a file with this graph; see ``save_graph``."""
    return _of_graph(graph, weights, structure, False).manifest


def expected_array(value: Value) -> np.ndarray:
    """Return zeros of the expected sizes for an input of a graph, or the expected size for a whole number."""
    equals = input_equals(value)
    return np.zeros(tuple(map(hint, value.shape)), value.dtype.numpy) if equals is None else np.asarray(hint(equals))


def load_traced(traced: Traced, *, target: str = HOST, device: Any = None) -> LoadedModel:
    """Return the model of ``export`` and ``load`` for a trace, without a file in between."""
    return make_model(in_memory(traced), machine_named(target, device))


def load_entry(entry: Entry, *, target: str = HOST, device: Any = None) -> LoadedModel:
    """Return the model of ``export`` and ``load`` for an entry, without a file in between."""
    content = content_of({ENTRY: entry}, None, ContentOptions(target_named(HOST).costs))
    return make_model(content, machine_named(target, device))


def in_memory(traced: Traced) -> Artifact:
    """Return the content that ``export`` would write for a trace."""
    if traced.reads:
        return content_of_chain(traced, ContentOptions(target_named(HOST).costs))
    return _of_graph(traced.graph, traced.state(), nesting(traced.structure), False)
