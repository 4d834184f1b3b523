"""Pictures of traced graphs and of autograd graphs, as SVG or as a page."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.files.container import replacing
from graphc.ir.graph.graph import Graph
from graphc.pages import diagram_page as page
from graphc.pages import svg
from graphc.pages.diagram import Diagram
from graphc.pages.from_autograd import autograd_diagram
from graphc.pages.from_graph import graph_diagram
from graphc.tensors.tensor import Tensor


def diagram_of(target: Any, module: Any = None, depth: int | None = None) -> Diagram:
    """The diagram of a Graph, or of the autograd graph of a tensor or of several in a tuple or list.

    ``module`` names the parameters in an autograd graph, and the classes of modules in both; ``depth`` makes groups
    that deep one box each. Raises ArgumentError for anything else, and for tensors without an autograd graph.
    """
    if depth is not None and not (isinstance(depth, int) and depth >= 1):
        raise ArgumentError(f"depth is a whole number, at least 1, got {depth!r}")
    module = getattr(module, "_target", module)
    if module is not None and not callable(getattr(module, "named_modules", None)):
        raise ArgumentError(f"module is the Module that is drawn, got {type(module).__name__}")
    if isinstance(target, Graph):
        return graph_diagram(target, depth, module)
    tensors = [target] if isinstance(target, Tensor) else target
    if isinstance(tensors, list | tuple) and tensors and all(isinstance(t, Tensor) for t in tensors):
        return autograd_diagram(tensors, module, depth)
    raise ArgumentError(
        f"a picture shows a Graph or the autograd graph of tensors, got {type(target).__name__}",
        remedy=f"picture({_graph_of(target)}, path, module=model)",
    )


def _graph_of(target: Any) -> str:
    """Where the graph is of what has none by itself."""
    if hasattr(target, "graphs"):
        return "step.graphs[0]"
    return "function.variants[0].traced.graph" if hasattr(target, "variants") else "graphc.trace(model, x)"


def picture(
    target: Any, path: str | os.PathLike[str] | None = None, *, module: Any = None, depth: int | None = None
) -> str:
    """The picture of a traced Graph, or of what made a tensor (or several); also written to ``path``, atomically.

    An ``.svg`` is a plain drawing; an ``.html`` page has groups that open and close, and needs no network. Without a
    path the drawing is returned. See ``diagram_of`` for the other arguments. Raises ArgumentError; OSError.
    """
    suffix = ".svg" if path is None else Path(path).suffix
    if suffix not in (".svg", ".html"):
        raise ArgumentError(f"{os.fspath(path or '')}: there is no picture of kind {suffix!r}", remedy=".svg or .html")
    diagram = diagram_of(target, module, depth)
    name = target.name if isinstance(target, Graph) else "autograd graph"
    text = svg.draw(diagram) if suffix == ".svg" else page.page(diagram, name)
    if path is not None:
        with replacing(path) as file:
            file.write(text.encode())
    return text


def notebook(graph: Graph) -> str:
    """What a notebook shows for a Graph: the picture, and the text below it."""
    text = str(graph)
    name = "graphc-" + hashlib.sha256(text.encode()).hexdigest()[:12]
    plain = text.replace("&", "&amp;").replace("<", "&lt;")
    return f"{page.fragment(graph_diagram(graph), name)}<details><summary>text</summary><pre>{plain}</pre></details>"
