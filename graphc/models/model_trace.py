"""Traces of models for files: without gradients, and converted to records of entries."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.sizes.assumptions import Assumption
from graphc.compiler.freeze import written_states
from graphc.files.model_content import Code, Sample, StoredEntry
from graphc.files.model_manifest import AssumptionSpec, DerivativeSpec, EntrySpec
from graphc.files.structure import Structure
from graphc.ir.graph.graph import Graph, input_class, input_path
from graphc.ir.graph.text import collect_data, print_graph
from graphc.ir.graph.verify import sub_graphs
from graphc.models.model_graph import tensor_spec
from graphc.tape.grad_mode import no_grad
from graphc.tensors import structure as structures
from graphc.tracing.trace import Traced, trace_sized


def snapshot(
    model: Any,
    examples: Sequence[Any],
    keyword_examples: Mapping[str, Any] | None = None,
    dims: Any = None,
    calls_python: bool = False,
    by_hints: bool = False,
    reads_sizes: bool = False,
    sizes: Mapping[str, int] = MappingProxyType({}),
) -> Traced:
    """Trace a model without gradients. For ``dims`` see ``compile``, for ``reads_sizes`` and ``sizes``
    ``trace_sized``.

    ``calls_python`` allows calls of Python functions in the trace, for callers that only inspect it. ``by_hints``
    traces for the hints of ``dims`` instead of the sizes of the examples, or for others where that fails.
    """
    named = dict(keyword_examples or {})
    with no_grad():
        traced = trace_sized(model, examples, named, dims, calls_python, by_hints, reads_sizes, sizes)
    traced.graph.assumptions = tuple(traced.assumptions.found.values())
    return traced


def nesting(structure: structures.Structure) -> Structure:
    """Return the structure of a trace's outputs for a file. Named tuples become tuples, keys become strings."""
    numbers = itertools.count()

    def convert(node: structures.Structure) -> Structure:
        if isinstance(node, structures.Leaf):
            return next(numbers)
        if isinstance(node, structures.Static):
            if node.value is not None:
                raise ArgumentError(
                    f"the model returns {node.value!r}, which is not a tensor", remedy="return tensors (or None) only"
                )
            return None
        children = [convert(child) for child in node.children]
        if issubclass(node.kind, dict):
            return {"dict": [[str(key), child] for key, child in zip(node.keys, children, strict=True)]}
        return {"tuple" if issubclass(node.kind, tuple) else "list": children}

    return convert(structure)


def stored_entry(
    name: str,
    graph: Graph,
    structure: Structure = None,
    codes: Sequence[Code] = (),
    derivative: DerivativeSpec | None = None,
    golden: Sequence[Sample] = (),
) -> StoredEntry:
    """Return a graph as an entry of a file.

    ``structure`` is the nesting of the outputs of a call; the default is one output by itself, and several as a tuple.
    """
    spec = entry_spec(name, graph, structure, derivative)
    return StoredEntry(spec, print_graph(graph, portable=True), collect_data(graph), tuple(codes), tuple(golden))


def entry_spec(
    name: str, graph: Graph, structure: Structure = None, derivative: DerivativeSpec | None = None
) -> EntrySpec:
    """Return the manifest's record of a graph as an entry; see ``stored_entry``."""
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
        assumptions=assumption_specs(graph.assumptions),
        classes=_classes(graph),
    )


def _classes(graph: Graph) -> dict[str, str]:
    """Return the classes of the modules that made nodes, and of those around them."""
    paths: set[str] = set()
    for path in {node.location.module for node in graph.nodes()}:
        while path and path not in paths:
            paths.add(path)
            path = path.rpartition(".")[0]
    return {path: graph.classes[path] for path in sorted(paths) if path in graph.classes}


def assumption_specs(assumptions: Sequence[Assumption]) -> tuple[AssumptionSpec, ...]:
    """Return the manifest's records of assumptions."""
    return tuple(AssumptionSpec(*a[:-1], a.portable_place) for a in assumptions)


def output_names(structure: Structure, count: int) -> list[str]:
    """Return a name for each output from its position in the structure: ``output``, ``output.0``, ``logits``,
    ``boxes.1``.
    """
    names = [f"output.{i}" for i in range(count)]
    stack: list[tuple[str, Any]] = [("", structure)]
    while stack:
        name, child_structure = stack.pop()
        if isinstance(child_structure, int):
            names[child_structure] = name or "output"
        elif child_structure is not None:
            kind, children = next(iter(child_structure.items()))
            pairs = children if kind == "dict" else enumerate(children)
            prefix = f"{name}." if name else "" if kind == "dict" else "output."
            stack.extend((f"{prefix}{key}", child) for key, child in pairs)
    return names


def ops_of(graph: Graph) -> set[str]:
    """Return the names of the ops in a graph and its sub-graphs."""
    names: set[str] = set()
    stack = [graph]
    while stack:
        present = stack.pop()
        names.update(n.op.name for n in present.nodes())
        stack.extend(sub_graphs(present))
    return names
