"""Text of a fusion plan: the graph, its groups, and the reasons against merging more; it parses back."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from graphc.base.errors import ParseError
from graphc.base.sizes.named_dims import parse_size
from graphc.fusion.partition import Group
from graphc.fusion.vertical import FusionPlan, Reason, Refusal
from graphc.ir.graph.graph import Graph, Node
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import print_graph

_HEAD = "plan {"
_GROUP = re.compile(r"(\w+) \[((?:`[^`]*`|[^]`])*)\](?: axes \[([\d,]*)\])?(?: divisions (\d+))?: (.*?)(?: -> (.*))?$")
_SIZE = re.compile(r"(?:`[^`]*`|[^,`])+")
_REFUSAL = re.compile(r"not (%\S+) in (%\S+): (\w+)")


def print_plan(plan: FusionPlan) -> str:
    r"""Return the text of a plan: the graph, then one line per group: its kind, its domain, reduced axes, the nodes by
    their first results, and the stored values. ``offset`` names views whose operands are computed at their place, and
    ``not %value in %reader: REASON`` says why a value is stored instead of computed in its reader.

    Example:
        >>> import graphc as gc
        >>> from graphc.compiler.stages import Stages
        >>> text = Stages(gc.trace(lambda x: (x * 2).sum(), gc.zeros(3))).text("fused")
        >>> text.partition("plan {")[2].strip("\n }")
        'row [3] axes [0]: %mul %sum -> %sum'
    """
    lines = [print_graph(plan.graph).rstrip("\n"), "", _HEAD]
    lines += [f"  {_print_group(group)}" for group in plan.groups]
    laid_out = sorted(_name(node) for node in plan.laid_out)
    lines += [f"  offset {' '.join(laid_out)}"] if laid_out else []
    lines += [f"  not %{r.value.name} in {_name(r.reader)}: {r.reason.name}" for r in plan.refusals]
    return "\n".join([*lines, "}"]) + "\n"


def _name(node: Node) -> str:
    return f"%{node.results[0].name}"


def _print_group(group: Group) -> str:
    axes = f" axes [{','.join(map(str, group.axes))}]" if group.axes else ""
    divisions = f" divisions {group.divisions}" if group.divisions else ""
    stored = f" -> {' '.join(f'%{v.name}' for v in group.outputs)}" if group.outputs else ""
    domain = f"{group.kind} [{', '.join(map(str, group.shape))}]"
    return f"{domain}{axes}{divisions}: {' '.join(map(_name, group.nodes))}{stored}"


def parse_plan(text: str, data: Mapping[str, np.ndarray] | None = None) -> FusionPlan:
    """Parse the text of ``print_plan``. ``data`` contains the arrays that the graph names by digest.

    Raises ParseError for a line of another form and for names that the graph does not define.
    """
    graph_text, _, rest = text.rpartition(f"\n{_HEAD}\n")
    graph = parse_graph(graph_text, data)
    reader = _PlanReader(graph)
    for line in rest.rstrip().removesuffix("}").splitlines():
        if line.strip():
            reader.read(line.strip())
    stored = frozenset(value for group in reader.groups for value in group.outputs)
    return FusionPlan(graph, tuple(reader.groups), stored, tuple(reader.refusals), frozenset(reader.laid_out))


class _PlanReader:
    """Reader of the lines of a plan."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.values = {f"%{value.name}": value for node in graph.nodes() for value in node.results}
        self.groups: list[Group] = []
        self.refusals: list[Refusal] = []
        self.laid_out: list[Node] = []

    def read(self, line: str) -> None:
        """Read one line."""
        try:
            if line.startswith("offset "):
                self.laid_out += [self.values[name].node for name in line.split()[1:]]
            elif refused := _REFUSAL.fullmatch(line):
                value, reader, reason = refused.groups()
                self.refusals.append(Refusal(self.values[value], self.values[reader].node, Reason[reason]))
            elif group := _GROUP.fullmatch(line):
                self.groups.append(self._group(*group.groups()))
            else:
                raise ParseError(f"{line!r} is not a line of a plan")
        except KeyError as error:
            raise ParseError(f"{line!r}: the graph has no value {error.args[0]}") from None

    def _group(self, kind: str, shape: str, axes: str | None, divisions: str | None, nodes: str, stored: str) -> Group:
        extents = tuple(parse_size(size.strip(), self.graph.dims) for size in _SIZE.findall(shape))
        reduced = tuple(map(int, axes.split(","))) if axes else ()
        members = [self.values[name].node for name in nodes.split()]
        outputs = [self.values[name] for name in (stored or "").split()]
        return Group(members, kind, extents, reduced, outputs, int(divisions or 0))
