"""The order in which groups run: as in the graph, but what is overwritten is so after its old content was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush

from graphc.fusion.partition import Group, Partition
from graphc.ir.graph.graph import Value
from graphc.ir.op import Trait
from graphc.passes.updates import stored_content, unmoved, updated


def in_order(partition: Partition, groups: Sequence[Group]) -> list[Group]:
    """Topological order, ties broken by the first node; what a state becomes is computed after its old content has been
    read wherever that is possible, so that it can be computed in place."""
    return _Order(partition, groups).run()


class _Order:
    def __init__(self, partition: Partition, groups: Sequence[Group]):
        self.groups = groups
        self.before = {g: partition.before(g) for g in groups}
        self.followers: dict[Group, list[Group]] = {g: [] for g in groups}
        for group, sources in self.before.items():
            for source in sources:
                self.followers[source].append(group)
        self.writers: dict[Group, Counter[Group]] = {g: Counter() for g in groups}
        """For every group the others that write states which it reads, and how many."""
        self.late: Counter[Group] = Counter()
        """How many such reads are still to come before each group."""
        self._count_reads(partition)
        first = {g: min(partition.position[n] for n in g.nodes) for g in groups}
        self.place = {g: (first[g], number) for number, g in enumerate(groups)}
        self.ready: list[tuple[bool, tuple[int, int]]] = []
        """A heap of whether groups would be early, and their places; a group that waits no longer is there twice."""

    def _count_reads(self, partition: Partition) -> None:
        written: dict[Value, Group] = {}
        for node in partition.graph.nodes():
            if node.op.has(Trait.STATE_WRITE):
                source = stored_content(node).node
                if source in partition.group_of:
                    written[node.operands[0]] = partition.group_of[source]
        for node in partition.materialized:
            for value in node.results:
                old = updated(value)
                while old is not None:
                    written[old] = partition.group_of[node]
                    old = unmoved(old)
        for group in self.groups:
            for value in {a.value for n in group.nodes for a in partition.reads[n]}:
                writer = written.get(value, group)
                if writer is not group:
                    self.writers[group][writer] += 1
                    self.late[writer] += 1

    def run(self) -> list[Group]:
        by_place = {place: group for group, place in self.place.items()}
        ordered: dict[Group, None] = {}
        for group in self.groups:
            self.push(group)
        while self.ready:
            group = by_place[heappop(self.ready)[1]]
            if group in ordered:
                continue
            ordered[group] = None
            for follower in self.followers[group]:
                self.before[follower].discard(group)
                self.push(follower)
            for writer, count in self.writers[group].items():
                self.late[writer] -= count
                if not self.late[writer] and writer not in ordered:
                    self.push(writer)
        return list(ordered)

    def push(self, group: Group) -> None:
        """Makes a group ready if it needs no other one any more."""
        if not self.before[group]:
            heappush(self.ready, (self.late[group] > 0, self.place[group]))
