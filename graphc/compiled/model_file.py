"""Models as files: export writes a graph with its weights, load makes it callable on numpy arrays."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base import config
from graphc.base.assumptions import holding
from graphc.base.errors import ArgumentError, ArtifactError, GradientError, GraphcError, TraceError
from graphc.base.foreign import is_foreign_tensor
from graphc.base.named_dims import chosen_sizes
from graphc.base.size import at, bounds
from graphc.base.size_limits import limits
from graphc.codegen.machine.costs import Costs
from graphc.codegen.machine.cuda.facts import is_gpu
from graphc.codegen.machine.target import Target, target_named
from graphc.compiled.formats import GCM, ONNX, check_options, format_of, write_onnx
from graphc.compiled.graph_module import GraphModule
from graphc.compiled.machine import HOST, compile_on, is_device, load_on, machine_named
from graphc.compiled.model_arguments import opened
from graphc.compiled.plan import Plan, plan_of
from graphc.compiled.sized_model import ProgramsBySizes, SizesOfModel, for_all_sizes
from graphc.compiler import cache
from graphc.compiler.compile import (
    CompiledGraph,
    compile_graph,
    compile_stages,
    find_or_build,
    key_parts,
    load_compiled,
    prepare_threads,
    running_target,
)
from graphc.compiler.freeze import freeze, freeze_narrow
from graphc.compiler.native_call import native
from graphc.compiler.refusals import Refusals, checks_of
from graphc.compiler.stages import Stages, target_spec
from graphc.files import manifest as artifact
from graphc.files.container import MAX_BYTES
from graphc.files.manifest import Artifact, AssumptionSpec, ModelManifest, Structure, TensorSpec
from graphc.ir.graph.graph import Graph, Value, input_class, input_equals, input_path
from graphc.ir.graph.interpret import assumed, bound_sizes, settle
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.ir.graph.verify import sub_graphs, verify_graph
from graphc.ir.op import REGISTRY
from graphc.ops import registry
from graphc.passes.base import Pass
from graphc.passes.pipeline import PIPELINE, Arranged, arrange, optimize
from graphc.passes.precision import check_precision
from graphc.runtime.call import Executable
from graphc.runtime.fast_call import Gate
from graphc.runtime.loader import load_object, runs_here
from graphc.tape.grad_mode import is_grad_enabled, no_grad
from graphc.tensors import structure as structures
from graphc.tensors.creation import from_dlpack
from graphc.tensors.placement import is_on_device, on_host
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import Traced, trace_sized

assert registry.FAMILIES, "reading a graph needs every op to be defined"


def export(
    model: Any,
    *examples: Any,
    path: str | os.PathLike[str],
    native: bool = False,
    precision: str | None = None,
    passes: Sequence[Pass] = (),
    target: str = "host",
    dims: Any = None,
    opset: int | None = None,
    **keyword_examples: Any,
) -> ModelManifest:
    """Traces a module or function on example tensors or arrays, in the mode it is in, and writes it to one file.

    The suffix says of which format: ``.gcm`` (as without one), or ``.onnx``, in whose ``opset`` from 18 on functional
    calls are operators as far as it has them; docs/onnx_out.md says more. What else can be asked for is for ``.gcm``.

    The file holds the graph and the present weights, and with ``native`` object code for ``target``: this machine, or
    one by name, which need not run here (``sse2``, ``avx2``, ``avx512``, ``neon``, ``rv64gc``, ``rv64gcv``). With a
    ``precision`` (``bf16``, ``f16``, ``int8``, ``int4``, ``bf16_dot``, ``int8_dot``, ``int4_dot``) it holds large
    weights in that form, as constants of the optimized graph. It is replaced atomically. Raises what tracing raises;
    ArgumentError when an output is neither a tensor nor None, for an unknown precision, suffix or opset, and for
    options of the other format; OSError.

    ``dims`` names sizes of the inputs, as for ``compile``: the loaded model takes any of their range. Where the model
    branches on a size, the file holds for the sizes for which that goes as for the hints.

    ``passes`` as for ``compile``: the file holds the graph after them, with those that have an ``after`` the optimized
    one, its weights constants. A graph in the place of a module takes no examples, and is written with what the tensors
    of ``graph.bound`` hold now; its inputs keep their names.
    """
    check_precision(precision)
    own = {"native": native, "precision": precision, "passes": passes, "target": target != "host"}
    check_options(path, GCM, own)
    check_options(path, ONNX, {"opset": opset})
    if format_of(path) == ONNX:
        return write_onnx(model, examples, keyword_examples, path, dims, opset)
    machine = target_named(target)
    check_native(machine if native else None)
    if not native and target != "host":
        raise ArgumentError(f"a file without native code is made for no target, here {target}", remedy="native=True")
    arranged = arrange(passes)
    if isinstance(model, Graph):
        graph, state, structure = *_bound(model, (*examples, *keyword_examples)), None
    else:
        traced = snapshot(model, examples, keyword_examples, dims)
        graph, state, structure = traced.graph, traced.state(), nesting(traced.structure)
    graph = extended(graph, state, arranged, precision, machine.costs)
    compiled = compile_graph(freeze(settle(graph), state), target=machine) if native else False
    return save_graph(graph, state, path, structure=structure, native=compiled)


def extended(
    graph: Graph, state: Mapping[str, np.ndarray], passes: Arranged, precision: str | None, costs: Costs
) -> Graph:
    """A traced graph as a file holds it: after passes of a user, and with narrow weights where that is asked for. It
    relies on what the trace assumed."""
    found = graph
    with assumed(graph):
        if passes.first:
            found = optimize(found, passes.first, costs)
        if precision is not None:
            found = freeze_narrow(found, state, precision, passes.pipeline, costs).graph
        elif passes.pipeline is not PIPELINE:
            found = optimize(freeze(found, state), passes.pipeline, costs)
    found.assumptions = graph.assumptions
    return found


def _bound(graph: Graph, examples: Sequence[Any]) -> tuple[Graph, dict[str, np.ndarray]]:
    """A graph that is verified, and the arrays of its params and states."""
    if examples:
        raise ArgumentError(f"@{graph.name} is a graph, which has its types", remedy="export(graph, path=...)")
    module = GraphModule(graph)
    bound = module.graph
    return bound, {path: on_host(tensor._data) for path, tensor in bound.bound.items()}


def check_native(target: Target | None) -> None:
    """Raises ArgumentError where code for a target is no object code that a file can hold."""
    if target is not None and is_gpu(target):
        raise ArgumentError(
            f"a model file holds no code for {target.cpu}: it is made where the file is loaded, and kept in the cache",
            remedy="no native code; graphc.load(path, device='cuda')",
        )


def snapshot(
    model: Any,
    examples: Sequence[Any],
    keyword_examples: Mapping[str, Any] | None = None,
    dims: Any = None,
    calls_python: bool = False,
) -> Traced:
    """The trace of a model that is not going to be differentiated; ``dims`` as for ``compile``. ``calls_python``: it is
    only looked at, and may call Python functions."""
    named = dict(keyword_examples or {})
    with no_grad():
        traced = trace_sized(model, examples, named, dims, calls_python)
    traced.graph.assumptions = tuple(traced.assumptions.found.values())
    return traced


def nesting(structure: structures.Structure) -> Structure:
    """The structure of a trace's outputs as a file keeps it; named tuples become tuples, keys become strings."""
    numbers = itertools.count()

    def convert(part: structures.Structure) -> Structure:
        if isinstance(part, structures.Leaf):
            return next(numbers)
        if isinstance(part, structures.Static):
            if part.value is not None:
                raise ArgumentError(
                    f"the model returns {part.value!r}, which is no tensor", remedy="return tensors (or None) only"
                )
            return None
        children = [convert(child) for child in part.children]
        if issubclass(part.kind, dict):
            return {"dict": [[str(key), child] for key, child in zip(part.keys, children, strict=True)]}
        return {"tuple" if issubclass(part.kind, tuple) else "list": children}

    return convert(structure)


