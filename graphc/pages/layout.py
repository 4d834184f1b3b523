"""Layered layout of nested groups: the rank of each box, the order within ranks, and positions.

Groups are laid out inside out, and then count as one wide item (Sugiyama, Tagawa, Toda, Methods for Visual
Understanding of Hierarchical System Structures, 1981). A line crosses the border of a group at a port. Lines from one
box share their ports and bends. ``layout.js`` computes the same in a browser; a test compares both.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from graphc.base.records import dataclass
from graphc.pages.diagram import TITLE_SIZE, BoxGroup, Diagram
from graphc.pages.text_size import text_width

GAP = 20.0
"""Distance between items of a rank."""
PADDING = 16.0
HEADER = 30.0
"""Height of the title of a group."""
FOOTER = 14.0
RANK = 26.0
"""Distance between ranks."""
BEND = 4.0
"""Width of a port or bend."""
_SWEEPS = 8
_Key = tuple[str, Any]


@dataclass
class Element:
    """Item of a rank: a box or group, or a port or bend of a line."""

    rank: int
    width: float
    item: int | BoxGroup | None = None
    """Box, group, or None for ports and bends."""
    x: float = 0.0
    """Position of its center, from the left border of its group."""


@dataclass(frozen=True)
class Segment:
    """Piece of a line between elements of adjacent ranks."""

    start: int
    end: int
    out: float
    """Horizontal offset of its start from the center of the start element."""
    into: float
    """Horizontal offset of its end from the center of the end element."""


@dataclass
class Level:
    """Layout of a group's inside. Rank 0 holds the ports of incoming lines, the last rank the ports of outgoing
    lines."""

    elements: list[Element] = field(default_factory=list)
    ranks: list[list[int]] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    entries: dict[int, int] = field(default_factory=dict)
    """Port by the box that the incoming line starts at."""
    exits: dict[int, int] = field(default_factory=dict)
    """Port by the box that the outgoing line starts at."""
    width: float = 0.0
    tops: list[float] = field(default_factory=list)
    """Upper border of each rank, from the upper border of the group."""
    heights: list[float] = field(default_factory=list)
    """Height of each rank."""
    height: float = 0.0


def arrange(diagram: Diagram) -> dict[BoxGroup, Level]:
    """Return the layout of every group."""
    edges = _edges_by_group(diagram)
    levels: dict[BoxGroup, Level] = {}
    for group in reversed(diagram.groups):
        levels[group] = _Arrangement(diagram, group, edges[group], levels).build()
    return levels


def _edges_by_group(diagram: Diagram) -> dict[BoxGroup, dict[tuple[_Key, _Key, int], None]]:
    """Return for every group the edges between its members and ports, with the box that each line starts at."""
    edges: dict[BoxGroup, dict[tuple[_Key, _Key, int], None]] = {group: {} for group in diagram.groups}
    for source, target in diagram.lines:
        ups, downs = _chain(diagram.homes[source]), _chain(diagram.homes[target])
        shared = next(group for group in ups if group in downs)
        start: _Key = ("box", source)
        for group in ups[: ups.index(shared)]:
            edges[group][start, ("exit", source), source] = None
            start = ("group", group)
        end: _Key = ("box", target)
        for group in downs[: downs.index(shared)]:
            edges[group][("entry", source), end, source] = None
            end = ("group", group)
        edges[shared][start, end, source] = None
    return edges


def _chain(group: BoxGroup | None) -> list[BoxGroup]:
    chain = []
    while group is not None:
        chain.append(group)
        group = group.parent
    return chain


def item_height(item: int | BoxGroup, diagram: Diagram, levels: dict[BoxGroup, Level]) -> float:
    """Return the height of a box with its label, or of an open group."""
    return levels[item].height if isinstance(item, BoxGroup) else diagram.boxes[item].whole_height


class _Arrangement:
    """Builder of the layout of one group."""

    def __init__(
        self,
        diagram: Diagram,
        group: BoxGroup,
        edges: dict[tuple[_Key, _Key, int], None],
        levels: dict[BoxGroup, Level],
    ):
        self.diagram = diagram
        self.group = group
        self.edges = edges
        self.levels = levels
        self.level = Level()
        self.indices: dict[_Key, int] = {}

    def build(self) -> Level:
        """Return the finished layout."""
        ranks = self._rank()
        level = self.level
        level.ranks = [[] for _ in range(max(ranks.values(), default=0) + 1)]
        for key, rank in ranks.items():
            self.indices[key] = self._add(rank, *self._measure(key))
        level.entries = {k[1]: e for k, e in self.indices.items() if k[0] == "entry"}
        level.exits = {k[1]: e for k, e in self.indices.items() if k[0] == "exit"}
        self._connect()
        neighbours = self._neighbours()
        _order(level, neighbours)
        _spread(level, neighbours)
        border = min((e.x - e.width / 2 for e in level.elements), default=PADDING) - PADDING
        right = max((e.x + e.width / 2 for e in level.elements), default=border) + PADDING
        title = text_width(self.group.title, TITLE_SIZE, bold=True) + 50 if self.group.parent else 0.0
        level.width = max(right - border, title)
        shift = (level.width - (right - border)) / 2 - border
        for element in level.elements:
            element.x += shift
        self._stack()
        return level

    def _stack(self) -> None:
        """Set the heights of the group and its ranks."""
        level, y = self.level, 0.0
        for number, rank in enumerate(level.ranks):
            items = [level.elements[e].item for e in rank]
            height = max((item_height(i, self.diagram, self.levels) for i in items if i is not None), default=0.0)
            level.tops.append(y)
            level.heights.append(height)
            y += height
            if number < len(level.ranks) - 1:
                y += RANK if number else HEADER + 18 if self.group.parent else FOOTER
        level.height = y if level.exits else y + FOOTER

    def _add(self, rank: int, width: float, item: int | BoxGroup | None) -> int:
        self.level.elements.append(Element(rank, width, item))
        number = len(self.level.elements) - 1
        self.level.ranks[rank].append(number)
        return number

    def _measure(self, key: _Key) -> tuple[float, int | BoxGroup | None]:
        kind, what = key
        if kind == "box":
            return self.diagram.boxes[what].whole_width, what
        if kind == "group":
            return self.levels[what].width, what
        return BEND, None

    # ---- ranks

    def _rank(self) -> dict[_Key, int]:
        """Assign ranks by longest paths from above; move items without predecessors down to their first reader."""
        keys: list[_Key] = [("box", m) if isinstance(m, int) else ("group", m) for m in self.group.members]
        after: dict[_Key, list[_Key]] = {key: [] for key in keys}
        before: dict[_Key, int] = dict.fromkeys(keys, 0)
        ports: dict[_Key, None] = {}
        for start, end, _ in self.edges:
            is_inner = start[0] != "entry" and end[0] != "exit"
            ports.update({k: None for k in (start, end) if k[0] in ("entry", "exit")})
            if is_inner:
                after[start].append(end)
                before[end] += 1
        waiting = dict(before)
        ranks = dict.fromkeys(keys, 1)
        ready = [key for key in keys if not waiting[key]]
        for key in ready:
            for reader in after[key]:
                ranks[reader] = max(ranks[reader], ranks[key] + 1)
                waiting[reader] -= 1
                if not waiting[reader]:
                    ready.append(reader)
        entered = {end for start, end, _ in self.edges if start[0] == "entry"}
        last = max(ranks.values(), default=0) + 1
        leaving = {start for start, end, _ in self.edges if end[0] == "exit"}
        for key in reversed(ready):
            if not before[key] and key not in entered and (after[key] or key in leaving):
                ranks[key] = max(1, min((ranks[reader] for reader in after[key]), default=last) - 1)
        return {**ranks, **{port: 0 if port[0] == "entry" else last for port in ports}}

    # ---- lines

    def _connect(self) -> None:
        bends: dict[tuple[_Key, int, int], int] = {}
        done: set[tuple[int, int, int]] = set()
        for start, end, source in self.edges:
            current = self.indices[start]
            target = self.indices[end]
            for rank in range(self.level.elements[current].rank + 1, self.level.elements[target].rank):
                bend = bends.get((start, source, rank))
                if bend is None:
                    bend = bends[start, source, rank] = self._add(rank, BEND, None)
                self._segment(current, bend, source, done)
                current = bend
            self._segment(current, target, source, done)

    def _segment(self, start: int, end: int, source: int, done: set[tuple[int, int, int]]) -> None:
        if (start, end, source) in done:
            return
        done.add((start, end, source))
        self.level.segments.append(
            Segment(start, end, self._port(start, source, "exits"), self._port(end, source, "entries"))
        )

    def _port(self, number: int, source: int, side: str) -> float:
        """Return the horizontal offset from an element's center at which a line from ``source`` meets it."""
        item = self.level.elements[number].item
        if not isinstance(item, BoxGroup):
            return 0.0
        layout = self.levels[item]
        ports: dict[int, int] = getattr(layout, side)
        return layout.elements[ports[source]].x - layout.width / 2

    def _is_group(self, element: int) -> bool:
        return isinstance(self.level.elements[element].item, BoxGroup)

    def _neighbours(self) -> dict[int, tuple[list[tuple[int, float]], list[tuple[int, float]]]]:
        """Return for each element the ones above and below it, with the offset of the desired position from theirs.

        A group is aligned by its center, not by its ports: otherwise chains of groups would drift to one side.
        """
        neighbours: dict[int, tuple[list[tuple[int, float]], list[tuple[int, float]]]] = {
            i: ([], []) for i in range(len(self.level.elements))
        }
        for s in self.level.segments:
            neighbours[s.end][0].append((s.start, 0.0 if self._is_group(s.end) else s.out))
            neighbours[s.start][1].append((s.end, 0.0 if self._is_group(s.start) else s.into))
        return neighbours


