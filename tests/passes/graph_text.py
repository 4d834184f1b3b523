"""Graphs from indented text."""

from __future__ import annotations

import textwrap

from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph


def graph_of(text: str) -> Graph:
    """Parse a graph from indented text."""
    return parse_graph(textwrap.dedent(text).strip() + "\n")
