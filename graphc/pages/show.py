"""Pictures of traced graphs and autograd graphs, as SVG, PNG or HTML page."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.module_path import class_names
from graphc.files.container import replacing
from graphc.ir.graph.graph import Graph
from graphc.pages.autograd_data import autograd_records
from graphc.pages.diagram import build, first_open, page_nodes
from graphc.pages.graph_data import GraphCollector, Record
from graphc.pages.model_page import graph_page_data, page
from graphc.pages.png import png_of
from graphc.pages.svg import draw
from graphc.tensors.tensor import Tensor

SUFFIXES = (".svg", ".png", ".html")
"""Kinds of picture files."""


def picture(
    target: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    module: Any = None,
    depth: int | None = None,
    detail: bool = False,
) -> str:
    """Draw a traced Graph, or the autograd graph of a tensor (or several), and write it to ``path``, atomically.

    Each layer is one box: groups with modules inside are open, level by level while there is room.

    Args:
        target: a Graph, a tensor, or a tuple or list of tensors.
        path: an ``.svg`` file, which needs no script and follows the reader's light or dark scheme; a ``.png`` file
            (extra ``pictures``); or an ``.html`` page with groups that open and close, which needs no network.
        module: the Module of the picture, for the names of parameters in an autograd graph. The graph of a trace knows
            the classes of its modules.
        depth: draw modules at this nesting depth, at least 1, as one box each, and open all around them.
        detail: open all groups, so that every op has a box.

    Returns:
        Text of the page for ``.html``, else of the SVG.

    Raises:
        ArgumentError: the target has no graph, or an argument does not fit; OSError: ``path`` cannot be written.

    Example:
        >>> import graphc as gc
        >>> from graphc.pages.show import picture
        >>> svg = picture(gc.trace(lambda x: x * 2, gc.zeros(3)), "graph.svg")
        >>> svg[:4]
        '<svg'
    """
    suffix = ".svg" if path is None else Path(path).suffix
    if suffix not in SUFFIXES:
        raise ArgumentError(
            f"{os.fspath(path or '')}: there is no picture of kind {suffix!r}", remedy="use .svg, .png or .html"
        )
    if depth is not None and not (isinstance(depth, int) and depth >= 1):
        raise ArgumentError(f"depth is a whole number, at least 1, got {depth!r}")
    module = getattr(module, "_target", module)
    if module is not None and not callable(getattr(module, "named_modules", None)):
        raise ArgumentError(f"module must be the Module of the picture, got {type(module).__name__}")
    records, lines = _records(target, module)
    classes = {**(target.classes if isinstance(target, Graph) else {}), **class_names(module)}
    nodes = page_nodes(records)
    opened = first_open(nodes, depth, detail)
    if suffix == ".html":
        name = target.name if isinstance(target, Graph) else "autograd graph"
        text = page(graph_page_data(name, records, lines, classes, opened))
    else:
        text = draw(build(nodes, opened, classes))
    if path is not None:
        with replacing(path) as file:
            file.write(png_of(text) if suffix == ".png" else text.encode())
    return text


def _records(target: Any, module: Any) -> tuple[list[Record], dict[str, str]]:
    """Return the records of a target, and the lines of code that they name."""
    if isinstance(target, Graph):
        collector = GraphCollector()
        collector.add(target)
        return collector.records, collector.lines
    tensors = [target] if isinstance(target, Tensor) else target
    if isinstance(tensors, list | tuple) and tensors and all(isinstance(t, Tensor) for t in tensors):
        return autograd_records(tensors, module), {}
    raise ArgumentError(
        f"a picture shows a Graph or the autograd graph of tensors, got {type(target).__name__}",
        remedy=f"call picture({_graph_of(target)}, path, module=model)",
    )


def _graph_of(target: Any) -> str:
    """Return the expression for the graph of an object of another class."""
    if hasattr(target, "graphs"):
        return "step.graphs[0]"
    return "function.variants[0].traced.graph" if hasattr(target, "variants") else "graphc.trace(model, x)"


def notebook(graph: Graph) -> str:
    """Return the HTML that notebooks show for a Graph: the picture, all ops, and the text; it runs no script."""
    parts = {"ops": picture(graph, detail=True), "text": f"<pre>{escape(str(graph))}</pre>"}
    folded = "".join(f"<details><summary>{name}</summary>{part}</details>" for name, part in parts.items())
    return f'<div style="overflow:auto">{picture(graph)}{folded}</div>'
