"""Random graphs by number."""

from __future__ import annotations

from graphc.ir.graph.text import print_graph
from graphc.ir.graph.verify import verify_graph
from tests.end_to_end.seeded_graphs import seeded_graph


def test_a_seed_gives_one_graph():
    assert print_graph(seeded_graph(3)) == print_graph(seeded_graph(3))


def test_graphs_are_valid_and_differ():
    texts = set()
    for seed in range(40):
        graph = seeded_graph(seed)
        verify_graph(graph)
        texts.add(print_graph(graph))
    assert len(texts) > 35


def test_they_reach_products_convolutions_and_scatters():
    ops = {node.op.name for seed in range(200) for node in seeded_graph(seed).nodes()}
    assert {"matmul", "conv", "conv_grad_weight", "scatter_add", "max_pool_grad", "state_write", "random_bits"} <= ops
