"""Rewrite rules, and the work-list driver that applies them until none matches."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from graphc.base.errors import PassError
from graphc.base.location import UNKNOWN
from graphc.base.records import dataclass
from graphc.ir.graph.graph import INPUT, Graph, Node, Value
from graphc.ir.op import OpDef, Trait

Rewritten = Sequence[Value] | Value | None
GENERATIONS = 1000
"""Number of times the result of a rewrite may be rewritten again before the driver reports a cycle."""
PER_NODE, SPARE = 100, 10_000
"""Limit on the number of rewrites: this many per node, plus some for small graphs."""


@dataclass(frozen=True)
class Rule:
    """A local transformation of the nodes of one op, or of all ops with some traits."""

    op: str | Trait
    """Name of the op whose nodes it matches, or required traits, which users' ops may have as well."""
    rewrite: Callable[[Graph, Node], Rewritten]
    """Function that returns replacements for the results of the node, or None when the rule does not match. There must
    be one value per result, of the same types, existing or newly emitted; without a match it must not emit anything."""
    name: str = ""
    """Name in errors; empty for the function's name."""
    doc: str = ""
    """One sentence; empty for the function's docstring."""

    @property
    def title(self) -> str:
        """``name``, or the name of the function."""
        return self.name or getattr(self.rewrite, "__name__", "rule")

    def looks_at(self, op: OpDef) -> bool:
        """Check whether it may match nodes of that op."""
        return op.has(self.op) if isinstance(self.op, Trait) else op.name == self.op


def apply_rules(graph: Graph, rules: Iterable[Rule]) -> int:
    """Apply the rules everywhere until none matches; return the number of rewrites.

    For each node, the first matching rule in order is applied. New nodes, and users of replaced results, are visited
    again. A replaced node is erased when it is pure, and so are unused operands. New values take the names of the
    replaced ones, new nodes without a location the location of the replaced node.

    Raises PassError, naming the rule, when a rule changes a type or when rules undo each other without end.
    """
    return _Driver(graph, rules).run()


