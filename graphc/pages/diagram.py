"""Diagrams: boxes, lines, and nested groups of boxes, one group for each call of a module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from types import MappingProxyType

from graphc.base.records import dataclass

FLOW, SOURCE, SINK = "flow", "source", "sink"
"""Placement of a box: in the group of its path, of the first box that reads it, or of the box that it reads."""
_MOST_TYPES = 2
"""Largest number of types in the title of a group."""


@dataclass(frozen=True)
class Box:
    """Box of one node."""

    title: str
    detail: str = ""
    """Second line."""
    kind: str = "op"
    """Kind, which selects the colour: a key of ``graphc.pages.svg.COLOURS``."""
    tip: str = ""
    """Tooltip."""


@dataclass(eq=False)
class BoxGroup:
    """Group of boxes and inner groups."""

    label: str
    path: tuple[str, ...]
    parent: BoxGroup | None = None
    members: list[int | BoxGroup] = field(default_factory=list)
    """Indices of boxes, and groups, in order."""

    kind: str = ""
    """Class of the module, if known."""
    leaves: str = ""
    """Types of the values that boxes outside of it read."""

    @property
    def title(self) -> str:
        """Label with the group's name, the class of its module, and the types of values that leave it."""
        name = f"{self.label}: {self.kind}" if self.kind else self.label
        return f"{name} → {self.leaves}" if self.leaves else name

    @property
    def depth(self) -> int:
        """Number of groups around it."""
        return 0 if self.parent is None else self.parent.depth + 1


@dataclass
class Diagram:
    """Boxes, lines between them, and the tree of groups."""

    boxes: list[Box]
    lines: list[tuple[int, int]]
    """(from, to), each pair once."""
    root: BoxGroup
    homes: list[BoxGroup]
    """Group of each box."""

    def groups(self) -> list[BoxGroup]:
        """Return all groups, each before the groups inside it."""
        ordered = [self.root]
        for group in ordered:
            ordered.extend(m for m in group.members if isinstance(m, BoxGroup))
        return ordered

    def count(self, group: BoxGroup) -> int:
        """Return the number of boxes in a group and the groups inside it."""
        pending, count = [group], 0
        for current in pending:
            pending.extend(m for m in current.members if isinstance(m, BoxGroup))
            count += sum(isinstance(m, int) for m in current.members)
        return count


class Builder:
    """Collector of boxes and lines. Add each box after its operands.

    Consecutive boxes of FLOW with a common path form a group. Two calls of a module therefore give two groups, and
    groups never form a cycle.
    """

    def __init__(self, kinds: Mapping[str, str] = MappingProxyType({})) -> None:
        """``kinds`` are the classes of modules by path."""
        self._kinds = kinds
        self._boxes: list[Box] = []
        self._paths: list[tuple[str, ...]] = []
        self._placements: list[str] = []
        self._lines: dict[tuple[int, int], None] = {}

    def add(self, box: Box, path: tuple[str, ...] = (), placement: str = FLOW) -> int:
        """Add a box and return its index."""
        self._boxes.append(box)
        self._paths.append(path)
        self._placements.append(placement)
        return len(self._boxes) - 1

    def connect(self, source: int, target: int) -> None:
        """Add a line between boxes."""
        self._lines[source, target] = None

    def finish(self, depth: int | None = None) -> Diagram:
        """Return the diagram; with ``depth``, groups at that depth become one box each."""
        root = BoxGroup("", ())
        homes: list[BoxGroup | None] = [None] * len(self._boxes)
        self._place_flow(root, homes)
        lines = list(self._lines)
        for source, target in lines:
            if self._placements[target] == SINK and homes[target] is None:
                homes[target] = homes[source]
        for source, target in sorted(lines, key=lambda line: line[1]):
            if self._placements[source] == SOURCE and homes[source] is None:
                homes[source] = homes[target]
        resolved = [root if home is None else home for home in homes]
        for number, home in enumerate(resolved):
            if self._placements[number] != FLOW:
                home.members.append(number)
        diagram = Diagram(self._boxes, lines, root, resolved)
        _note_types(diagram)
        return diagram if depth is None else _collapse(diagram, depth)

    def _place_flow(self, root: BoxGroup, homes: list[BoxGroup | None]) -> None:
        current = root
        for number, path in enumerate(self._paths):
            if self._placements[number] != FLOW:
                continue
            while current.parent is not None and path[: len(current.path)] != current.path:
                current = current.parent
            while len(current.path) < len(path):
                name = path[len(current.path)]
                label = f"{current.label}.{name}" if name.isdigit() and current.label else name
                prefix = path[: len(current.path) + 1]
                child = BoxGroup(label, prefix, current, kind=self._kinds.get(".".join(prefix), ""))
                current.members.append(child)
                current = child
            current.members.append(number)
            homes[number] = current


def _note_types(diagram: Diagram) -> None:
    """Set ``leaves`` of every group."""
    outgoing: dict[BoxGroup, dict[int, None]] = {}
    for source, target in diagram.lines:
        enclosing = set(_around(diagram.homes[target]))
        for group in _around(diagram.homes[source]):
            if group not in enclosing:
                outgoing.setdefault(group, {})[source] = None
    for group, boxes in outgoing.items():
        details = [diagram.boxes[i].detail for i in boxes if diagram.boxes[i].detail]
        group.leaves = ", ".join(details[:_MOST_TYPES]) + (", …" if len(details) > _MOST_TYPES else "")


def _around(group: BoxGroup | None) -> Iterator[BoxGroup]:
    while group is not None and group.parent is not None:
        yield group
        group = group.parent


def _collapse(diagram: Diagram, depth: int) -> Diagram:
    """Return the diagram with every group at that depth as one box."""
    builder_boxes: list[Box] = []
    numbers: dict[int, int] = {}
    homes: list[BoxGroup] = []
    for group in diagram.groups():
        if group.depth > depth:
            continue
        if group.depth == depth and group.parent is not None:
            numbers.update(dict.fromkeys(_inside(group), len(builder_boxes)))
            group.parent.members[group.parent.members.index(group)] = len(builder_boxes)
            tip, count = ".".join(group.path), f"{diagram.count(group)} nodes"
            detail = group.leaves or count
            builder_boxes.append(Box(_closed_title(group), detail, "module", f"{tip}: {count}"))
            homes.append(group.parent)
            continue
        for position, member in enumerate(group.members):
            if isinstance(member, int):
                numbers[member] = len(builder_boxes)
                group.members[position] = len(builder_boxes)
                builder_boxes.append(diagram.boxes[member])
                homes.append(group)
    ends = ((numbers[a], numbers[b]) for a, b in diagram.lines)
    lines = list(dict.fromkeys((a, b) for a, b in ends if a != b))
    return Diagram(builder_boxes, lines, diagram.root, homes)


def _closed_title(group: BoxGroup) -> str:
    return f"{group.label}: {group.kind}" if group.kind else group.label


def _inside(group: BoxGroup) -> list[int]:
    pending, boxes = [group], []
    for current in pending:
        pending.extend(m for m in current.members if isinstance(m, BoxGroup))
        boxes.extend(m for m in current.members if isinstance(m, int))
    return boxes
