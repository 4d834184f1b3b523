"""Partitions: what a group needs of others, what is stored, and nodes that several groups compute."""

from __future__ import annotations

from random import Random
from typing import Any

import graphc as gc
from graphc.fusion.partition import Group, Partition, node_axes
from graphc.ir.graph.graph import Graph, Node
from graphc.ir.op import Trait
from graphc.passes.pipeline import optimize
from tests.passes.graph_text import graph_of


def chain() -> Graph:
    return graph_of("""
        graph @g(%x: f32[4,8]) -> (f32[4], f32[4,8]) {
          %a = exp(%x) : f32[4,8]
          %b = neg(%a) : f32[4,8]
          %s = sum(%b) {axes=[1]} : f32[4]
          %c = mul(%a, %x) : f32[4,8]
          return %s, %c
        }""")


def named(partition: Partition) -> dict[str, Node]:
    return {n.results[0].name: n for n in partition.materialized}


def test_every_computed_node_starts_in_a_group_of_its_own():
    partition = Partition(chain())
    assert [(g.kind, len(g.nodes)) for g in partition.groups()] == [("map", 1), ("map", 1), ("row", 1), ("map", 1)]
    row = partition.groups()[2]
    assert row.axes == node_axes(row.nodes[0]) == (1,) and row.kept == (4,) and row.row_shape == (4, 1)


def test_paths_between_groups():
    partition = Partition(chain())
    nodes = named(partition)
    a, b, s, c = (partition.group_of[nodes[n]] for n in "absc")
    assert partition.reaches(a, s, directly=False) and partition.reaches(a, b, directly=True)
    assert not partition.reaches(a, b, directly=False) and not partition.reaches(c, s, directly=True)
    assert partition.before(s) == {b} and partition.reading(nodes["a"]) == [b, c]


def test_join_and_what_is_stored():
    partition = Partition(chain())
    nodes = named(partition)
    assert all(partition.is_stored(n) for n in nodes.values())
    merged = Group([], "row", (4, 8), (1,))
    partition.join(merged, partition.group_of[nodes["b"]], partition.group_of[nodes["s"]])
    assert merged.nodes == [nodes["b"], nodes["s"]] and partition.group_of[nodes["b"]] is merged
    assert not partition.is_stored(nodes["b"]) and partition.is_stored(nodes["s"])


def test_a_node_that_two_groups_compute():
    partition = Partition(chain())
    nodes = named(partition)
    a, b, c = (partition.group_of[nodes[n]] for n in "abc")
    partition.duplicate(nodes["a"], c)
    assert partition.holds(c, nodes["a"]) and partition.reading(nodes["a"]) == [b]
    assert partition.before(c) == set() and partition.groups()[0] is a
    merged = Group([], "map", (4, 8))
    partition.join(merged, a, c)
    assert not partition.duplicated and partition.group_of[nodes["c"]] is merged


def depends(partition: Partition, producer: Group, consumer: Group) -> bool:
    """Whether one group needs another, found anew."""
    waiting, seen = [consumer], {consumer}
    while waiting:
        for group in partition.before(waiting.pop()) - seen:
            seen.add(group)
            waiting.append(group)
    return producer in seen - {consumer}


def test_what_groups_need_is_known_after_any_joins():
    """Steps of a recurrence with gradients, joined at random where no third group lies between."""

    def function(x: Any, w: Any) -> Any:
        h = x[0]
        for i in range(6):
            h = gc.tanh(h @ w + x[i])
        return gc.autograd.grad(h.sum(), [x, w])

    x, w = gc.rand(6, 3, 3, requires_grad=True), gc.rand(3, 3, requires_grad=True)
    partition = Partition(optimize(gc.trace(function, x, w)))
    random = Random(0)
    for number in range(30):
        groups = partition.groups()
        for a in groups:
            for b in groups:
                known = a is b or partition.reaches(a, b, directly=True)
                assert known >= depends(partition, a, b) and (
                    known == depends(partition, a, b) or a is b or number > 20
                )
        if number == 12:
            partition.number()
        if number == 20:  # one more group computes a value that it reads
            node = next(n for n in partition.materialized if partition.reading(n) and not n.op.has(Trait.CONTRACTION))
            partition.duplicate(node, partition.reading(node)[0])
        pairs = [(a, b) for b in groups for a in partition.before(b) if not partition.reaches(a, b, directly=False)]
        if not pairs:
            break
        a, b = random.choice(pairs)
        partition.join(Group([], "map", b.shape), a, b)
    assert len(partition.groups()) < len(partition.materialized) // 2