def save_graph(
    graph: Graph,
    weights: Mapping[str, np.ndarray],
    path: str | os.PathLike[str],
    *,
    structure: Structure = None,
    native: bool | CompiledGraph = False,
) -> ModelManifest:
    """Writes a graph with the arrays of its params and states (by path) to one file, atomically.

    ``structure`` says how a call nests the outputs; without it one output stands by itself and several are a tuple.
    ``native`` adds object code: True for that of this machine, or what has been compiled from the frozen graph already.
    Raises ArgumentError when an array is missing, or for another suffix than ``.gcm``.
    """
    check_options(path, GCM, {"a graph with its weights": True})
    return artifact.save(path, _artifact(graph, weights, structure, native))


def _artifact(
    graph: Graph, weights: Mapping[str, np.ndarray], structure: Structure, native: bool | CompiledGraph
) -> Artifact:
    """What a file of the graph holds; see ``save_graph``."""
    paths = [input_path(v) for v in graph.inputs if input_class(v) != "input"]
    missing = [p for p in paths if p not in weights]
    if missing:
        raise ArgumentError(f"the model needs arrays for {', '.join(missing)}")
    compiled = compile_graph(freeze(settle(graph), weights)) if native is True else native or None
    manifest = model_manifest(graph, structure, compiled.manifest if compiled else None)
    return Artifact(
        manifest,
        print_graph(graph),
        {p: np.asarray(weights[p]) for p in paths},
        collect_data(graph),
        compiled.constants if compiled else None,
        compiled.object if compiled else None,
    )


