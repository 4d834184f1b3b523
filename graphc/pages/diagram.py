"""Diagrams: boxes for nodes and closed groups, lines between them, and the tree of open groups around them.

``graph.js`` and ``draw.js`` do the same in a browser, where groups open and close; a test compares both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any

from graphc.base.records import dataclass
from graphc.pages.graph_data import Record
from graphc.pages.text_size import clip, last_name, literal_text, shape_text, text_width

ROOM = 60
"""Largest number of boxes that are visible at first."""
LABEL = 19.0
"""Height of the types below a box."""
TITLE_SIZE, TEXT_SIZE = 13.0, 11.0


@dataclass(eq=False)
class PageNode:
    """Node of a graph with its operands; weights are no nodes but belong to their readers."""

    record: Record
    reads: list[tuple[PageNode, str, str]] = field(default_factory=list)
    """Operands: the node, and the name and type of its result."""
    attached: list[Record] = field(default_factory=list)
    """Weights that it reads."""
    literals: list[str] = field(default_factory=list)

    @property
    def path(self) -> list[str]:
        """Groups around the node."""
        return self.record["path"]

    @property
    def modules(self) -> list[str]:
        """Modules around the node: groups that are neither functions nor loops."""
        return self.path[: len(self.path) - self.record.get("called", 0)]


@dataclass(eq=False)
class BoxGroup:
    """Group of nodes: a module, a function, a loop, or a piece of one."""

    key: str
    """Path, joined by slashes."""
    label: str = ""
    kind: str = ""
    """Class of the module, if known."""
    depth: int = 0
    piece: int = 1
    """Pieces of a group that other groups would make a circle with are counted from 1."""
    nodes: list[PageNode] = field(default_factory=list)
    parent: BoxGroup | None = None
    members: list[int | BoxGroup] = field(default_factory=list)
    """Indices of boxes, and open groups, in order."""

    @property
    def title(self) -> str:
        """Label with the class."""
        return f"{self.label}: {self.kind}" if self.kind else self.label


@dataclass(eq=False)
class Box:
    """Box of a node or of a closed group."""

    item: PageNode | BoxGroup
    title: str
    lines: list[str]
    """Lines below the title."""
    outs: dict[str, str] = field(default_factory=dict)
    """Types of the values that other boxes read, by name."""

    @property
    def kind(self) -> str:
        """Kind of the node, which selects the colour, or ``module``."""
        return "module" if isinstance(self.item, BoxGroup) else self.item.record["kind"]

    @property
    def label(self) -> str:
        """Types of the values that other boxes read."""
        types = list(dict.fromkeys(shape_text(t) for t in self.outs.values() if t))
        return f"{types[0]}, +{len(types) - 1}" if len(types) > 2 else ", ".join(types)

    @property
    def width(self) -> float:
        """Width of the box."""
        title = text_width(self.title, TITLE_SIZE, bold=True) + (22 if isinstance(self.item, BoxGroup) else 0)
        return max(title, 44.0, *(text_width(line, TEXT_SIZE) for line in self.lines)) + 24

    @property
    def height(self) -> float:
        """Height of the box."""
        return 28.0 + 15.0 * len(self.lines)

    @property
    def whole_width(self) -> float:
        """Width of the box and its label."""
        return max(self.width, text_width(self.label, TEXT_SIZE) + 10 if self.label else 0.0)

    @property
    def whole_height(self) -> float:
        """Height of the box and its label."""
        return self.height + (LABEL if self.label else 0.0)


@dataclass(eq=False)
class Diagram:
    """Boxes, lines between them, and the tree of open groups."""

    boxes: list[Box]
    homes: list[BoxGroup]
    """Group of each box."""
    groups: list[BoxGroup]
    """Open groups, each before the groups inside it; the first one is the whole diagram."""
    lines: list[tuple[int, int]]
    """(from, to), each pair once."""

    @property
    def root(self) -> BoxGroup:
        """Group around all others."""
        return self.groups[0]


def page_nodes(records: Sequence[Record]) -> list[PageNode]:
    """Return the nodes of a graph, in order, with their operands."""
    makers: dict[str, tuple[Record | PageNode, str]] = {}
    nodes: list[PageNode] = []
    for record in records:
        node = None if record.get("weights") else PageNode(record)
        nodes += [node] if node else []
        makers.update({name: (node or record, type_text) for name, type_text in record["results"]})
    for node in nodes:
        for name in node.record["operands"]:
            maker, type_text = makers.get(name, (None, ""))
            if maker is None:
                node.literals.append(name)
            elif isinstance(maker, PageNode):
                node.reads.append((maker, name, type_text))
            else:
                node.attached.append(maker)
    return nodes


def first_open(nodes: Sequence[PageNode], depth: int | None = None, detail: bool = False) -> list[str]:
    """Return the keys of the groups that are open at first.

    These are modules with modules inside, level by level while there is room, so that each layer is one box. With
    ``depth``, groups at that depth are closed and all around them are open; with ``detail``, all groups are open.
    """
    if detail or depth is not None:
        ends = (range(1, min(len(n.path), (depth or 1 << 30) - 1) + 1) for n in nodes)
        return list(dict.fromkeys("/".join(n.path[:d]) for n, own in zip(nodes, ends, strict=True) for d in own))
    opened: list[str] = []
    shown = len({tuple(n.path[:1]) or id(n) for n in nodes})
    for level in range(1, max((len(n.modules) for n in nodes), default=0)):
        outer = {tuple(n.modules[:level]) for n in nodes if len(n.modules) > level}
        if level > 1:
            outer = {path for path in outer if "/".join(path[:-1]) in opened}
        inner = [n for n in nodes if tuple(n.path[:level]) in outer]
        shown += len({tuple(n.path[: level + 1]) if len(n.path) > level else id(n) for n in inner}) - len(outer)
        if not outer or shown > ROOM:
            break
        opened += sorted("/".join(path) for path in outer)
    return opened


def build(
    nodes: Sequence[PageNode], opened: Collection[str], classes: Mapping[str, str] = MappingProxyType({})
) -> Diagram:
    """Return what is visible of a graph when these groups are open; ``classes`` are those of modules by path."""
    root = BoxGroup("", nodes=list(nodes))
    diagram = Diagram([], [], [root], [])
    box_of: dict[PageNode, int] = {}
    for current in diagram.groups:
        for member in _members(current.nodes, current.depth, classes):
            if isinstance(member, BoxGroup) and member.key in opened:
                member.parent = current
                current.members.append(member)
                diagram.groups.append(member)
                continue
            box_of.update(dict.fromkeys(member.nodes if isinstance(member, BoxGroup) else [member], len(diagram.boxes)))
            current.members.append(len(diagram.boxes))
            diagram.boxes.append(_group_box(member) if isinstance(member, BoxGroup) else _node_box(member))
            diagram.homes.append(current)
    lines: dict[tuple[int, int], None] = {}
    for node in nodes:
        for source, value, type_text in node.reads:
            ends = box_of[source], box_of[node]
            if ends[0] != ends[1]:
                lines[ends] = None
                diagram.boxes[ends[0]].outs[value] = type_text
    diagram.lines = list(lines)
    return diagram


def _members(nodes: list[PageNode], depth: int, classes: Mapping[str, str]) -> Iterator[PageNode | BoxGroup]:
    """Yield the nodes and groups at a depth. Groups that depend on each other in a circle are cut into pieces of
    consecutive nodes."""
    keys = ["/".join(n.path[: depth + 1]) if len(n.path) > depth else None for n in nodes]
    circular = _circular(nodes, [n if key is None else key for n, key in zip(nodes, keys, strict=True)])
    members: list[PageNode | BoxGroup] = []
    latest: dict[str, BoxGroup] = {}
    last: str | None = None
    for node, key in zip(nodes, keys, strict=True):
        if key is None:
            members.append(node)
        else:
            group = latest.get(key)
            if group is None or (key in circular and key != last):
                piece = 1 if group is None else group.piece + 1
                group = latest[key] = BoxGroup(
                    key, _label(key), classes.get(key.replace("/", "."), ""), depth + 1, piece
                )
                members.append(group)
            group.nodes.append(node)
        last = key
    return iter(members)


def _label(key: str) -> str:
    """Return the last component of a key; a number with the name before it."""
    parts = key.split("/")
    first = len(parts) - 1
    while first > 0 and parts[first].isdigit():
        first -= 1
    return ".".join(parts[first:])


def _circular(nodes: list[PageNode], items: list[Any]) -> set[Any]:
    """Return the items that are in a circle, or between two."""
    item_of = dict(zip(nodes, items, strict=True))
    after: dict[Any, set[Any]] = {item: set() for item in items}
    before: dict[Any, set[Any]] = {item: set() for item in items}
    for node, item in item_of.items():
        for source, _, _ in node.reads:
            other = item_of.get(source)
            if other is not None and other != item:
                after[other].add(item)
                before[item].add(other)
    left = set(after)
    for outs, ins in ((after, before), (before, after)):
        ready = [item for item in left if not ins[item] & left]
        while ready:
            item = ready.pop()
            if item in left:
                left.discard(item)
                ready += [reader for reader in outs[item] if reader in left and not ins[reader] & left]
    return left


def _node_box(node: PageNode) -> Box:
    record = node.record
    numbers = [text for text in map(literal_text, node.literals) if len(text) < 12]
    lines = _weights(node.attached)
    if record["kind"] == "input" and record["results"]:
        lines.append(clip(record["results"][0][1], 34))
    return Box(node, clip(" ".join([record["op"], *numbers]), 40), lines)


def _group_box(group: BoxGroup) -> Box:
    """Return the box of a closed group: the groups inside of it, or else its weights; ops if its class is unknown."""
    inner = dict.fromkeys(n.path[group.depth] for n in group.nodes if len(n.modules) > group.depth)
    weights = {w["key"]: w for n in group.nodes for w in n.attached if w["kind"] != "constant"}
    is_function = len(group.nodes[0].modules) < group.depth
    if inner or not (weights or group.kind or is_function):
        names = list(inner) or [n.record["op"] for n in group.nodes]
        text = ", ".join(f"{n} ×{names.count(n)}" if names.count(n) > 1 else n for n in dict.fromkeys(names))
        return Box(group, group.title, [text if len(text) < 34 else f"{len(group.nodes)} nodes"])
    return Box(group, group.title, _weights(sorted(weights.values(), key=_rank_of_weight)))


def _rank_of_weight(weight: Record) -> tuple[bool, bool]:
    """Sort params before buffers, and weights before biases."""
    return weight["kind"] != "param", not _weight_name(weight).startswith("weight")


def _weights(weights: list[Record]) -> list[str]:
    lines = [f"{clip(_weight_name(w), 22)}  {shape_text(w['results'][0][1])}" for w in weights[:2]]
    return [*lines, f"+{len(weights) - 2} more"] if len(weights) > 2 else lines


def _weight_name(weight: Record) -> str:
    return last_name(weight["key"] if weight["kind"] == "constant" else weight["op"])
