"""Rematerialization by minimum cuts: which values to keep until late readers, and which to compute again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from graphc.base.sizes.size import hint
from graphc.codegen.machine.roofline import Roofline
from graphc.fusion.price import weight
from graphc.ir.graph.graph import CONSTANT, INPUT, Node, Value
from graphc.ir.op import Trait
from graphc.passes.operand_access import is_virtual
from graphc.recompute.lifetimes import Lifetimes, Span, profile

_NEVER = 1e18
"""Capacity of an edge that no cut may go through."""
_SOME = 1e-3
"""Nanoseconds added to each node's price, so that a cut recomputes nothing without a gain."""


class CostWeight(NamedTuple):
    """The price of memory in a cut: how much time may be spent to free a byte."""

    nanoseconds: float
    """Nanoseconds of recomputation that freeing one byte is worth."""
    products: bool
    """True if products, windows and scans may run again, not only elementwise ops, reductions and generators."""


_MOST = 1e4
LEVELS = (
    *(CostWeight(x, False) for x in (0.05, 0.3, _MOST)),
    *(CostWeight(x, True) for x in (0.5, 2.0, 8.0, 32.0, 128.0, _MOST)),
)
"""Cost weights that a search tries, from recomputing only cheap values to recomputing everything."""


class Second(NamedTuple):
    """A recomputation: the nodes that run a second time."""

    again: frozenset[Node] = frozenset()
    kept: frozenset[Value] = frozenset()
    """Values of other segments that the recomputation reads. They are kept even if their nodes run again for others."""

    def holds(self, value: Value) -> bool:
        """Check whether a value is computed a second time."""
        return value.node in self.again and value not in self.kept


class Choice(NamedTuple):
    """A recomputation with its peak memory and its time."""

    second: Second
    peak: int
    """Peak bytes of temporaries."""
    nanoseconds: float
    """Estimated time of the recomputation."""


