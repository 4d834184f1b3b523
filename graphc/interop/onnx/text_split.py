"""Split of a graph with texts and maps: a numeric graph to compile, and the operators that run in Python around it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphc.base.records import dataclass
from graphc.interop.onnx.elements import STRING
from graphc.interop.onnx.graph import ABSENT, OnnxGraph, OnnxNode, Port, TensorAttribute, captured

BEFORE, PROGRAM, AFTER = range(3)
"""Parts of a split graph, in the order in which they run."""
_MOVES = frozenset(
    [
        "Cast",
        "Concat",
        "Reshape",
        "Identity",
        "Gather",
        "Slice",
        "ArrayFeatureExtractor",
        "Squeeze",
        "Unsqueeze",
        "Flatten",
        "Transpose",
        "Split",
        "Shape",
        "ConstantOfShape",
        "Constant",
        "Expand",
        "Where",
        "Equal",
        "Not",
        "And",
        "Or",
    ]
)
"""Operators that run before the program where a text is computed from their results. Others stay in the program."""
_LABELS = {
    "LinearClassifier": "classlabels_ints",
    "SVMClassifier": "classlabels_ints",
    "TreeEnsembleClassifier": "classlabels_int64s",
}
"""Classifiers, and their attribute for labels that are numbers."""
_ML = "ai.onnx.ml"


@dataclass(frozen=True)
class Split:
    """The three parts of a graph. Each takes inputs of the model and results of the parts before it, by name."""

    before: OnnxGraph
    program: OnnxGraph
    after: OnnxGraph


def split_texts(graph: OnnxGraph) -> Split | None:
    """Return the parts of a graph, or None where it has neither texts nor maps."""
    graph = _with_numbered_labels(graph)
    texts = _texts(graph)
    if not texts:
        return None
    levels = _Levels(graph, texts)
    parts = [[n for n, level in zip(graph.nodes, levels.of_nodes, strict=True) if level == p] for p in range(3)]
    results = [p.name for p in graph.outputs]
    numbers = [name for name in results if name not in texts and levels.of_value(name) < AFTER]
    for_after = _read(parts[AFTER])
    computed = {name for node in parts[PROGRAM] for name in node.outputs}
    program_results = list(dict.fromkeys([*numbers, *sorted(for_after & computed)]))
    needed = {*_read(parts[PROGRAM]), *program_results, *for_after, *results}
    first = sorted({name for node in parts[BEFORE] for name in node.outputs} & needed)
    ports = {p.name: p for p in graph.inputs}
    return Split(
        _part(graph, parts[BEFORE], first, ports),
        _part(graph, parts[PROGRAM], program_results, ports),
        _part(graph, parts[AFTER], [n for n in results if levels.of_value(n) == AFTER], ports),
    )


def _part(graph: OnnxGraph, nodes: list[OnnxNode], results: Sequence[str], ports: Mapping[str, Port]) -> OnnxGraph:
    """Return the nodes of one part as a graph whose inputs are the values that it reads from elsewhere."""
    own = {name for node in nodes for name in node.outputs}
    wanted = {*_read(nodes), *results}
    constants = {name: c for name, c in graph.constants.items() if name in wanted}
    names = [n for n in ports if n in wanted] + sorted(wanted - own - ports.keys() - graph.constants.keys())
    inputs = [ports.get(name, Port(name, "tensor", None, None)) for name in names]
    return OnnxGraph(graph.name, inputs, [Port(n, "other", None, None) for n in results], nodes, constants)


def _reads(node: OnnxNode) -> set[str]:
    """Return the names that a node and its subgraphs read."""
    return {n for n in (*node.inputs, *(n for g in node.graphs() for n in captured(g))) if n != ABSENT}


def _read(nodes: Sequence[OnnxNode]) -> set[str]:
    return {name for node in nodes for name in _reads(node)}


# ---- labels


def _with_numbered_labels(graph: OnnxGraph) -> OnnxGraph:
    """Return the graph with classifiers that return class indices, and a lookup of their text labels."""
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        labels = node.attributes.get("classlabels_strings", ())
        if node.domain != _ML or node.op not in _LABELS or not labels:
            nodes.append(node)
            continue
        numbers = tuple(range(len(labels)))
        attributes = {k: v for k, v in node.attributes.items() if k != "classlabels_strings"}
        label, *others = node.outputs
        index = f"{label or node.name}/class"
        nodes.append(replace(node, outputs=(index, *others), attributes={**attributes, _LABELS[node.op]: numbers}))
        if label != ABSENT:
            lookup = {"keys_int64s": numbers, "values_strings": tuple(labels), "default_string": ""}
            nodes.append(OnnxNode(f"{node.name}/labels", "LabelEncoder", _ML, 4, (index,), (label,), lookup))
    return replace(graph, nodes=nodes)


# ---- which values are texts


def _texts(graph: OnnxGraph) -> set[str]:
    """Return the names of values that are texts or maps."""
    texts = {p.name for p in graph.inputs if p.kind == "map" or _is_text(p.element)}
    texts |= {name for name, constant in graph.constants.items() if _is_text(constant.element)}
    for node in graph.nodes:
        texts |= {name for i, name in enumerate(node.outputs) if name != ABSENT and gives_text(node, i, texts)}
    return texts


def _is_text(element: Any) -> bool:
    return element is not None and element.carrier is None


def gives_text(node: OnnxNode, number: int, texts: Collection[str]) -> bool:
    source = node.types[number] if number < len(node.types) else None
    if isinstance(source, int):
        return source < len(node.inputs) and node.inputs[source] in texts
    if source is not None:
        return _is_text(source)
    if node.op in ("ZipMap", "Tokenizer"):
        return True
    if node.op == "Cast":
        return node.attributes.get("to") == STRING.code
    if node.op == "CategoryMapper" or (node.op == "LabelEncoder" and "classes_strings" in node.attributes):
        return node.inputs[0] not in texts
    values = [node.attributes.get(name) for name in ("values_tensor", "value")]
    tensors = [value for value in values if isinstance(value, TensorAttribute)]
    written = any(name in node.attributes for name in ("values_strings", "value_string", "value_strings"))
    return written or any(_is_text(value.element) for value in tensors)


# ---- which part computes what


class _Levels:
    """The part of each node and value."""

    def __init__(self, graph: OnnxGraph, texts: Collection[str]):
        self._graph, self._texts = graph, texts
        self._makers = {name: i for i, node in enumerate(graph.nodes) for name in node.outputs if name != ABSENT}
        self._ends = self._ending()
        self.of_nodes = [PROGRAM] * len(graph.nodes)
        for i in range(len(graph.nodes)):
            self.of_nodes[i] = self._level(i)

    def of_value(self, name: str) -> int:
        """Return the part that computes a value. Inputs and constants are there before."""
        return self.of_nodes[self._makers[name]] if name in self._makers else BEFORE

    def _touches_text(self, node: OnnxNode) -> bool:
        return any(name in self._texts for name in (*_reads(node), *node.outputs))

    def _level(self, number: int) -> int:
        node = self._graph.nodes[number]
        latest = max(map(self.of_value, _reads(node)), default=BEFORE)
        if not self._touches_text(node):
            return max(latest, PROGRAM)
        if latest == PROGRAM:
            moved = set() if self._ends[number] else self._movable(node)
            for i in moved or ():
                self.of_nodes[i] = BEFORE
            return BEFORE if moved else AFTER
        return latest

    def _movable(self, node: OnnxNode) -> set[int] | None:
        """Return the nodes of the program that a text depends on, or None where one of them computes."""
        found: set[int] = set()
        stack = list(_reads(node))
        while stack:
            name = stack.pop()
            if self.of_value(name) == PROGRAM and self._makers[name] not in found:
                maker = self._graph.nodes[self._makers[name]]
                if maker.op not in _MOVES:
                    return None
                found.add(self._makers[name])
                stack += _reads(maker)
        return found

    def _ending(self) -> list[bool]:
        """Return for each node whether only texts and maps are computed from it."""
        ends = [True] * len(self._graph.nodes)
        readers: dict[str, list[int]] = {}
        for i, node in enumerate(self._graph.nodes):
            for name in _reads(node):
                readers.setdefault(name, []).append(i)
        for i in reversed(range(len(ends))):
            outputs = [name for name in self._graph.nodes[i].outputs if name != ABSENT]
            ends[i] = all(o in self._texts and all(ends[r] for r in readers.get(o, ())) for o in outputs)
        return ends
