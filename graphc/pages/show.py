"""Pictures of traced graphs and autograd graphs, as SVG or as an HTML page."""

from __future__ import annotations

import bisect
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphc.autograd.record import OpNode
from graphc.base.errors import ArgumentError
from graphc.files.container import replacing
from graphc.ir.graph.graph import Graph
from graphc.pages import diagram_page as page
from graphc.pages import svg
from graphc.pages.diagram import SOURCE, Box, Builder, Diagram
from graphc.pages.from_graph import class_names, graph_diagram, kind_of
from graphc.tape.node import AccumulateGrad, Node
from graphc.tensors.tensor import Tensor


def autograd_diagram(results: Iterable[Tensor], module: Any = None, depth: int | None = None) -> Diagram:
    """Return the diagram of the operations that computed ``results``.

    ``module`` gives names to its parameters, and groups operations by module: an operation that reads a parameter
    belongs to the parameter's module, and any other to the common module of its neighbours. Raises ArgumentError if no
    result has a ``grad_fn``.
    """
    results = list(results)
    roots = [t.grad_fn for t in results if t.grad_fn is not None]
    if not roots:
        raise ArgumentError(
            "the tensor has no autograd graph: it was not computed from one that requires gradients",
            remedy="compute it outside of no_grad(), or draw the graph of the whole model with graphc.trace",
        )
    nodes = _nodes(roots)
    names = {id(p): name for name, p in module.named_parameters()} if module is not None else {}
    paths = _paths(nodes, names)
    builder = Builder(class_names(module))
    numbers: dict[Node, int] = {}
    for node in nodes:
        leaf = isinstance(node, AccumulateGrad)
        numbers[node] = builder.add(_box(node, names), paths[node], SOURCE if leaf else "flow")
    for node in nodes:
        for edge in node.edges:
            if edge is not None:
                builder.connect(numbers[edge[0]], numbers[node])
    for i, tensor in enumerate(results):
        if tensor.grad_fn is None:
            continue
        title = "result" if len(results) == 1 else f"result {i}"
        number = builder.add(Box(title, _type(tensor.dtype, tensor.shape), "output"))
        builder.connect(numbers[tensor.grad_fn], number)
    return builder.finish(depth)


def _nodes(roots: Iterable[Node]) -> list[Node]:
    """Return all nodes, leaves first and then in the order of recording."""
    nodes = dict.fromkeys(roots)
    pending = list(nodes)
    while pending:
        for edge in pending.pop().edges:
            if edge is not None and edge[0] not in nodes:
                nodes[edge[0]] = None
                pending.append(edge[0])
    return sorted(nodes, key=lambda node: (not isinstance(node, AccumulateGrad), node.sequence))


def _paths(nodes: list[Node], names: dict[int, str]) -> dict[Node, tuple[str, ...]]:
    """Return the module path of each node.

    It is known for operations that read a parameter or a value derived from parameters alone. Others get the common
    path of the operations before and after them.
    """
    timeline: list[tuple[int, tuple[str, ...]]] = []
    derived: dict[Node, str] = {}
    for node in nodes:
        readers = [edge[0] for edge in node.edges if edge]
        owners = [derived.get(n) or _name_of(n, names) for n in readers]
        if any(owners):
            owner = next(filter(None, owners))
            timeline.append((node.sequence, tuple(owner.split(".")[:-1])))
            if all(owners) and len(owners) == len(node.edges):
                derived[node] = owner
    times = [time for time, _ in timeline]
    paths: dict[Node, tuple[str, ...]] = {}
    for node in nodes:
        after = bisect.bisect_left(times, node.sequence)
        if after < len(times) and times[after] == node.sequence:
            paths[node] = timeline[after][1]
        elif 0 < after < len(times):
            paths[node] = _common(timeline[after - 1][1], timeline[after][1])
        else:
            paths[node] = ()
    return paths


def _name_of(node: Node, names: dict[int, str]) -> str:
    """Return the name of the parameter whose gradient the node accumulates, or an empty string."""
    return names.get(id(node.variable), "") if isinstance(node, AccumulateGrad) else ""


