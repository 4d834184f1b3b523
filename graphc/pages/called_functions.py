"""Names of functions that lines of user code call, such as ``relu``, for the nodes that the calls made."""

from __future__ import annotations

import functools
import linecache
import re
from collections import Counter
from itertools import groupby, takewhile

import graphc.nn.functional
from graphc.base.location import Location
from graphc.base.records import dataclass
from graphc.ir.graph.graph import CONSTANT, Graph, Node
from graphc.ir.op import OpDef, Trait
from graphc.passes.base import held_graphs
from graphc.tensors.tensor import Tensor

_CALL = re.compile(r"(?:(\w+)\s*)?(\.\s*)?\b([a-z_]\w*)\(")
"""A call: the name before the dot, the dot, and the name of the function."""
_OPERATOR = re.compile(r"(?<=[\w)\]]) (\*\*|//|[-+*/@]) ")
_OPS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floor_divide", "**": "pow", "@": "matmul"}
_WITH_BODIES = frozenset(
    {"scan", "map", "cond", "switch", "while_loop", "fori_loop", "associative_scan", "vmap", "checkpoint", "grad"}
)
"""Functions with function arguments, whose boxes show bodies."""


@dataclass(frozen=True)
class Called:
    """Function that a line calls."""

    name: str
    beside: frozenset[str]
    """Ops of other calls and of operators on the line."""

    def has(self, op: OpDef) -> bool:
        """Return whether a node of this op on the line belongs to the function."""
        return not (op.name in self.beside or op is CONSTANT)


def called_functions(graph: Graph) -> dict[Location, Called]:
    """Return by location the function whose call made several nodes of a graph in a row.

    Calls of one op, such as ``x.exp()`` or ``F.max_pool2d``, and views such as ``x.flatten()`` are shown by their own
    nodes and do not count. A line with several other calls has no entry, nor has one whose source is not readable, nor
    has the only line of a module: layers of graphc have no lines of their own, but the line that calls them.
    """
    nodes = [n for n in graph.nodes() if not (n.op is CONSTANT or (n.results and n.results[0].is_scalar_constant))]
    runs: dict[Location, list[list[Node]]] = {}
    for location, run in groupby(nodes, key=lambda n: n.location):
        runs.setdefault(location, []).append(list(run))
    lines = Counter(location.module for location in runs)
    found: dict[Location, Called] = {}
    for location, pieces in runs.items():
        if location.module and lines[location.module] == 1:
            continue
        ops = {n.op.name for run in pieces for n in run}
        calls = _called_on(location)
        names = {name: _plain(name) for name in calls if name not in _VIEWS}
        own = [name for name, plain in names.items() if plain not in ops]
        if len(own) != 1 or any(held_graphs(n) for run in pieces for n in run):
            continue
        beside = {_OPS[sign] for sign in _OPERATOR.findall(_line(location))}.union(names.values()) & ops
        if len(names) < len(calls):
            beside.update(*map(_outer_views, pieces))
        called = Called(own[0], frozenset(beside))
        flags = [own_nodes for run in pieces if any(own_nodes := [called.has(n.op) for n in run])]
        if flags and all(sum(run) > 1 and _is_contiguous(run) for run in flags):
            found[location] = called
    return found


def _outer_views(run: list[Node]) -> set[str]:
    """Return the ops of the views before the first and after the last other node of a run."""
    return {n.op.name for nodes in (run, run[::-1]) for n in takewhile(lambda n: n.op.has(Trait.VIEW), nodes)}


def _is_contiguous(flags: list[bool]) -> bool:
    return len(list(groupby(flags[flags.index(True) :]))) <= 2


def _plain(name: str) -> str:
    """Return ``max_pool`` for ``max_pool2d``."""
    return re.sub(r"\dd$", "", name)


def _called_on(location: Location) -> list[str]:
    """Return the functions of graphc and methods of tensors that a line of user code calls."""
    functions, methods = _names()
    names = {}
    for before, dot, name in _CALL.findall(_line(location)):
        known = before != "self" and name in (functions | methods if dot else functions)
        if known and name not in _WITH_BODIES:
            names[name] = None
    return list(names)


def _line(location: Location) -> str:
    return linecache.getline(location.file, location.line) if location.file else ""


@functools.cache
def _names() -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of functions and of methods of tensors."""
    functions = {name for name in dir(graphc.nn.functional) if callable(getattr(graphc.nn.functional, name))}
    methods = {name for name in dir(Tensor) if not name.startswith("_") and callable(getattr(Tensor, name, None))}
    return frozenset(functions), frozenset(methods)


_VIEWS = frozenset(
    [
        "chunk",
        "contiguous",
        "detach",
        "dim",
        "expand",
        "expand_as",
        "flatten",
        "float",
        "int",
        "item",
        "long",
        "movedim",
        "numel",
        "permute",
        "ravel",
        "reshape",
        "reshape_as",
        "size",
        "split",
        "squeeze",
        "swapaxes",
        "t",
        "to",
        "transpose",
        "type",
        "unbind",
        "unflatten",
        "unfold",
        "unsqueeze",
        "view",
        "view_as",
    ]
)
"""Methods that give views or sizes."""