def model_manifest(graph: Graph, structure: Structure = None, native: Any = None) -> ModelManifest:
    """What a file says of a graph; see ``save_graph`` for ``structure``. ``native`` is the manifest of its code."""
    if structure is None:
        count = len(graph.outputs)
        structure = 0 if count == 1 else {"tuple": list(range(count))}
    return ModelManifest(
        graph.name,
        inputs=tuple(_spec(v.name, v) for v in graph.inputs if input_class(v) == "input"),
        outputs=tuple(
            _spec(n, v) for n, v in zip(output_names(structure, len(graph.outputs)), graph.outputs, strict=True)
        ),
        structure=structure,
        ops=tuple(sorted(_ops(graph))),
        versions=cache.versions(),
        native=native,
        dims=tuple(graph.dims.values()),
        assumptions=tuple(AssumptionSpec(*a) for a in graph.assumptions),
    )


def in_memory(traced: Traced) -> Artifact:
    """What ``export`` would write of a trace, without a file."""
    return artifact.placed(_artifact(traced.graph, traced.state(), nesting(traced.structure), False))


def load_traced(traced: Traced, *, target: str = HOST, device: Any = None) -> LoadedModel:
    """The model that ``export`` and ``load`` would make of a trace, without a file in between."""
    return _load_graph(in_memory(traced), machine_named(target, device))


def _spec(name: str, value: Value) -> TensorSpec:
    return TensorSpec(name, value.dtype.name, value.shape, equals=input_equals(value))


def output_names(structure: Structure, count: int) -> list[str]:
    """A name for each output from its place in the structure: ``output``, ``output.0``, ``logits``, ``boxes.1``."""
    names = [f"output.{i}" for i in range(count)]
    stack: list[tuple[str, Any]] = [("", structure)]
    while stack:
        name, part = stack.pop()
        if isinstance(part, int):
            names[part] = name or "output"
        elif part is not None:
            kind, parts = next(iter(part.items()))
            pairs = parts if kind == "dict" else enumerate(parts)
            prefix = f"{name}." if name else "" if kind == "dict" else "output."
            stack.extend((f"{prefix}{key}", child) for key, child in pairs)
    return names


def _ops(graph: Graph) -> set[str]:
    found: set[str] = set()
    stack = [graph]
    while stack:
        present = stack.pop()
        found.update(n.op.name for n in present.nodes())
        stack.extend(sub_graphs(present))
    return found


