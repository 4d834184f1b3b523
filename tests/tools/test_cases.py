"""The named programs of digests and budgets."""

from __future__ import annotations

import pytest

from graphc.ir.graph.verify import verify_graph
from tools import cases

CHEAP = ["policy_b1", "net_b64", "train_policy_b256", "custom_optimizer", "mlp", "mnist"]


def test_forms_of_a_model_and_steps_are_graphs():
    graphs = dict(cases.graphs(CHEAP))
    forms = ("traced", "watched", "frozen", "forward", "backward")
    expected = [f"{name}/{form}" for name in ("policy_b1", "net_b64") for form in forms]
    assert list(graphs) == [*expected, *(f"{name}/step" for name in CHEAP[2:])]
    for graph in graphs.values():
        verify_graph(graph)
    classes = {form: {v.node.attrs["cls"] for v in graphs[f"policy_b1/{form}"].inputs} for form in forms}
    assert classes["traced"] == {"input", "param"}
    assert classes["watched"] == {"input", "weight"}
    assert classes["frozen"] == {"input"}


def test_a_training_step_writes_its_parameters():
    (_, graph), *_ = cases.graphs(["train_policy_b256"])
    assert sum(node.op.name == "state_write" for node in graph.nodes()) == 4 * 6  # Adam keeps two means and a count


@pytest.mark.parametrize("quick", [False, True])
def test_random_graphs_are_counted(quick: bool):
    count = cases.QUICK_RANDOM_GRAPHS if quick else cases.RANDOM_GRAPHS
    names = [name for name, _ in cases.graphs([cases.RANDOM], quick)]
    assert names == [f"random/{seed}" for seed in range(count)]


def test_quick_ones_are_known():
    assert set(cases.QUICK) <= set(cases.names())
