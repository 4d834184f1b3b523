"""What a picture shows: boxes and lines, and nested groups of boxes, one for each call of a module."""

from __future__ import annotations

from dataclasses import dataclass, field

FLOW, SOURCE, SINK = "flow", "source", "sink"
"""How a box finds its group: by its path, with the first box that reads it, with the box that it reads."""


@dataclass(frozen=True)
class Box:
    """One node."""

    title: str
    detail: str = ""
    """A second line."""
    kind: str = "op"
    """Decides the colour: one of ``graphc.drawing.svg.COLOURS``."""
    tip: str = ""
    """More about it, shown under the pointer."""


@dataclass(eq=False)
class Group:
    """Boxes and groups that belong together."""

    label: str
    path: tuple[str, ...]
    parent: Group | None = None
    members: list[int | Group] = field(default_factory=list)
    """Numbers of boxes, and groups, in order."""

    @property
    def depth(self) -> int:
        """How many groups it is inside of."""
        return 0 if self.parent is None else self.parent.depth + 1


@dataclass
class Diagram:
    """Boxes, lines between them, and the tree of groups."""

    boxes: list[Box]
    lines: list[tuple[int, int]]
    """(from, to), each pair once."""
    root: Group
    homes: list[Group]
    """The group of each box."""

    def groups(self) -> list[Group]:
        """All groups, each before those inside of it."""
        found = [self.root]
        for group in found:
            found.extend(m for m in group.members if isinstance(m, Group))
        return found

    def count(self, group: Group) -> int:
        """How many boxes stand in a group and the groups inside of it."""
        open_, count = [group], 0
        for present in open_:
            open_.extend(m for m in present.members if isinstance(m, Group))
            count += sum(isinstance(m, int) for m in present.members)
        return count


class Builder:
    """Collects boxes and lines; boxes are added in an order in which each comes after those it reads.

    Boxes of FLOW with a common path form a group while they follow each other, so that a module which is called twice
    gives two groups, and groups never depend on each other in a circle.
    """

    def __init__(self) -> None:
        self._boxes: list[Box] = []
        self._paths: list[tuple[str, ...]] = []
        self._places: list[str] = []
        self._lines: dict[tuple[int, int], None] = {}

    def add(self, box: Box, path: tuple[str, ...] = (), place: str = FLOW) -> int:
        """Adds a box; returns its number."""
        self._boxes.append(box)
        self._paths.append(path)
        self._places.append(place)
        return len(self._boxes) - 1

    def connect(self, source: int, target: int) -> None:
        """Adds a line."""
        self._lines[source, target] = None

    def finish(self, depth: int | None = None) -> Diagram:
        """The diagram; with ``depth``, groups that deep become one box each."""
        root = Group("", ())
        homes: list[Group | None] = [None] * len(self._boxes)
        self._place_flow(root, homes)
        lines = list(self._lines)
        for source, target in lines:
            if self._places[target] == SINK and homes[target] is None:
                homes[target] = homes[source]
        for source, target in sorted(lines, key=lambda line: line[1]):
            if self._places[source] == SOURCE and homes[source] is None:
                homes[source] = homes[target]
        placed = [root if home is None else home for home in homes]
        for number, home in enumerate(placed):
            if self._places[number] != FLOW:
                home.members.append(number)
        whole = Diagram(self._boxes, lines, root, placed)
        return whole if depth is None else _collapse(whole, depth)

    def _place_flow(self, root: Group, homes: list[Group | None]) -> None:
        present = root
        for number, path in enumerate(self._paths):
            if self._places[number] != FLOW:
                continue
            while present.parent is not None and path[: len(present.path)] != present.path:
                present = present.parent
            while len(present.path) < len(path):
                part = path[len(present.path)]
                label = f"{present.label}.{part}" if part.isdigit() and present.label else part
                child = Group(label, path[: len(present.path) + 1], present)
                present.members.append(child)
                present = child
            present.members.append(number)
            homes[number] = present


def _collapse(diagram: Diagram, depth: int) -> Diagram:
    """The diagram with every group of that depth as one box."""
    builder_boxes: list[Box] = []
    numbers: dict[int, int] = {}
    homes: list[Group] = []
    for group in diagram.groups():
        if group.depth > depth:
            continue
        if group.depth == depth and group.parent is not None:
            numbers.update(dict.fromkeys(_inside(group), len(builder_boxes)))
            group.parent.members[group.parent.members.index(group)] = len(builder_boxes)
            tip = ".".join(group.path)
            builder_boxes.append(Box(group.label, f"{diagram.count(group)} nodes", "module", tip))
            homes.append(group.parent)
            continue
        for place, member in enumerate(group.members):
            if isinstance(member, int):
                numbers[member] = len(builder_boxes)
                group.members[place] = len(builder_boxes)
                builder_boxes.append(diagram.boxes[member])
                homes.append(group)
    ends = ((numbers[a], numbers[b]) for a, b in diagram.lines)
    lines = list(dict.fromkeys((a, b) for a, b in ends if a != b))
    return Diagram(builder_boxes, lines, diagram.root, homes)


def _inside(group: Group) -> list[int]:
    open_, found = [group], []
    for present in open_:
        open_.extend(m for m in present.members if isinstance(m, Group))
        found.extend(m for m in present.members if isinstance(m, int))
    return found
