"""What is kept and what is computed again: minimum cuts between what is there and what is read late."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

import networkx

from graphc.base.size import hint
from graphc.codegen.machine.roofline import Roofline
from graphc.fusion.lifetimes import Lifetimes, Span, profile
from graphc.fusion.price import weight
from graphc.ir.graph.graph import CONSTANT, INPUT, Node, Value
from graphc.ir.op import Trait
from graphc.passes.operand_access import is_virtual

_NEVER = 1e18
"""The capacity of an edge that no cut may go through."""


class Willingness(NamedTuple):
    """What is given for memory."""

    nanoseconds: float
    """Time for which a byte is not kept."""
    products: bool
    """Whether products, windows, scans and what else is no elementwise operation or reduction may run again."""


LEVELS = (
    *(Willingness(x, False) for x in (0.05, 0.3, 1e9)),
    *(Willingness(x, True) for x in (0.5, 2.0, 8.0, 32.0, 128.0, 1e9)),
)
"""How willing a search becomes to compute things again, from only what is cheap to everything."""


class Choice(NamedTuple):
    """Nodes that are computed again, and what follows from it."""

    again: frozenset[Node]
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
        self.needed = {n for n in self.order if any(place[u] > until for u in self.users.get(n, ()))}
        """Nodes that something late reads."""
        self.length = len(lifetimes.plan.groups)
        self._prices: dict[Node, float] = {}
        self._solved: dict[tuple[int, ...] | tuple, tuple[frozenset[Node], frozenset[Node]]] = {}

    # ---- what things cost

    def price(self, node: Node) -> float:
        """Nanoseconds that computing a node again takes, roughly; those of views, and of what is fused, are nearly 0."""
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
            types = (tuple(v.type for v in values) for values in (node.operands, node.results))
            operations = hint(node.op.multiply_adds(*types, node.attrs))
        if node.op.runs is not None:
            body, times = node.op.runs(node.attrs)
            return hint(times) * sum(self._price(n) for n in body.nodes())
        return self.roofline.time(operations / self.lanes, nbytes)

    def _may_run_again(self, node: Node, products: bool) -> bool:
        if not node.op.has(Trait.PURE) or node.op.has(Trait.CHECK):
            return False
        easy = is_virtual(node) or node.op.has_any(Trait.ELEMENTWISE | Trait.REDUCTION | Trait.GENERATOR)
        return easy or (products and node.op.decompose is None)

    def _bytes(self, node: Node) -> float:
        """What keeping a node's results takes; nothing where they last anyway, _NEVER where they have no memory."""
        if node.op in (INPUT, CONSTANT) or node.op.has(Trait.STATE_WRITE):
            return 0.0
        if is_virtual(node) and not any(self.lifetimes.is_stored(r) for r in node.results):
            return _NEVER
        return float(sum(hint(r.type.nbytes) for r in node.results if r not in self.lifetimes.lasting))

    # ---- cuts

    def segmentations(self) -> list[tuple[int, ...]]:
        """Ways to cut the early part into stretches, each at places where little is alive: what lies on a border is
        kept, if it is needed at all, so that no second computation reaches beyond it."""
        made, alive = self._made_and_alive()
        total = sum(made)
        found: dict[tuple[int, ...], None] = {(): None}
        for parts in (2, 3, 4, 6, 8, 12, 16, 24, 32):
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

    def choose(self, borders: tuple[int, ...], levels: Sequence[Willingness | None]) -> frozenset[Node]:
        """The nodes that are computed again where each stretch has its own willingness, or None for nothing."""
        again: set[Node] = set()
        demanded: set[Node] = set()
        for number in range(len(borders), -1, -1):
            level = levels[number]
            if level is None:
                continue
            more, leaves = self._cut(borders, number, level, demanded)
            again |= more
            demanded |= leaves
        return frozenset(again)

    def _cut(
        self, borders: tuple[int, ...], number: int, level: Willingness, demanded: set[Node]
    ) -> tuple[frozenset[Node], frozenset[Node]]:
        """What is computed again of one stretch, and what that reads of others."""
        inside = {n for n in self.order if bisect_left(borders, self.lifetimes.place[n]) == number}
        key = (borders, number, level, frozenset(demanded & inside))
        if key not in self._solved:
            self._solved[key] = self._solve(inside, level, demanded)
        return self._solved[key]

    def _solve(
        self, inside: set[Node], level: Willingness, demanded: set[Node]
    ) -> tuple[frozenset[Node], frozenset[Node]]:
        targets = [n for n in self.order if n in self.needed and n in inside]
        edges: list[tuple[object, object, dict[str, float]]] = []
        stack, seen = list(targets), set(targets)
        for node in targets:
            edges.append(((node, 1), "late", {"capacity": _NEVER}))
        while stack:
            node = stack.pop()
            kept = 0.0 if node in demanded else self._bytes(node)
            own = node in inside or kept == _NEVER
            again = self.price(node) + 1e-3 if own and self._may_run_again(node, level.products) else _NEVER
            edges.append(((node, 0), (node, 1), {"capacity": min(_NEVER, kept * level.nanoseconds)}))
            edges.append(("there", (node, 0), {"capacity": again}))
            if again == _NEVER:
                continue
            for source in dict.fromkeys(v.node for v in node.operands):
                edges.append(((source, 1), (node, 0), {"capacity": _NEVER}))
                if source not in seen:
                    seen.add(source)
                    stack.append(source)
        if not targets:
            return frozenset(), frozenset()
        cost, (_, late) = networkx.minimum_cut(networkx.DiGraph(edges), "there", "late")
        if cost >= _NEVER:
            return frozenset(), frozenset()
        again = frozenset(n for n in seen if (n, 0) in late)
        leaves = frozenset(v.node for n in again for v in n.operands if v.node not in again and v.node not in inside)
        return again, leaves

    # ---- what follows

    def spans(self, again: Iterable[Node]) -> list[Span]:
        """The temporaries where these nodes are computed again: as they are stored now, but for what only one late
        group reads, which computes it itself."""
        twice = set(again)
        place, readers, until = self.lifetimes.place, self.lifetimes.readers, self.until
        need = self._needs(twice)
        reads: dict[Value, list[int]] = {}
        for node in twice:
            for operand in node.operands:
                if operand.node not in twice:
                    for value in self.lifetimes.behind(operand):
                        reads.setdefault(value, []).append(need[node])
        found = []
        for value in self.lifetimes.plan.stored:
            size, first = self.lifetimes.nbytes(value), place[value.node]
            known = readers.get(value, ())
            if size and value.node not in twice:
                found.append(Span(size, first, max((first, *known, *reads.get(value, ())))))
            elif size:
                early = [r for r in known if r <= until]
                if early:
                    found.append(Span(size, first, max(early)))
                found += self._second(value, size, need, twice)
        return found

    def _needs(self, twice: set[Node]) -> dict[Node, int]:
        """When each node is computed again."""
        need: dict[Node, int] = {}
        for node in reversed(self.order):
            if node in twice:
                users = self.users.get(node, ())
                late = [self.lifetimes.place[u] for u in users if self.lifetimes.place[u] > self.until]
                need[node] = min((*late, *(need[u] for u in users if u in twice)), default=self.length - 1)
        return need

    def _second(self, value: Value, size: int, need: dict[Node, int], twice: set[Node]) -> list[Span]:
        first, last, groups, stored = need[value.node], need[value.node], set[int](), False
        stack, seen = [value.node], {value.node}
        while stack:
            for user in self.users.get(stack.pop(), ()):
                if user in seen:
                    continue
                seen.add(user)
                at = need[user] if user in twice else self.lifetimes.place[user]
                if user not in twice and at <= self.until:
                    continue
                if is_virtual(user) and not user.op.has(Trait.STATE_WRITE):
                    stack.append(user)
                    continue
                groups.add(at)
                last = max(last, at)
                stored = stored or user.op.has_any(Trait.CONTRACTION | Trait.MATERIALIZE) or user.op.lower is None
        easy = value.node.op.has(Trait.ELEMENTWISE)
        return [] if easy and not stored and len(groups) <= 1 else [Span(size, first, last)]

    def choice(self, again: frozenset[Node]) -> Choice:
        """A set of nodes, with what follows from computing them again."""
        peak = max(profile(self.spans(again), self.length), default=0)
        return Choice(again, peak, sum(map(self.price, again)))

    def choices(self, borders: tuple[int, ...]) -> list[Choice]:
        """What more and more willingness leads to, stretch after stretch: each step takes the most memory for the
        least time."""
        count = len(borders) + 1
        levels = [-1] * count
        upgrades = sorted(self._upgrades(borders), key=lambda u: u[0])
        found, known = [], set[frozenset[Node]]()
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
            highest = 0.0
            known: frozenset[Node] = frozenset()
            for i, level in enumerate(LEVELS):
                again, leaves = self._cut(borders, number, level, set())
                if again == known:
                    continue
                saved = self._kept(number, borders, known) - self._kept(number, borders, again)
                time = sum(map(self.price, again)) - sum(map(self.price, known))
                rate = max(time, 0.0) / saved if saved > 0 else float("inf")
                known, highest = again, max(highest, rate)
                if rate != float("inf") or level.nanoseconds == 1e9:
                    found.append(((highest, i), number, i))
        return found

    def _kept(self, number: int, borders: tuple[int, ...], again: frozenset[Node]) -> float:
        """Bytes of a stretch that are kept for late groups."""
        nodes = [n for n in self.order if bisect_left(borders, self.lifetimes.place[n]) == number]
        kept: set[Value] = set()
        for node in nodes:
            late = node in again or (node in self.needed and node not in again)
            if not late:
                continue
            values = node.results if node not in again else [v for o in node.operands for v in (o,)]
            for value in values:
                if value.node not in again:
                    kept.update(self.lifetimes.behind(value))
        inside = set(nodes)
        return float(sum(self.lifetimes.nbytes(v) for v in kept if v.node in inside and v.node not in again))


def _thin_places(made: Sequence[int], alive: Sequence[int], most: float) -> tuple[int, ...]:
    """Groups behind which a stretch ends, with as few bytes alive there as possible, such that no stretch makes more
    than ``most`` bytes (but for groups that do so by themselves)."""
    count = len(made)
    best = [0.0] * (count + 1)
    came = [0] * (count + 1)
    for end in range(1, count + 1):
        best[end], total = float("inf"), 0
        for start in range(end - 1, -1, -1):
            total += made[start]
            if total > most and start < end - 1:
                break
            cost = best[start] + (alive[start - 1] if start else 0)
            if cost < best[end]:
                best[end], came[end] = cost, start
    borders, at = [], came[count]
    while at > 0:
        borders.append(at - 1)
        at = came[at]
    return tuple(reversed(borders))


