"""Pictures of traced graphs and autograd graphs, as SVG or as an HTML page."""

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
