"""What a picture shows: boxes and lines, and nested groups of boxes, one for each call of a module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

FLOW, SOURCE, SINK = "flow", "source", "sink"
"""How a box finds its group: by its path, with the first box that reads it, with the box that it reads."""
_MOST_TYPES = 2
"""Most types that stand on a group."""


@dataclass(frozen=True)
class Box:
    """One node."""

    title: str
    detail: str = ""
    """A second line."""
    kind: str = "op"
    """Decides the colour: one of ``graphc.pages.svg.COLOURS``."""
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

    kind: str = ""
    """The class of the module, where it is known."""
    leaves: str = ""
    """Types of what others read of it."""

    @property
    def title(self) -> str:
        """What stands on it: its name, the class of its module, and the types of what leaves it."""
        name = f"{self.label}: {self.kind}" if self.kind else self.label
        return f"{name} → {self.leaves}" if self.leaves else name

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

    def __init__(self, kinds: Mapping[str, str] = MappingProxyType({})) -> None:
        """``kinds`` are the classes of modules by path."""
        self._kinds = kinds
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
        _note_types(whole)
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
                inside = path[: len(present.path) + 1]
                child = Group(label, inside, present, kind=self._kinds.get(".".join(inside), ""))
                present.members.append(child)
                present = child
            present.members.append(number)
            homes[number] = present


def _note_types(diagram: Diagram) -> None:
    """Tells every group the types of what boxes outside of it read."""
    found: dict[Group, dict[int, None]] = {}
    for source, target in diagram.lines:
        around = set(_around(diagram.homes[target]))
        for group in _around(diagram.homes[source]):
            if group not in around:
                found.setdefault(group, {})[source] = None
    for group, boxes in found.items():
        details = [diagram.boxes[i].detail for i in boxes if diagram.boxes[i].detail]
        group.leaves = ", ".join(details[:_MOST_TYPES]) + (", …" if len(details) > _MOST_TYPES else "")


def _around(group: Group | None) -> Iterator[Group]:
    while group is not None and group.parent is not None:
        yield group
        group = group.parent


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
            tip, count = ".".join(group.path), f"{diagram.count(group)} nodes"
            detail = group.leaves or count
            builder_boxes.append(Box(_closed_title(group), detail, "module", f"{tip}: {count}"))
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


def _closed_title(group: Group) -> str:
    return f"{group.label}: {group.kind}" if group.kind else group.label


def _inside(group: Group) -> list[int]:
    open_, found = [group], []
    for present in open_:
        open_.extend(m for m in present.members if isinstance(m, Group))
        found.extend(m for m in present.members if isinstance(m, int))
    return found
