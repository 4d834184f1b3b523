"""Order of groups: topological, with writers of a state after the readers of its old content where possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush

from graphc.fusion.partition import Group, Partition
from graphc.ir.graph.graph import Value
from graphc.ir.op import Trait
from graphc.passes.updates import stored_content, unmoved, updated


def in_order(partition: Partition, groups: Sequence[Group]) -> list[Group]:
    """Return the groups in topological order; ties go to the group whose first node comes first in the graph.

    A group that writes a state runs after the readers of the old content where possible, and then updates the state in
    place.
    """
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
        """Per group: the other groups that write states which it reads, with the number of such reads."""
        self.late: Counter[Group] = Counter()
        """Per writer: the reads of old contents that have not run yet."""
        self._count_reads(partition)
        first = {g: min(partition.position[n] for n in g.nodes) for g in groups}
        self.sort_key = {g: (first[g], number) for number, g in enumerate(groups)}
        self.ready: list[tuple[bool, tuple[int, int]]] = []
        """Heap of (whether readers of its old content are pending, sort key). A group is pushed a second time when its
        last such reader has run."""

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
        by_key = {key: group for group, key in self.sort_key.items()}
        ordered: dict[Group, None] = {}
        for group in self.groups:
            self.push(group)
        while self.ready:
            group = by_key[heappop(self.ready)[1]]
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
        """Push a group onto the heap once all its dependences have run."""
        if not self.before[group]:
            heappush(self.ready, (self.late[group] > 0, self.sort_key[group]))