_Neighbours = dict[int, tuple[list[tuple[int, float]], list[tuple[int, float]]]]


def _order(level: Level, neighbours: _Neighbours) -> None:
    """Sort ranks by the mean position of connected elements, downwards and upwards in turn."""
    positions = {e: float(i) for rank in level.ranks for i, e in enumerate(rank)}
    for sweep in range(_SWEEPS):
        side = sweep % 2
        ranks = level.ranks if side == 0 else level.ranks[::-1]
        for rank in ranks[1:]:
            means = {}
            for element in rank:
                near = neighbours[element][side]
                means[element] = sum(positions[n] for n, _ in near) / len(near) if near else positions[element]
            rank.sort(key=lambda element: (means[element], positions[element]))
            scale = max((len(r) for r in level.ranks), default=1) / max(len(rank), 1)
            positions.update({e: (i + 0.5) * scale for i, e in enumerate(rank)})


def _spread(level: Level, neighbours: _Neighbours) -> None:
    """Move elements towards connected ones, keeping order and distances."""
    for rank in level.ranks:
        x = 0.0
        for element in rank:
            x += level.elements[element].width / 2
            level.elements[element].x = x
            x += level.elements[element].width / 2 + GAP
    for sweep in range(2 * _SWEEPS):
        side = sweep % 2
        for rank in level.ranks if side == 0 else level.ranks[::-1]:
            desired, weights = [], []
            for element in rank:
                own = level.elements[element]
                targets = [level.elements[n].x + shift for n, shift in _aligned(level, own, neighbours[element], side)]
                desired.append(sum(targets) / len(targets) if targets else own.x)
                weights.append(1.0 if own.item is None else 8.0)
            for element, x in zip(rank, _fit(level, rank, desired, weights), strict=True):
                level.elements[element].x = x


