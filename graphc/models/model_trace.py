"""Models as files keep them: their trace without gradients, and what a file says of a graph."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.compiler.freeze import written_states
from graphc.files.manifest import TensorSpec
from graphc.files.model_content import Code, Sample, StoredEntry
from graphc.files.model_manifest import AssumptionSpec, DerivativeSpec, EntrySpec
from graphc.files.structure import Structure
from graphc.ir.graph.graph import Graph, Value, input_class, input_equals, input_path
from graphc.ir.graph.text import collect_data, print_graph
from graphc.ir.graph.verify import sub_graphs
from graphc.tape.grad_mode import no_grad
from graphc.tensors import structure as structures
from graphc.tracing.trace import Traced, trace_sized


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


def stored_entry(
    name: str,
    graph: Graph,
    structure: Structure = None,
    codes: Sequence[Code] = (),
    derivative: DerivativeSpec | None = None,
    golden: Sequence[Sample] = (),
) -> StoredEntry:
    """A graph as an entry of a file. ``structure`` says how a call nests the outputs; without it one output stands by
    itself and several are a tuple."""
    spec = entry_spec(name, graph, structure, derivative)
    return StoredEntry(spec, print_graph(graph, portable=True), collect_data(graph), tuple(codes), tuple(golden))


def entry_spec(
    name: str, graph: Graph, structure: Structure = None, derivative: DerivativeSpec | None = None
) -> EntrySpec:
    """What a file says of a graph as an entry; see ``stored_entry``."""
    if structure is None:
        count = len(graph.outputs)
        structure = 0 if count == 1 else {"tuple": list(range(count))}
    return EntrySpec(
        name,
        graph.name,
        inputs=tuple(tensor_spec(v.name, v) for v in graph.inputs if input_class(v) == "input"),
        outputs=tuple(
            tensor_spec(n, v) for n, v in zip(output_names(structure, len(graph.outputs)), graph.outputs, strict=True)
        ),
        structure=structure,
        ops=tuple(sorted(ops_of(graph))),
        uses=tuple(input_path(v) for v in graph.inputs if input_class(v) != "input"),
        writes=tuple(sorted(map(input_path, written_states(graph)))),
        derivative=derivative,
        dims=tuple(graph.dims.values()),
        assumptions=tuple(AssumptionSpec(*a[:-1], a.portable_place) for a in graph.assumptions),
    )


def tensor_spec(name: str, value: Value) -> TensorSpec:
    """What a file says of an input or output."""
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


def ops_of(graph: Graph) -> set[str]:
    """Names of the ops that a graph uses, sub-graphs included."""
    found: set[str] = set()
    stack = [graph]
    while stack:
        present = stack.pop()
        found.update(n.op.name for n in present.nodes())
        stack.extend(sub_graphs(present))
    return found