class _PythonCall:
    """Calls with arguments in any form: what native calls turn to when an argument is not exactly as declared."""

    def __init__(self, manifest: ModelManifest, program: Any, bound: tuple[np.ndarray, ...]):
        """``program`` is an Executable, a DeviceExecutable or ProgramsBySizes."""
        self.manifest = manifest
        self.program = program
        self.bound = bound
        self.gate = Gate() if any(b.written for b in program.bound) else None
        """Keeps calls of a model that writes states apart."""
        self._names = [spec.name for spec in manifest.inputs]
        checked = isinstance(program, ProgramsBySizes) or not manifest.assumptions
        self.checks = None if checked else SizesOfModel(manifest)
        """What tells of sizes for which the graph is not right."""

    def nested(self, *arrays: np.ndarray, out: Any = None, **named: np.ndarray) -> Any:
        """The outputs as the model nests them."""
        out = [out] if isinstance(out, np.ndarray) else out
        given, named = opened(self._names, arrays, named)
        results = self.listed(*(self._order(given, named) if named else given), out=out)
        return artifact.nest(self.manifest.structure, results)

    def listed(self, *arrays: Any, out: Sequence[np.ndarray] | None = None) -> list[Any]:
        """The outputs in order; tensors where some input is one."""
        if any(isinstance(a, Tensor) for a in arrays):
            return [Tensor._wrap(a) for a in self._run([self._array(a) for a in arrays], out)]
        return self._run([self._array(a) for a in arrays], out)

    def _array(self, value: Any) -> Any:
        """The array of a tensor, one of another library too; raises GradientError where gradients would be lost,
        TraceError under trace."""
        if not isinstance(value, Tensor):
            foreign = not isinstance(value, np.ndarray) and not is_on_device(value) and is_foreign_tensor(value)
            return from_dlpack(value)._data if foreign else value
        title = self.manifest.name
        if is_on_device(value._data) and isinstance(self.program, Executable):
            raise ArgumentError(
                f"an input of {title} lies on {value._data.device.name}, and it was loaded for the CPU",
                remedy=f"graphc.load(path, device={value._data.device.name!r}), or x.cpu()",
            )
        if not isinstance(value._data, np.ndarray) and not is_on_device(value._data):
            raise TraceError(
                f"the loaded model {title} cannot be part of a compiled function", remedy="the module it was made of"
            )
        if is_grad_enabled() and value.requires_grad:
            raise GradientError(
                f"the loaded model {title} computes no gradients, but an input requires them",
                remedy="x.detach(), or with graphc.no_grad(): ...",
            )
        return value._data

    def _run(self, arrays: Sequence[np.ndarray], out: Sequence[np.ndarray] | None) -> list[np.ndarray]:
        if self.checks is not None:
            self.checks.of(arrays)
        if self.gate is None:
            return self.program.run(arrays, self.bound, out)
        with self.gate.alone():
            return self.program.run(arrays, self.bound, out)

    def native(self) -> Callable[..., Any]:
        """``nested``, natively where the outputs are one array or one list or tuple of all."""
        if self.checks is not None or not isinstance(self.program, Executable):
            return self.nested
        structure, count = self.manifest.structure, len(self.manifest.outputs)
        plain = list(range(count))
        kinds = {type(None): structure == 0 and count == 1, list: structure == {"list": plain}}
        kinds[tuple] = structure == {"tuple": plain}
        for kind, fits in kinds.items():
            if fits:
                return native(self.program, self.bound, self.nested, None if kind is type(None) else kind, self.gate)
        return self.nested

    def _order(self, arrays: Sequence[np.ndarray], named: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        names, title = self._names, self.manifest.name
        found: dict[str, np.ndarray] = dict(zip(names, arrays, strict=False))
        for name, array in named.items():
            if name not in names:
                raise ArgumentError(f"{title} has no input {name!r}", remedy=f"one of {', '.join(names)}")
            if name in found:
                raise ArgumentError(f"input {name!r} of {title} is given twice")
            found[name] = array
        missing = [name for name in names if name not in found]
        if missing or len(arrays) > len(names):
            what = f"lacks {', '.join(missing)}" if missing else f"has {len(arrays)} arrays by position"
            raise ArgumentError(f"the call of {title} {what}; it takes {', '.join(names)}")
        return [found[name] for name in names]


class LoadedModel:
    """A model from a file: numpy arrays in, numpy arrays out (or tensors in, tensors out, without gradients). Several
    threads may call it at once.

    States that the model writes (batch statistics, random counter) are its own and live as long as it does.
    """

    # NOTE: an instance is called through what stands in this slot, so that a call runs no Python at all.
    __slots__ = ("__call__", "__dict__", "__weakref__")

    __call__: Callable[..., Any]
    """``model(*arrays, out=None, **named)``: the outputs for arrays in order or by name, nested as the model nests
    them. Tensors of other libraries (``__dlpack__``) are arrays, and arguments may be nested as in the export.
    ``out`` is the array, or the list or tuple of arrays, to write them to. For tensors the outputs are tensors.

    Raises ArgumentError (count, name, kind, sharing of memory), ShapeError and DTypeError."""

    def __init__(self, stored: Artifact, program: Any, seconds: Mapping[str, float] | None):
        self.manifest = stored.manifest
        self.text = stored.text
        """The graph."""
        self.seconds = seconds
        """How long each stage of the compile took; None when object code from the file runs."""
        self._program = program
        self.states: dict[str, np.ndarray]
        """Params and states that the model writes, by qualified name; all others are constants of the code."""
        program.explain = Refusals(lambda: _checks(stored))
        if isinstance(program, ProgramsBySizes):
            self.states = program.states
            sized = _PythonCall(self.manifest, program, ())
            self.__call__, self._run = sized.nested, sized.listed
            return
        self.states = {b.path: np.array(stored.weights[b.path]) for b in program.bound}
        calls = _PythonCall(self.manifest, program, tuple(self.states.values()))
        self.__call__ = calls.native()
        plain = calls.checks is None and isinstance(program, Executable)
        self._run = native(program, calls.bound, calls.listed, list, calls.gate) if plain else calls.listed

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.manifest.name

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Names, element types and shapes of the inputs, in order."""
        return self.manifest.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Names, element types and shapes of the outputs, in order."""
        return self.manifest.outputs

    def plan(self, **sizes: int) -> Plan:
        """Bytes of arena, constants and code, and the estimated time, known without a call; for ``sizes`` of named
        dimensions by name, those not given being the expected ones. Raises ArgumentError for an unknown name, and for
        a size outside of its range."""
        if isinstance(self._program, ProgramsBySizes):
            return plan_of(self._program.of(self._program.sizes.named(sizes)))
        # NOTE: the program has other dimensions where the file's are limited, as 4*time_4 for a time.
        known = SizesOfModel(self.manifest).named(sizes)
        shapes = tuple([tuple([at(n, known) for n in spec.pattern]) for spec in self.manifest.inputs])
        return plan_of(self._program, sizes=self._program.sizes.named(shapes) if known else {})

    def run(self, arrays: Sequence[np.ndarray], out: Sequence[np.ndarray] | None = None) -> list[np.ndarray]:
        """The outputs in order, for one array per input; written into the arrays of ``out`` when they are given."""
        return self._run(*arrays, out=out)

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, specs)) for specs in (self.inputs, self.outputs))
        return f"<LoadedModel {self.name}({inputs}) -> ({outputs})>"


