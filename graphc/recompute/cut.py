"""What is kept and what is computed again: minimum cuts between what is there and what is read late."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

import networkx

from graphc.base.sizes.size import hint
from graphc.codegen.machine.roofline import Roofline
from graphc.fusion.price import weight
from graphc.ir.graph.graph import CONSTANT, INPUT, Node, Value
from graphc.ir.op import Trait
from graphc.passes.operand_access import is_virtual
from graphc.recompute.lifetimes import Lifetimes, Span, profile

_NEVER = 1e18
"""The capacity of an edge that no cut may go through."""
_SOME = 1e-3
"""Nanoseconds more for each node, so that nothing is computed again for no gain."""


class Willingness(NamedTuple):
    """What is given for memory."""

    nanoseconds: float
    """Time for which a byte is not kept."""
    products: bool
    """Whether products, windows, scans and what else is no elementwise operation or reduction may run again."""


_MOST = 1e4
LEVELS = (
    *(Willingness(x, False) for x in (0.05, 0.3, _MOST)),
    *(Willingness(x, True) for x in (0.5, 2.0, 8.0, 32.0, 128.0, _MOST)),
)
"""How willing a search becomes to compute things again, from only what is cheap to everything."""


class Second(NamedTuple):
    """What is computed a second time."""

    again: frozenset[Node] = frozenset()
    kept: frozenset[Value] = frozenset()
    """Values of other stretches that this reads, which are kept, even if their nodes are computed again for others."""

    def holds(self, value: Value) -> bool:
        """Whether there is a second one of a value."""
        return value.node in self.again and value not in self.kept


class Choice(NamedTuple):
    """What is computed again, and what follows from it."""

    second: Second
    peak: int
    """Bytes of temporaries that are needed at once."""
    nanoseconds: float
    """Time that the second computations take, roughly."""


class Recomputation:
    """What may be computed again of what runs up to a group, for the groups behind it."""

    def __init__(self, lifetimes: Lifetimes, until: int, roofline: Roofline, lanes: int = 16):
        self.lifetimes, self.until = lifetimes, until
        self.roofline, self.lanes = roofline, lanes
        graph, place = lifetimes.graph, lifetimes.place
        self.users: dict[Node, list[Node]] = {}
        for node in graph.nodes():
            for source in dict.fromkeys(v.node for v in node.operands):
                self.users.setdefault(source, []).append(node)
        self.order = [n for n in graph.nodes() if place[n] <= until]
        self.early = set(self.order)
        late = (n for n in graph.nodes() if place[n] > until)
        self.needed = {v for n in late for v in n.operands if v.node in self.early}
        """Values that something late reads."""
        self.views = {n for n in self.order if self._is_view(n)}
        """Early nodes that have no memory of their own."""
        self._made_of: dict[Value, tuple[Value, ...]] = {}
        self.length = len(lifetimes.plan.groups)
        self._prices: dict[Node, float] = {}
        self._solved: dict[tuple[Any, ...], Second] = {}
        self._stretches: dict[tuple[Any, ...], frozenset[Node]] = {}

    # ---- what things cost

    def price(self, node: Node) -> float:
        """Nanoseconds that computing a node again takes, roughly."""
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
            given, made = (tuple(v.type for v in values) for values in (node.operands, node.results))
            operations = hint(node.op.multiply_adds(given, made, node.attrs))
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
        easy = is_virtual(node) or node.op.has_any(Trait.ELEMENTWISE | Trait.REDUCTION | Trait.GENERATOR)
        return easy or products

    def _bytes(self, value: Value) -> float:
        """What keeping a value takes; nothing where it lasts anyway."""
        lasts = value in self.lifetimes.lasting or value.node.op.has(Trait.STATE_WRITE)
        return 0.0 if lasts else float(hint(value.type.nbytes))

    # ---- cuts

    def segmentations(self) -> list[tuple[int, ...]]:
        """Ways to cut the early part into stretches, each at places where little is alive: what lies on a border is
        kept, if it is needed at all, so that no second computation reaches beyond it."""
        made, alive = self._made_and_alive()
        total = sum(made)
        found: dict[tuple[int, ...], None] = {(): None}
        for parts in (4, 10, 20):
            found[_thin_places(made, alive, total / parts)] = None
        return list(found)

    def _made_and_alive(self) -> tuple[list[int], list[int]]:
        """For each early group the bytes that it makes, and those that later early groups read of what exists then."""
        made, spans = [0] * (self.until + 1), []
        for value in self.lifetimes.plan.stored:
            size, first = self.lifetimes.nbytes(value), self.lifetimes.place[value.node]
            if not size or first > self.until:
                continue
            made[first] += size
            last = max((r for r in self.lifetimes.readers.get(value, ()) if r <= self.until), default=first)
            if last > first:
                spans.append(Span(size, first, last - 1))
        return made, profile(spans, self.until + 1)

    def choose(self, borders: tuple[int, ...], levels: Sequence[Willingness | None]) -> Second:
        """What is computed again where each stretch has its own willingness, or None for nothing."""
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

    def _cut(self, borders: tuple[int, ...], number: int, level: Willingness, demanded: set[Value]) -> Second:
        """What is computed again of one stretch, and what that reads of others."""
        inside = self._stretch(borders, number)
        key = (borders, number, level, frozenset(v for v in demanded if v.node in inside))
        if key not in self._solved:
            self._solved[key] = self._solve(inside, level, demanded)
        return self._solved[key]

    def _stretch(self, borders: tuple[int, ...], number: int) -> frozenset[Node]:
        key = borders, number
        if key not in self._stretches:
            place = self.lifetimes.place
            self._stretches[key] = frozenset(n for n in self.order if bisect_left(borders, place[n]) == number)
        return self._stretches[key]

    def _solve(self, inside: frozenset[Node], level: Willingness, demanded: set[Value]) -> Second:
        targets = [v for n in self.order if n in inside for v in n.results if v in self.needed]
        edges, seen = self._network(targets, inside, level, demanded)
        if not edges:
            return Second()
        cost, (_, late) = networkx.minimum_cut(networkx.DiGraph(edges), "there", "late")
        if cost >= _NEVER:
            return Second()
        again = {n for n in seen if n in late}
        for node in self.order:  # views of what is computed again are made again, too
            if node in self.views and node in inside and any(v.node in again for v in node.operands):
                again.add(node)
        read = {s for n in again for v in n.operands for s in self._sources(v)}
        return Second(frozenset(again), frozenset(v for v in read if v.node not in inside))

    def _network(
        self, targets: Sequence[Value], inside: frozenset[Node], level: Willingness, demanded: set[Value]
    ) -> tuple[list[tuple[object, object, dict[str, float]]], set[Node]]:
        """The edges of a flow network. Beyond the cut are nodes that are computed again, and values that are there for
        late nodes; the edge between a node and a value of it costs what keeping that does."""
        first = list(dict.fromkeys(source for v in targets for source in self._sources(v)))
        edges: list[tuple[object, object, dict[str, float]]] = [(v, "late", {"capacity": _NEVER}) for v in first]
        stack, seen, nodes = list(first), set(first), set[Node]()
        while stack:
            value = stack.pop()
            node = value.node
            kept = 0.0 if value in demanded else min(_NEVER, self._bytes(value) * level.nanoseconds)
            if node not in inside or not self._may_run_again(node, level.products) or not kept:
                edges.append(("there", value, {"capacity": kept}))
                continue
            edges.append((node, value, {"capacity": kept}))
            if node in nodes:
                continue
            nodes.add(node)
            edges.append(("there", node, {"capacity": self.price(node) + _SOME}))
            for source in dict.fromkeys(s for v in node.operands for s in self._sources(v)):
                edges.append((source, node, {"capacity": _NEVER}))
                if source not in seen:
                    seen.add(source)
                    stack.append(source)
        return edges, nodes

    def _sources(self, value: Value) -> tuple[Value, ...]:
        """What a value is made of, or itself where it can be kept; nothing where that is there anyway."""
        if value not in self._made_of:
            node = value.node
            if node in self.views:
                found = dict.fromkeys(s for v in node.operands for s in self._sources(v))
            else:
                found = {} if node.op in (INPUT, CONSTANT) or node not in self.early else {value: None}
            self._made_of[value] = tuple(found)
        return self._made_of[value]

    # ---- what follows

    def kept_values(self, second: Second) -> list[Value]:
        """What lies in memory for late nodes, or for second computations."""
        place = self.lifetimes.place
        late = [n for n in self.lifetimes.graph.nodes() if place[n] > self.until or n in second.again]
        read = {v for n in late for o in n.operands for v in self.lifetimes.behind(o)}
        kept = [v for v in read if v.node in self.early and not second.holds(v) and self.lifetimes.nbytes(v)]
        return sorted(kept, key=lambda v: (v.node.id, v.index))

    def spans(self, second: Second) -> list[Span]:
        """The temporaries where these nodes are computed again: as they are stored now, but for what only one late
        group reads, which computes it itself."""
        place, readers, until = self.lifetimes.place, self.lifetimes.readers, self.until
        need = self._needs(second)
        reads: dict[Value, list[int]] = {}
        for node in second.again:
            for operand in node.operands:
                if not second.holds(operand):
                    for value in self.lifetimes.behind(operand):
                        reads.setdefault(value, []).append(need[node])
        found = []
        for value in self.lifetimes.plan.stored:
            size, first = self.lifetimes.nbytes(value), place[value.node]
            known = readers.get(value, ())
            if size and not second.holds(value):
                found.append(Span(size, first, max((first, *known, *reads.get(value, ())))))
            elif size:
                early = [r for r in known if r <= until]
                if early:
                    found.append(Span(size, first, max(early)))
                found += self._twice(value, size, need, second)
        return found

    def _needs(self, second: Second) -> dict[Node, int]:
        """When each node is computed again."""
        need: dict[Node, int] = {}
        for node in reversed(self.order):
            if node in second.again:
                users = self.users.get(node, ())
                late = [self.lifetimes.place[u] for u in users if self.lifetimes.place[u] > self.until]
                need[node] = min((*late, *(need[u] for u in users if u in need)), default=self.length - 1)
        return need

    def _twice(self, value: Value, size: int, need: dict[Node, int], second: Second) -> list[Span]:
        """When the second one of a value lies in memory, if it does."""
        first, last, groups, stored = need[value.node], need[value.node], set[int](), False
        stack, seen = [value.node], {value.node}
        while stack:
            for user in self.users.get(stack.pop(), ()):
                if user in seen:
                    continue
                seen.add(user)
                at = need.get(user, self.lifetimes.place[user])
                if user not in need and at <= self.until:
                    continue
                if is_virtual(user) and not user.op.has(Trait.STATE_WRITE):
                    stack.append(user)
                    continue
                groups.add(at)
                last = max(last, at)
                stored = stored or user.op.has_any(Trait.CONTRACTION | Trait.MATERIALIZE) or user.op.lower is None
        easy = value.node.op.has(Trait.ELEMENTWISE)
        return [] if easy and not stored and len(groups) <= 1 else [Span(size, first, last)]

    def choice(self, second: Second) -> Choice:
        """A set of nodes, with what follows from computing them again."""
        peak = max(profile(self.spans(second), self.length), default=0)
        return Choice(second, peak, sum(map(self.price, second.again)))

    def choices(self, borders: tuple[int, ...]) -> list[Choice]:
        """What more and more willingness leads to, stretch after stretch: each step takes the most memory for the
        least time."""
        count = len(borders) + 1
        levels = [-1] * count
        upgrades = sorted(self._upgrades(borders), key=lambda u: u[0])
        found, known = [], set[Second]()
        for _, number, level in upgrades:
            if level <= levels[number]:
                continue
            levels[number] = level
            again = self.choose(borders, [None if i < 0 else LEVELS[i] for i in levels])
            if again not in known:
                known.add(again)
                found.append(self.choice(again))
        return found

    def _upgrades(self, borders: tuple[int, ...]) -> list[tuple[tuple[float, int], int, int]]:
        """(nanoseconds for a byte, stretch, level) of what each stretch may become; rising with the level."""
        found = []
        for number in range(len(borders) + 1):
            inside, highest, known = self._stretch(borders, number), 0.0, Second()
            for i, level in enumerate(LEVELS):
                second = self._cut(borders, number, level, set())
                if second == known:
                    continue
                saved = self._kept(inside, known) - self._kept(inside, second)
                time = sum(map(self.price, second.again)) - sum(map(self.price, known.again))
                rate = max(time, 0.0) / saved if saved > 0 else float("inf")
                known, highest = second, max(highest, rate)
                if rate != float("inf") or level.nanoseconds == _MOST:
                    found.append(((highest, i), number, i))
        return found

    def _kept(self, inside: frozenset[Node], second: Second) -> float:
        """Bytes of a stretch that are kept for late groups."""
        kept: set[Value] = set()
        for node in inside:
            read = node.operands if node in second.again else [v for v in node.results if v in self.needed]
            for value in read:
                if value.node not in second.again:
                    kept.update(v for v in self.lifetimes.behind(value) if v.node not in second.again)
        return float(sum(self.lifetimes.nbytes(v) for v in kept if v.node in inside))


def _thin_places(made: Sequence[int], alive: Sequence[int], most: float) -> tuple[int, ...]:
    """Groups behind which a stretch ends, with as few bytes alive there as possible, such that no stretch makes more
    than ``most`` bytes (but for groups that do so by themselves)."""
    count = len(made)
    border = sum(made) / count / count
    best = [0.0] * (count + 1)
    came = [0] * (count + 1)
    for end in range(1, count + 1):
        best[end], total = float("inf"), 0
        for start in range(end - 1, -1, -1):
            total += made[start]
            if total > most and start < end - 1:
                break
            cost = best[start] + (alive[start - 1] + border if start else 0)
            if cost < best[end]:
                best[end], came[end] = cost, start
    borders, at = [], came[count]
    while at > 0:
        borders.append(at - 1)
        at = came[at]
    return tuple(reversed(borders))