class Recomputation:
    """Search for recomputations: nodes up to the group ``until`` ("early") that run again for the groups after it
    ("late")."""

    def __init__(self, lifetimes: Lifetimes, until: int, roofline: Roofline, lanes: int = 16):
        self.lifetimes, self.until = lifetimes, until
        self.roofline, self.lanes = roofline, lanes
        graph, position = lifetimes.graph, lifetimes.place
        self.users: dict[Node, list[Node]] = {}
        for node in graph.nodes():
            for source in dict.fromkeys(v.node for v in node.operands):
                self.users.setdefault(source, []).append(node)
        self.order = [n for n in graph.nodes() if position[n] <= until]
        self.early = set(self.order)
        late = (n for n in graph.nodes() if position[n] > until)
        self.needed = {v for n in late for v in n.operands if v.node in self.early}
        """Values of early nodes that late nodes read."""
        self.views = {n for n in self.order if self._is_view(n)}
        """Early nodes that have no memory of their own."""
        self._sources_of: dict[Value, tuple[Value, ...]] = {}
        self.length = len(lifetimes.plan.groups)
        self._prices: dict[Node, float] = {}
        self._solved: dict[tuple[Any, ...], Second] = {}
        self._segments: dict[tuple[Any, ...], frozenset[Node]] = {}

    # ---- costs

    def price(self, node: Node) -> float:
        """Return the estimated nanoseconds of computing a node again."""
        if node not in self._prices:
            self._prices[node] = self._price(node)
        return self._prices[node]

    def _price(self, node: Node) -> float:
        if is_virtual(node):
            return 0.0
        size = max((hint(v.type.size) for v in (*node.results, *node.operands)), default=0)
        nbytes = sum(hint(v.type.nbytes) for v in (*node.results, *node.operands))
        operations = weight(node) * size
        if node.op.multiply_adds is not None:
            operand_types, result_types = (tuple(v.type for v in values) for values in (node.operands, node.results))
            operations = hint(node.op.multiply_adds(operand_types, result_types, node.attrs))
        if node.op.runs is not None:
            body, times = node.op.runs(node.attrs)
            return hint(times) * sum(self._price(n) for n in body.nodes())
        return self.roofline.time(operations / self.lanes, nbytes)

    def _is_view(self, node: Node) -> bool:
        stored = any(r in self.lifetimes.plan.stored for r in node.results)
        return is_virtual(node) and node.op is not CONSTANT and not stored and not node.op.has(Trait.STATE_WRITE)

    def _may_run_again(self, node: Node, products: bool) -> bool:
        if not node.op.has(Trait.PURE) or node.op.has(Trait.CHECK):
            return False
        cheap = is_virtual(node) or node.op.has_any(Trait.ELEMENTWISE | Trait.REDUCTION | Trait.GENERATOR)
        return cheap or products

    def _bytes(self, value: Value) -> float:
        """Return the bytes that keeping a value takes; 0 where it outlives the call anyway."""
        lasts = value in self.lifetimes.lasting or value.node.op.has(Trait.STATE_WRITE)
        return 0.0 if lasts else float(hint(value.type.nbytes))

    # ---- cuts

    def segmentations(self) -> list[tuple[int, ...]]:
        """Return several segmentations of the early groups, each as its borders, placed where few bytes are live.

        Values that cross a border are kept if they are needed at all, so that no recomputation reaches beyond it.
        """
        stored_bytes, live_bytes = self._stored_and_live()
        total = sum(stored_bytes)
        distinct: dict[tuple[int, ...], None] = {(): None}
        for count in (4, 10, 20):
            distinct[_thin_borders(stored_bytes, live_bytes, total / count)] = None
        return list(distinct)

    def _stored_and_live(self) -> tuple[list[int], list[int]]:
        """Return, for each early group, the stored bytes and the bytes live after it for later early groups."""
        stored_bytes, spans = [0] * (self.until + 1), []
        for value in self.lifetimes.plan.stored:
            size, first = self.lifetimes.nbytes(value), self.lifetimes.place[value.node]
            if not size or first > self.until:
                continue
            stored_bytes[first] += size
            last = max((r for r in self.lifetimes.readers.get(value, ()) if r <= self.until), default=first)
            if last > first:
                spans.append(Span(size, first, last - 1))
        return stored_bytes, profile(spans, self.until + 1)

    def choose(self, borders: tuple[int, ...], levels: Sequence[CostWeight | None]) -> Second:
        """Return the recomputation for one cost weight per segment, where None recomputes nothing."""
        again: set[Node] = set()
        demanded: set[Value] = set()
        for number in range(len(borders), -1, -1):
            level = levels[number]
            if level is None:
                continue
            more, leaves = self._cut(borders, number, level, demanded)
            again |= more
            demanded |= leaves
        return Second(frozenset(again), frozenset(demanded))

    def _cut(self, borders: tuple[int, ...], number: int, level: CostWeight, demanded: set[Value]) -> Second:
        """Return the recomputation of one segment, with its reads from other segments."""
        inside = self._segment(borders, number)
        key = (borders, number, level, frozenset(v for v in demanded if v.node in inside))
        if key not in self._solved:
            self._solved[key] = self._solve(inside, level, demanded)
        return self._solved[key]

    def _segment(self, borders: tuple[int, ...], number: int) -> frozenset[Node]:
        key = borders, number
        if key not in self._segments:
            position = self.lifetimes.place
            self._segments[key] = frozenset(n for n in self.order if bisect_left(borders, position[n]) == number)
        return self._segments[key]

    def _solve(self, inside: frozenset[Node], level: CostWeight, demanded: set[Value]) -> Second:
        targets = [v for n in self.order if n in inside for v in n.results if v in self.needed]
        edges, nodes = self._network(targets, inside, level, demanded)
        if not edges:
            return Second()
        nx = import_module("networkx")  # Imported only where a budget needs a cut: the import takes 0.1 s.
        cost, (_, late) = nx.minimum_cut(nx.DiGraph(edges), "available", "late")
        if cost >= _NEVER:
            return Second()
        again = {n for n in nodes if n in late}
        for node in self.order:  # views of recomputed values are recomputed, too
            if node in self.views and node in inside and any(v.node in again for v in node.operands):
                again.add(node)
        read = {s for n in again for v in n.operands for s in self._sources(v)}
        return Second(frozenset(again), frozenset(v for v in read if v.node not in inside))

    def _network(
        self, targets: Sequence[Value], inside: frozenset[Node], level: CostWeight, demanded: set[Value]
    ) -> tuple[list[tuple[object, object, dict[str, float]]], set[Node]]:
        """Return the edges of a flow network, and the nodes in it.

        The late side of a cut holds the nodes to recompute and the values that late nodes read. An edge between a node
        and its value has the cost of keeping that value as its capacity.
        """
        targets_read = list(dict.fromkeys(source for v in targets for source in self._sources(v)))
        edges: list[tuple[object, object, dict[str, float]]] = [(v, "late", {"capacity": _NEVER}) for v in targets_read]
        stack, visited, nodes = list(targets_read), set(targets_read), set[Node]()
        while stack:
            value = stack.pop()
            node = value.node
            keep_cost = 0.0 if value in demanded else min(_NEVER, self._bytes(value) * level.nanoseconds)
            if node not in inside or not self._may_run_again(node, level.products) or not keep_cost:
                edges.append(("available", value, {"capacity": keep_cost}))
                continue
            edges.append((node, value, {"capacity": keep_cost}))
            if node in nodes:
                continue
            nodes.add(node)
            edges.append(("available", node, {"capacity": self.price(node) + _SOME}))
            for source in dict.fromkeys(s for v in node.operands for s in self._sources(v)):
                edges.append((source, node, {"capacity": _NEVER}))
                if source not in visited:
                    visited.add(source)
                    stack.append(source)
        return edges, nodes

    def _sources(self, value: Value) -> tuple[Value, ...]:
        """Return the values to keep for reading ``value``: itself, or the sources of a view; none where it is available
        anyway (inputs, constants, late values)."""
        if value not in self._sources_of:
            node = value.node
            if node in self.views:
                sources = dict.fromkeys(s for v in node.operands for s in self._sources(v))
            else:
                sources = {} if node.op in (INPUT, CONSTANT) or node not in self.early else {value: None}
            self._sources_of[value] = tuple(sources)
        return self._sources_of[value]

    # ---- memory and time of a recomputation

    def kept_values(self, second: Second) -> list[Value]:
        """Return the values kept in memory for late nodes, or for the recomputation."""
        position = self.lifetimes.place
        late = [n for n in self.lifetimes.graph.nodes() if position[n] > self.until or n in second.again]
        read = {v for n in late for o in n.operands for v in self.lifetimes.behind(o)}
        values = [v for v in read if v.node in self.early and not second.holds(v) and self.lifetimes.nbytes(v)]
        return sorted(values, key=lambda v: (v.node.id, v.index))

    def spans(self, second: Second) -> list[Span]:
        """Return the live ranges of temporaries under a recomputation.

        Recomputed values are stored as they are now, except where a single late group reads them and computes them
        itself.
        """
        position, readers, until = self.lifetimes.place, self.lifetimes.readers, self.until
        need = self._needs(second)
        reads: dict[Value, list[int]] = {}
        for node in second.again:
            for operand in node.operands:
                if not second.holds(operand):
                    for value in self.lifetimes.behind(operand):
                        reads.setdefault(value, []).append(need[node])
        live_ranges = []
        for value in self.lifetimes.plan.stored:
            size, first = self.lifetimes.nbytes(value), position[value.node]
            groups = readers.get(value, ())
            if size and not second.holds(value):
                live_ranges.append(Span(size, first, max((first, *groups, *reads.get(value, ())))))
            elif size:
                early = [r for r in groups if r <= until]
                if early:
                    live_ranges.append(Span(size, first, max(early)))
                live_ranges += self._twice(value, size, need, second)
        return live_ranges

    def _needs(self, second: Second) -> dict[Node, int]:
        """Return the number of the group at which each recomputed node is needed first."""
        need: dict[Node, int] = {}
        for node in reversed(self.order):
            if node in second.again:
                users = self.users.get(node, ())
                late = [self.lifetimes.place[u] for u in users if self.lifetimes.place[u] > self.until]
                need[node] = min((*late, *(need[u] for u in users if u in need)), default=self.length - 1)
        return need

    def _twice(self, value: Value, size: int, need: dict[Node, int], second: Second) -> list[Span]:
        """Return the live range of a value's second computation; none where its only reader can compute it itself."""
        first, last, groups, stored = need[value.node], need[value.node], set[int](), False
        stack, visited = [value.node], {value.node}
        while stack:
            for user in self.users.get(stack.pop(), ()):
                if user in visited:
                    continue
                visited.add(user)
                group = need.get(user, self.lifetimes.place[user])
                if user not in need and group <= self.until:
                    continue
                if is_virtual(user) and not user.op.has(Trait.STATE_WRITE):
                    stack.append(user)
                    continue
                groups.add(group)
                last = max(last, group)
                stored = stored or user.op.has_any(Trait.CONTRACTION | Trait.MATERIALIZE) or user.op.lower is None
        elementwise = value.node.op.has(Trait.ELEMENTWISE)
        return [] if elementwise and not stored and len(groups) <= 1 else [Span(size, first, last)]

    def choice(self, second: Second) -> Choice:
        """Return a recomputation with its peak memory and its time."""
        peak = max(profile(self.spans(second), self.length), default=0)
        return Choice(second, peak, sum(map(self.price, second.again)))

    def choices(self, borders: tuple[int, ...]) -> list[Choice]:
        """Return recomputations for rising cost weights. Each step raises the weight of the segment that frees the most
        memory for the least time."""
        count = len(borders) + 1
        levels = [-1] * count
        upgrades = sorted(self._upgrades(borders), key=lambda u: u[0])
        results, tried = [], set[Second]()
        for _, number, level in upgrades:
            if level <= levels[number]:
                continue
            levels[number] = level
            second = self.choose(borders, [None if i < 0 else LEVELS[i] for i in levels])
            if second not in tried:
                tried.add(second)
                results.append(self.choice(second))
        return results

    def _upgrades(self, borders: tuple[int, ...]) -> list[tuple[tuple[float, int], int, int]]:
        """Return ((nanoseconds per byte, level), segment, level) of each useful step; the rate rises with the level."""
        upgrades = []
        for number in range(len(borders) + 1):
            inside, highest, previous = self._segment(borders, number), 0.0, Second()
            for i, level in enumerate(LEVELS):
                second = self._cut(borders, number, level, set())
                if second == previous:
                    continue
                saved = self._kept_bytes(inside, previous) - self._kept_bytes(inside, second)
                time = sum(map(self.price, second.again)) - sum(map(self.price, previous.again))
                rate = max(time, 0.0) / saved if saved > 0 else float("inf")
                previous, highest = second, max(highest, rate)
                if rate != float("inf") or level.nanoseconds == _MOST:
                    upgrades.append(((highest, i), number, i))
        return upgrades

    def _kept_bytes(self, inside: frozenset[Node], second: Second) -> float:
        """Return the bytes of a segment kept for late groups."""
        values: set[Value] = set()
        for node in inside:
            read = node.operands if node in second.again else [v for v in node.results if v in self.needed]
            for value in read:
                if value.node not in second.again:
                    values.update(v for v in self.lifetimes.behind(value) if v.node not in second.again)
        return float(sum(self.lifetimes.nbytes(v) for v in values if v.node in inside))


def _thin_borders(stored_bytes: Sequence[int], live_bytes: Sequence[int], most: float) -> tuple[int, ...]:
    """Return the groups after which a segment ends, by dynamic programming: the fewest live bytes at the borders.

    No segment stores more than ``most`` bytes, unless a single group does.
    """
    count = len(stored_bytes)
    border = sum(stored_bytes) / count / count
    best = [0.0] * (count + 1)
    previous = [0] * (count + 1)
    for end in range(1, count + 1):
        best[end], total = float("inf"), 0
        for start in range(end - 1, -1, -1):
            total += stored_bytes[start]
            if total > most and start < end - 1:
                break
            cost = best[start] + (live_bytes[start - 1] + border if start else 0)
            if cost < best[end]:
                best[end], previous[end] = cost, start
    borders, end_of_segment = [], previous[count]
    while end_of_segment > 0:
        borders.append(end_of_segment - 1)
        end_of_segment = previous[end_of_segment]
    return tuple(reversed(borders))