def load(path: str | os.PathLike[str], trust: bool = False, *, target: str = HOST, device: Any = None) -> LoadedModel:
    """Reads a model file and makes it callable.

    The graph is compiled for this machine, or for what ``target`` names of it, as ``compile`` takes it; or for
    a ``device``, of which no file holds code. There arrays of the host are taken and given as well. Object code in the
    file is native code of whoever wrote it: it runs only with ``trust``, and only where this machine and this
    version of graphc fit, and where it is for the ``target`` if one is named. Raises ArtifactError for a damaged,
    foreign or newer file; OSError when it cannot be read; CompileError.
    """
    machine = machine_named(target, device)
    stored = artifact.load(path)
    try:
        if trust and not is_device(machine) and not why_not_native(stored) and _is_made_for(stored, machine):
            return _load_native(stored)
        return _load_graph(stored, machine)
    except ArtifactError as error:
        error.what = f"{os.fspath(path)}: {error.what}"
        raise


def _load_graph(stored: Artifact, machine: str) -> LoadedModel:
    if stored.manifest.dims:
        return _load_sized(stored, machine)
    if is_device(machine):
        compiled = compile_on(freeze(read_graph(stored), stored.weights), machine)
        return LoadedModel(stored, load_on(compiled, machine), compiled.stages.seconds)
    target = running_target(machine)
    stages: list[Stages] = []

    def build() -> CompiledGraph:
        stages.append(Stages(freeze(read_graph(stored), stored.weights), target=target))
        return compile_stages(stages[0])

    start = time.perf_counter()
    disk = cache.current()
    parts: tuple[Any, ...] = ("file", repr(target), stored.digest)
    # NOTE: the whole file stands for its graph, so that a program in the cache is found without reading it; but for
    # ops of a user, whose rules are not in it.
    own = any(name in REGISTRY and REGISTRY[name].module for name in stored.manifest.ops)
    if disk is not None and (own or not stored.digest):
        parts = key_parts(Stages(freeze(read_graph(stored), stored.weights), target=target))
    entry, found = find_or_build(disk, target, parts, build)
    seconds = {"cache": time.perf_counter() - start} if found else stages[0].seconds
    return LoadedModel(stored, load_compiled(entry), seconds)