def _common(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    length = 0
    while length < min(len(a), len(b)) and a[length] == b[length]:
        length += 1
    return a[:length]


def _box(node: Node, names: dict[int, str]) -> Box:
    if isinstance(node, AccumulateGrad):
        variable = node.variable
        name = names.get(id(variable), "leaf")
        kind = "param" if name != "leaf" else "input"
        return Box(name, _type(variable.dtype, variable.shape), kind, f"{type(variable).__name__} {name}")
    name = node.name()
    if not isinstance(node, OpNode):
        return Box(name, "", "op", name)
    detail = ", ".join(_type(r.dtype, r.shape) for r in node.results)
    attrs = "\n".join(f"{key} = {value}" for key, value in node.attrs.items())
    return Box(name.removesuffix("Backward"), detail, kind_of(node.op), f"{name}\n{attrs}".strip())


def _type(dtype: Any, shape: Iterable[int]) -> str:
    return f"{dtype.name}[{','.join(map(str, shape))}]"


def diagram_of(target: Any, module: Any = None, depth: int | None = None) -> Diagram:
    """Return the diagram of a Graph, or of the autograd graph of a tensor or of several in a tuple or list.

    ``module`` gives names to the parameters of an autograd graph, and classes to modules; with ``depth``, groups at
    that depth become one box each. Raises ArgumentError for other targets, and for tensors without an autograd graph.
    """
    if depth is not None and not (isinstance(depth, int) and depth >= 1):
        raise ArgumentError(f"depth is a whole number, at least 1, got {depth!r}")
    module = getattr(module, "_target", module)
    if module is not None and not callable(getattr(module, "named_modules", None)):
        raise ArgumentError(f"module must be the Module of the picture, got {type(module).__name__}")
    if isinstance(target, Graph):
        return graph_diagram(target, depth, module)
    tensors = [target] if isinstance(target, Tensor) else target
    if isinstance(tensors, list | tuple) and tensors and all(isinstance(t, Tensor) for t in tensors):
        return autograd_diagram(tensors, module, depth)
    raise ArgumentError(
        f"a picture shows a Graph or the autograd graph of tensors, got {type(target).__name__}",
        remedy=f"call picture({_graph_of(target)}, path, module=model)",
    )


def _graph_of(target: Any) -> str:
    """Return the expression for the graph of an object of another class."""
    if hasattr(target, "graphs"):
        return "step.graphs[0]"
    return "function.variants[0].traced.graph" if hasattr(target, "variants") else "graphc.trace(model, x)"


def picture(
    target: Any, path: str | os.PathLike[str] | None = None, *, module: Any = None, depth: int | None = None
) -> str:
    """Draw a traced Graph, or the autograd graph of a tensor (or several), and write it to ``path``, atomically.

    An ``.svg`` file is a static drawing. An ``.html`` page has groups that open and close, and needs no network. The
    text of the file is returned; without ``path`` it is an SVG. See ``diagram_of`` for the other arguments. Raises
    ArgumentError; OSError.

    Example:
        >>> import graphc as gc
        >>> from graphc.pages.show import picture
        >>> svg = picture(gc.trace(lambda x: x * 2, gc.zeros(3)), "graph.svg")
        >>> svg[:4]
        '<svg'
    """
    suffix = ".svg" if path is None else Path(path).suffix
    if suffix not in (".svg", ".html"):
        raise ArgumentError(
            f"{os.fspath(path or '')}: there is no picture of kind {suffix!r}", remedy="use .svg or .html"
        )
    diagram = diagram_of(target, module, depth)
    name = target.name if isinstance(target, Graph) else "autograd graph"
    text = svg.draw(diagram) if suffix == ".svg" else page.page(diagram, name)
    if path is not None:
        with replacing(path) as file:
            file.write(text.encode())
    return text


def notebook(graph: Graph) -> str:
    """Return the HTML that notebooks show for a Graph: the picture, and its text."""
    text = str(graph)
    name = "graphc-" + hashlib.sha256(text.encode()).hexdigest()[:12]
    plain = text.replace("&", "&amp;").replace("<", "&lt;")
    return f"{page.fragment(graph_diagram(graph), name)}<details><summary>text</summary><pre>{plain}</pre></details>"