class _Driver:
    """Work-list driver: nodes in order, each at most once in the list."""

    def __init__(self, graph: Graph, rules: Iterable[Rule]):
        self.graph = graph
        self.rules = tuple(rules)
        self.rules_of: dict[OpDef, list[Rule]] = {}
        """Rules that may match an op, for the ops visited so far."""
        self.queue: deque[Node] = deque()
        self.queued: set[Node] = set()
        self.generation: dict[Node, int] = {}
        self.done: set[Node] = set()
        self.newest = -1
        self.loose_scalars: dict[Node, None] = {}
        self.applied: Counter[str] = Counter()
        self.limit = SPARE

    def run(self) -> int:
        self.newest = max((n.id for n in (*self.graph.nodes(), *(v.node for v in self.graph.inputs))), default=-1)
        for node in self.graph.nodes():
            self.push(node)
        self.limit += PER_NODE * len(self.graph)
        while self.queue:
            node = self.queue.popleft()
            self.queued.discard(node)
            if node in self.graph:
                self.visit(node)
        self.erase_dead(list(self.loose_scalars), scalars=True)
        return self.applied.total()

    def push(self, node: Node) -> None:
        candidates = self.rules_of.get(node.op)
        if candidates is None:
            candidates = self.rules_of[node.op] = [rule for rule in self.rules if rule.looks_at(node.op)]
        if candidates and node not in self.queued and node not in self.done:
            self.queued.add(node)
            self.queue.append(node)

    def visit(self, node: Node) -> None:
        """Apply the first rule that matches."""
        for rule in self.rules_of[node.op]:
            outcome = rule.rewrite(self.graph, node)
            values = (outcome,) if isinstance(outcome, Value) else outcome
            if values is not None and any(a is not b for a, b in zip(values, node.results, strict=False)):
                self.replace(rule, node, tuple(values))
                return

    def replace(self, rule: Rule, node: Node, values: tuple[Value, ...]) -> None:
        self.check_types(rule, node, values)
        created = self.created(values)
        self.check_operands(rule, node, created)
        self.count_generation(rule, node, created)
        users = {user: None for result in node.results for user, _ in self.graph.uses(result)}
        for old, new in zip(node.results, values, strict=True):
            self.graph.replace_uses(old, new)
        for new in created:
            if new.location == UNKNOWN:
                new.location = node.location
        names = [r.name for r in node.results]
        self.retire(node)
        if node not in self.graph:
            for name, new in zip(names, values, strict=True):
                if new.node in created and not new.is_scalar_constant:
                    self.graph.rename(new, name)
        for candidate in (*created, *users):
            self.push(candidate)

    def check_types(self, rule: Rule, node: Node, values: tuple[Value, ...]) -> None:
        old, new = [r.type for r in node.results], [v.type for v in values]
        if old != new:
            raise PassError(
                f"rule {rule.title} replaces {', '.join(map(str, old))} by {', '.join(map(str, new))}",
                where=str(node.results[0]) if node.results else node.op.name,
                origin=node.location.describe() or None,
            )

    def check_operands(self, rule: Rule, node: Node, created: list[Node]) -> None:
        for new in created:
            for operand in new.operands:
                if operand.node is node:
                    what = f"rule {rule.title} replaces %{operand.name} by something computed from it ({new.op.name})"
                    raise PassError(
                        what, where=f"%{operand.name} = {node.op.name}(...)", remedy="emit a new node of the op instead"
                    )

    def created(self, values: tuple[Value, ...]) -> list[Node]:
        """Return the nodes emitted by the rule, operands first."""
        emitted: dict[Node, None] = {}
        stack = [v.node for v in reversed(values)]
        while stack:
            node = stack.pop()
            if node.id > self.newest and node not in emitted:
                emitted[node] = None
                stack.extend(v.node for v in reversed(node.operands))
        nodes = sorted(emitted, key=lambda n: n.id)
        self.newest = max(self.newest, nodes[-1].id) if nodes else self.newest
        return nodes

    def count_generation(self, rule: Rule, node: Node, created: list[Node]) -> None:
        generation = self.generation.pop(node, 0) + 1
        self.applied[rule.title] += 1
        if generation > GENERATIONS:
            self.refuse(rule.title, f"its outcome was rewritten {GENERATIONS} times", node)
        if self.applied.total() > self.limit:
            title, count = self.applied.most_common(1)[0]
            self.refuse(title, f"it fitted {count} times in a graph that had {len(self.graph)} nodes at last", node)
        for new in created:
            self.generation[new] = generation

    def refuse(self, title: str, reason: str, node: Node) -> NoReturn:
        raise PassError(
            f"rule {title} is applied without end: {reason}",
            where=f"%{node.results[0].name} = {node.op.name}(...)",
            origin=node.location.describe() or None,
            remedy="do not let a rule undo another one, or emit nodes that it matches",
        )

    def retire(self, node: Node) -> None:
        """Erase a replaced node and operands that only it used; an impure node stays and is not visited again."""
        if not node.op.has(Trait.PURE) or node.op.has(Trait.EFFECT):
            self.done.add(node)
            return
        self.erase_dead([node])

    def erase_dead(self, candidates: list[Node], scalars: bool = False) -> None:
        while candidates:
            node = candidates.pop()
            if node not in self.graph or node.op is INPUT or not node.op.has(Trait.PURE) or node.op.has(Trait.EFFECT):
                continue
            if not scalars and node.results and node.results[0].is_scalar_constant:
                self.loose_scalars[node] = None  # It may have many uses: check them once, at the end.
            elif any(self.graph.is_used(r) for r in node.results):
                self.push(node)
            else:
                self.graph.erase(node)
                candidates.extend(v.node for v in node.operands)