def _load_sized(stored: Artifact, machine: str) -> LoadedModel:
    """A model whose inputs have named dimensions: one program for all their sizes where there can be one."""
    graph = read_graph(stored)
    found = for_all_sizes(graph, stored.weights, lambda graph: compile_on(graph, machine))
    if isinstance(found, GraphcError):
        config.logger("compile").warning("%s is compiled for each size of its dimensions: %s", graph.name, found.what)
        by_sizes = ProgramsBySizes(stored, graph, machine)
        return LoadedModel(stored, by_sizes, by_sizes.seconds)
    return LoadedModel(stored, load_on(found, machine), found.stages.seconds)


def _checks(stored: Artifact) -> Graph:
    """What the checks of a model file's graph need, with the file's weights as constants."""
    graph = read_graph(stored)
    with assumed(graph):
        return checks_of(freeze(graph, stored.weights))


def why_not_native(stored: Artifact) -> str:
    """Why the object code of a file cannot run here, or an empty text."""
    native = stored.manifest.native
    if native is None or stored.object is None:
        return "the file carries no native code"
    if native.versions.get("graphc") != cache.versions()["graphc"]:
        return f"it was built by graphc {native.versions.get('graphc')}, this is {cache.versions()['graphc']}"
    return runs_here(native.target)


def _is_made_for(stored: Artifact, target: str) -> bool:
    """Whether a file's object code is for a target that is named; any is for this machine that can run here."""
    native = stored.manifest.native
    return target == "host" or (native is not None and native.target == target_spec(running_target(target)))


def _load_native(stored: Artifact) -> LoadedModel:
    native, code, constants = stored.manifest.native, stored.object, stored.constants
    assert native is not None and code is not None and constants is not None
    prepare_threads(code)
    program = Executable(native, load_object(code, native.entry), constants)
    _check_weights(stored, [(b.path, b.dtype, b.shape) for b in program.bound])
    types = [[(b.dtype, b.shape) for b in specs] for specs in (program.inputs, program.outputs)]
    known = {d.name: d for d in stored.manifest.dims}
    sizes = chosen_sizes(known, limits([a.known() for a in stored.manifest.assumptions], known))
    wanted = (stored.manifest.inputs, stored.manifest.outputs)
    if types != [[(s.dtype, bound_sizes(s.shape, sizes)) for s in specs] for specs in wanted]:
        raise ArtifactError("the native code has other inputs or outputs than the manifest")
    return LoadedModel(stored, program, None)


def read_graph(stored: Artifact) -> Graph:
    """The graph of a model file, verified and compared with the manifest; raises ArtifactError."""
    unknown = sorted(set(stored.manifest.ops) - set(REGISTRY))
    if unknown:
        raise ArtifactError(
            f"the graph uses {', '.join(unknown)}, which this graphc does not know",
            remedy="import the module that defines it with graphc.define_op; a newer graphc",
        )
    assumptions = [spec.known() for spec in stored.manifest.assumptions]
    try:
        with holding(assumptions, chosen_sizes({d.name: d for d in stored.manifest.dims}, {})):
            graph = parse_graph(stored.text, stored.data)
            verify_graph(graph)
    except RecursionError:
        raise ArtifactError("the graph is nested too deeply") from None
    except GraphcError as error:
        raise ArtifactError(f"the graph is not valid: {error.what}", where=error.where, remedy=error.remedy) from error
    for value in (v for node in graph.nodes() for v in node.results):
        if bounds(value.type.nbytes)[0] > MAX_BYTES:
            raise ArtifactError(f"%{value.name} takes {value.type.nbytes} bytes, at most {MAX_BYTES} are allowed")
    own = [v for v in graph.inputs if input_class(v) != "input"]
    _check_weights(stored, [(input_path(v), v.dtype.name, v.shape) for v in own])
    inputs = tuple(_spec(v.name, v) for v in graph.inputs if input_class(v) == "input")
    outputs = [(v.dtype.name, v.shape) for v in graph.outputs]
    if inputs != stored.manifest.inputs or outputs != [(s.dtype, s.shape) for s in stored.manifest.outputs]:
        raise ArtifactError("the graph has other inputs or outputs than the manifest")
    graph.assumptions = assumptions
    return graph


def _check_weights(stored: Artifact, wanted: list[tuple[str, str, tuple[int, ...]]]) -> None:
    held = {t.name: (t.dtype, t.shape) for t in stored.manifest.tensors if t.section == "weights"}
    for path, dtype, shape in wanted:
        if held.get(path) != (dtype, shape):
            found = "is missing" if path not in held else f"is {held[path][0]}{list(held[path][1])}"
            raise ArtifactError(f"weight {path!r} {found}, the graph takes {dtype}{list(shape)}")
