"""Entries of a model file before it is written: their traces, and one name for each shared tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError, GraphcError
from graphc.base.host_parts import host_parts_of
from graphc.base.records import dataclass
from graphc.base.sizes.named_dims import dimensions, size_of
from graphc.calls.function import Compiled
from graphc.calls.graph_module import GraphModule
from graphc.files.model_manifest import SegmentSpec
from graphc.files.structure import Structure
from graphc.ir.graph.graph import Graph, Value, input_class, input_path
from graphc.ir.graph.interpret import Reemitter
from graphc.models.model_trace import nesting, snapshot
from graphc.models.step_entry import TrainingParts, function_parts, step_parts
from graphc.steps.step import CompiledStep
from graphc.tape.grad_mode import enable_grad
from graphc.tensors.placement import on_host
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import Traced, is_module, modules_of, trace_sized
from graphc.tracing.tracer import named_tensors


class Entry:
    """Entry of a model file: a function, with the examples that it is traced on.

    Args:
        target: a Module, a method of one, a function of tensors, a graph, or a step of ``compile_step``.
        examples, keyword_examples: example tensors or arrays; any other argument becomes a constant.
        dims: names of sizes that vary, as for ``compile``.
        train: mode of the module during the trace (default: its present mode).
        derivative: let gradients flow through the entry of a loaded model.

    Returns:
        The entry, for the dictionary that ``export`` and ``build_library`` take.

    Raises:
        ArgumentError: a target that cannot be called, or options that it does not have.

    Example:
        >>> import graphc as gc
        >>> layer = gc.nn.Linear(2, 3)
        >>> entries = {"apply": gc.Entry(layer, gc.zeros(1, 2)), "bias": gc.Entry(lambda: layer.bias * 1)}
        >>> manifest = gc.export(entries, path="layer.gcm")
        >>> list(gc.load("layer.gcm").entries)
        ['apply', 'bias']
    """

    def __init__(
        self,
        target: Any,
        *examples: Any,
        dims: Any = None,
        train: bool | None = None,
        derivative: bool = False,
        **keyword_examples: Any,
    ):
        self.target, self.examples, self.keyword_examples = target, examples, keyword_examples
        self.dims, self.train, self.derivative = dims, train, derivative
        self.texts = ""
        """Text operators around the target, see ``without_texts``."""
        if isinstance(target, Graph):
            if examples or keyword_examples or dims is not None:
                raise ArgumentError(
                    f"@{target.name} is a graph, which has its types", remedy="call export(graph, path=...)"
                )
        elif not callable(target) or isinstance(target, type):
            raise ArgumentError(
                f"an entry is a module, a method or a function with its examples, got {target!r}",
                remedy="pass a callable: gc.Entry(model.encode, x)",
            )
        if train is not None and not is_module(self.module):
            raise ArgumentError(f"train={train} is the mode of a module, and {target!r} belongs to none")
        if derivative and isinstance(target, (Graph, CompiledStep)):
            raise ArgumentError(
                f"a {type(target).__name__} as an entry has no derivative", remedy="pass derivative=False"
            )
        if isinstance(target, CompiledStep) and dims is not None:
            raise ArgumentError("an entry takes no dims for a step", remedy="pass dims= to compile_step")

    @property
    def module(self) -> Any:
        """The target where it is a module, or the module of a method; None for others."""
        return self.target if is_module(self.target) else getattr(self.target, "__self__", None)

    def __repr__(self) -> str:
        name = getattr(self.target, "__qualname__", type(self.target).__name__)
        return f"Entry({name}, {len(self.examples) + len(self.keyword_examples)} examples)"


class Held(NamedTuple):
    """The content of an argument of a graph."""

    key: Any
    """Equal for the same tensor."""
    array: np.ndarray
    owner: Any = None
    """Keeps the key valid while it lives."""


class Differentiated(NamedTuple):
    """The subject of an entry's derivative: inputs and outputs by index, params by path."""

    inputs: tuple[int, ...]
    params: tuple[str, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class TracedEntry:
    """An entry as a graph."""

    name: str
    graph: Graph
    structure: Structure
    held: Mapping[str, Held]
    """The contents of its params and states, by path."""
    modules: Sequence[Any] = field(default=(), compare=False)
    """Modules whose names of tensors apply to all entries."""
    free: frozenset[str] = frozenset()
    """Paths of numbers that schedules change."""
    differentiated: Differentiated | None = None
    texts: str = ""
    """Text operators around the graph."""
    segments: tuple[SegmentSpec, ...] = ()
    """The programs of a chain; the entries after it have their graphs."""
    paths: tuple[str, ...] = ()
    """Names of the entries for other sizes."""


def without_texts(entry: Entry) -> Entry:
    """Return an entry for the numeric module of a model with texts. Raise ArgumentError for a derivative."""
    parts = host_parts_of(entry.target)
    if parts is None:
        return entry
    if entry.derivative:
        raise ArgumentError("a model with texts or dictionaries has no derivative", remedy="pass derivative=False")
    arguments = parts.arguments(entry.examples, entry.keyword_examples)
    numeric = Entry(parts.program, *arguments, dims=parts.dims(entry.dims), train=entry.train)
    numeric.texts = parts.record()
    return numeric


def trace_entry(name: str, entry: Entry) -> list[TracedEntry]:
    """Return the graph of an entry, or of each program of a chain after the entry itself. Raise what tracing raises,
    and ArgumentError where outputs are not tensors."""
    target = entry.target
    if isinstance(target, Graph):
        bound = GraphModule(target).graph
        return [TracedEntry(name, bound, None, {p: _held(t) for p, t in bound.bound.items()})]
    if (parts := _training_parts(entry)) is not None:
        held = {path: _held(tensor) for path, tensor in parts.tensors.items()}
        held |= {path: Held(key, array) for path, (key, array) in parts.numbers.items()}
        roots = [m for prefix, m in modules_of(getattr(target, "model", target)) if not prefix]
        return [TracedEntry(name, parts.graph, parts.structure, held, roots, frozenset(parts.numbers))]
    with _mode(entry):
        traced = _traced(entry)
        others = () if entry.derivative or traced.reads else _traced_otherwise(entry, traced)
    roots = [module for prefix, module in modules_of(target) if not prefix]
    first, *programs = entries_of(name, traced)
    paths = [entries_of(f"{name}.{i}", other)[0] for i, other in enumerate(others)]
    first = replace(first, modules=roots, texts=entry.texts, paths=tuple([path.name for path in paths]))
    programs += [replace(path, modules=roots) for path in paths]
    return [replace(first, differentiated=_differentiated(traced)) if entry.derivative else first, *programs]


def entries_of(name: str, traced: Traced) -> list[TracedEntry]:
    """Return a trace as an entry, and the programs of a chain where it reads sizes."""
    held = {input_path(a.value): _held(a.tensor) for a in traced.arguments}
    entry = TracedEntry(name, traced.graph, nesting(traced.structure), held)
    reads = traced.reads
    if not reads:
        return [entry]
    read_as = {read.input: read.value for read in reads}
    values: list[Value] = [v for v in traced.inputs if v not in read_as]
    segments, programs = [], []
    for number, (part, group) in enumerate(traced.parts()):
        # NOTE: a size is an output of the part that computes it, and an input of later ones.
        indices = [values.index(read_as.get(v, v)) for v in part.inputs]
        sizes = [d.name for i in group if (d := reads[i].dimension) is not None]
        segments.append(SegmentSpec(tuple(indices), tuple(sizes)))
        own = {path: held[path] for v in part.graph.inputs if (path := input_path(v))}
        programs.append(TracedEntry(f"{name}.{number}", part.graph, None, own))
        values += part.outputs
    return [replace(entry, segments=tuple(segments)), *programs]


def _training_parts(entry: Entry) -> TrainingParts | None:
    """Return the parts of a step or of a compiled function that trains; None for other targets."""
    target, examples, named = entry.target, entry.examples, entry.keyword_examples
    if isinstance(target, CompiledStep):
        return step_parts(target, examples, named)
    if not isinstance(target, Compiled) or is_module(target):
        return None
    parts = function_parts(target, examples, named)
    if parts is not None and (entry.derivative or entry.dims is not None):
        option = "derivative=False" if entry.derivative else "dims= to graphc.compile"
        raise ArgumentError(
            "an entry takes no derivative and no dims for a function that trains", remedy=f"pass {option}"
        )
    return parts


def _held(tensor: Tensor) -> Held:
    return Held(id(tensor), on_host(tensor._data), tensor)


@contextmanager
def _mode(entry: Entry) -> Iterator[None]:
    """Set the module of an entry to the entry's mode inside the context."""
    if entry.train is None:
        yield
        return
    modes = [(module, module.training) for module in entry.module.modules()]
    entry.module.train(entry.train)
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _traced(entry: Entry) -> Traced:
    if not entry.derivative:
        return _snapshot(entry)
    leaves, structure = flatten((entry.examples, entry.keyword_examples))
    tracked = [t.detach().requires_grad_(True) if t.dtype.is_floating_point else t for t in leaves]
    examples, named = unflatten(structure, tracked)
    with enable_grad():
        traced = trace_sized(entry.target, examples, named, entry.dims)
    traced.graph.assumptions = tuple(traced.assumptions.found.values())
    return traced


def _traced_otherwise(entry: Entry, traced: Traced) -> list[Traced]:
    """Return traces for sizes with which a model may return other ranks or types: where the trace assumes that a
    dimension is 1, or is not 1, the opposite."""
    others: list[Traced] = []
    for assumption in traced.graph.assumptions:
        dimension, size = next(iter(dimensions((assumption.a, assumption.b)).values())), 2 if assumption.answer else 1
        # NOTE: sizes are compared as texts, for a comparison of sizes is a question.
        is_one = {str(assumption.a), str(assumption.b)} == {"1", str(size_of(dimension))}
        if assumption.relation != "==" or not is_one or not dimension.low <= size <= dimension.high:
            continue
        try:
            other = _snapshot(entry, {dimension.name: size})
        except GraphcError:  # the model cannot be called with this size
            continue
        if not other.reads:
            others.append(other)
    return others


def _snapshot(entry: Entry, sizes: Mapping[str, int] = MappingProxyType({})) -> Traced:
    return snapshot(entry.target, entry.examples, entry.keyword_examples, entry.dims, reads_sizes=True, sizes=sizes)


def _differentiated(traced: Traced) -> Differentiated:
    inputs = tuple(i for i, v in enumerate(traced.inputs) if v in traced.reached)
    params = tuple(
        input_path(a.value) for a in traced.arguments if a.tensor._requires_grad and a.value in traced.reached
    )
    outputs = tuple(i for i, is_one in enumerate(traced.differentiable) if is_one)
    if not outputs or not (inputs or params):
        raise ArgumentError(f"no output of {traced.graph.name} has a gradient", remedy="pass derivative=False")
    return Differentiated(inputs, params, outputs)


# ---- names


def with_shared_names(entries: Sequence[TracedEntry], root: Any = None) -> list[TracedEntry]:
    """Return the entries with one path for each tensor that several use.

    The path comes from ``root``, or from the largest module with the tensor, else from its trace. Where two tensors
    would share a name, prefix it with the name of the entry.
    """
    roots = [m for entry in entries for m in entry.modules]
    tables = [named_tensors(m) for m in roots]
    tables.sort(key=len, reverse=True)
    names: dict[Any, str] = {}
    for table in ([named_tensors(root)] if root is not None else []) + tables:
        for tensor, _, path in table:
            names.setdefault(id(tensor), path)
    by_name: dict[str, dict[Any, str]] = {}
    for entry in entries:
        for path, held in entry.held.items():
            by_name.setdefault(_name(entry, path, names), {}).setdefault(held.key, entry.name)
    unique = {
        key: name if len(keys) == 1 else f"{owner}.{name}"
        for name, keys in by_name.items()
        for key, owner in keys.items()
    }
    if len(set(unique.values())) < len(unique):
        raise ArgumentError("tensors of several modules have the same names", remedy="pass root=model to export")
    return [_renamed(entry, {path: unique[held.key] for path, held in entry.held.items()}) for entry in entries]


def _name(entry: TracedEntry, path: str, names: Mapping[Any, str]) -> str:
    """Return the preferred name of an entry's tensor. States of an optimizer take the name of their parameter."""
    key = entry.held[path].key
    if key in names:
        return names[key]
    kind, _, rest = path.partition(".")
    param, _, slot = rest.rpartition(".")
    if kind == "optimizer" and param in entry.held and entry.held[param].key in names:
        return f"{kind}.{names[entry.held[param].key]}.{slot}"
    return path


def _renamed(entry: TracedEntry, names: Mapping[str, str]) -> TracedEntry:
    if all(path == name for path, name in names.items()):
        return entry
    graph = _Renamer(names).transform(entry.graph)
    differentiated = entry.differentiated
    if differentiated is not None:
        differentiated = differentiated._replace(params=tuple(names[path] for path in differentiated.params))
    held = {names[path]: held for path, held in entry.held.items()}
    free = frozenset(names[path] for path in entry.free)
    return replace(entry, graph=graph, held=held, free=free, differentiated=differentiated)


class _Renamer(Reemitter):
    def __init__(self, names: Mapping[str, str]):
        super().__init__()
        self._names = names

    def copy_input(self, value: Value) -> Value:
        if input_class(value) == "input":
            return super().copy_input(value)
        path = self._names[input_path(value)]
        return self.target.add_input(value.type, value.name, input_class(value), path)