def _aligned(
    level: Level, element: Element, neighbours: tuple[list[tuple[int, float]], list[tuple[int, float]]], side: int
) -> list[tuple[int, float]]:
    """Return the neighbours that an element is drawn to: one kind, so that chains of boxes and of bends stay straight.

    Boxes and ports are drawn to boxes, and bends to bends; where there is none on the one side, on the other.
    """
    to_boxes = element.item is not None or element.rank in (0, len(level.ranks) - 1)
    sides = (neighbours[side], neighbours[1 - side])
    alike = ([n for n in near if (level.elements[n[0]].item is not None) == to_boxes] for near in sides)
    return next((near for near in (*alike, *sides) if near), [])


def _fit(level: Level, rank: list[int], desired: list[float], weights: list[float]) -> list[float]:
    """Return the positions nearest to the desired ones (weighted least squares) that keep order and distances.

    Solved by pool-adjacent-violators.
    """
    offsets, offset = [], 0.0
    for i, element in enumerate(rank):
        if i:
            offset += (level.elements[rank[i - 1]].width + level.elements[element].width) / 2 + GAP
        offsets.append(offset)
    pools: list[list[float]] = []
    for want, weight, shift in zip(desired, weights, offsets, strict=True):
        pools.append([(want - shift) * weight, weight, 1])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            total, mass, count = pools.pop()
            pools[-1][0] += total
            pools[-1][1] += mass
            pools[-1][2] += count
    means = [total / mass for total, mass, count in pools for _ in range(int(count))]
    return [mean + shift for mean, shift in zip(means, offsets, strict=True)]
