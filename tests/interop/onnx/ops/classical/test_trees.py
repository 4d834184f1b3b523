"""Sums of decision trees."""

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from tests.interop.onnx.alike import check, module_of, onnx

X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
NODES = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"],
    "nodes_values": [0.1, -0.2, 0.0, 0.0, 0.0, 0.3, 0.0, 0.0],
    "nodes_truenodeids": [1, 2, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [4, 3, 0, 0, 0, 2, 0, 0],
}


def _model(op: str, results: list[tuple[str, int]], **attributes: object) -> gc.nn.Module:
    helper = onnx.helper
    node = helper.make_node(op, ["x"], [name for name, _ in results], domain="ai.onnx.ml", **NODES, **attributes)
    ports = [helper.make_tensor_value_info(name, kind, None) for name, kind in results]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", 1, ["N", 3])], ports)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return gc.from_onnx(helper.make_model(graph, opset_imports=imports, ir_version=10))


def _leaves() -> tuple[np.ndarray, np.ndarray]:
    """The node that each sample reaches in both trees."""
    first = np.where(X[:, 0] <= np.float32(0.1), np.where(X[:, 1] > np.float32(-0.2), 2, 3), 4)
    return first, np.where(X[:, 2] < np.float32(0.3), 1, 2)


def _votes(weights: dict[tuple[int, int], list[tuple[int, float]]], prefix: str) -> dict[str, list[float]]:
    rows = [(tree, node, target, w) for (tree, node), votes in weights.items() for target, w in votes]
    columns = zip(*rows, strict=True)
    names = ("treeids", "nodeids", "ids", "weights")
    return {f"{prefix}_{name}": list(column) for name, column in zip(names, columns, strict=True)}


WEIGHTS = {
    (0, 2): [(0, 1.0), (1, -1.0)],
    (0, 3): [(0, 2.0)],
    (0, 4): [(1, 3.0)],
    (1, 1): [(0, -4.0)],
    (1, 2): [(1, 5.0)],
}


def _expected(how: str) -> np.ndarray:
    result = np.zeros((len(X), 2), np.float32)
    for row, nodes in zip(result, zip(*_leaves(), strict=True), strict=True):
        for target in (0, 1):
            given = [w for tree, node in enumerate(nodes) for t, w in WEIGHTS[tree, node] if t == target]
            row[target] = {"SUM": sum, "AVERAGE": lambda g: sum(g) / 2, "MIN": min, "MAX": max}[how](given or [0])
    return result


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_trees_give_numbers(how: str) -> None:
    votes = _votes(WEIGHTS, "target")
    module = _model("TreeEnsembleRegressor", [("y", 1)], n_targets=2, aggregate_function=how, **votes)
    for call in (module, gc.compile(module), gc.compile(module, dims=module.dims)):
        np.testing.assert_allclose(call(X).numpy(), _expected(how), rtol=1e-6)


def test_trees_choose_classes() -> None:
    votes = _votes(WEIGHTS, "class")
    results = [("y", 7), ("s", 1)]
    module = _model("TreeEnsembleClassifier", results, classlabels_int64s=[10, 20], base_values=[0.5, 0.0], **votes)
    scores = _expected("SUM") + np.array([0.5, 0], np.float32)
    for call in (module, gc.compile(module)):
        labels, result = call(X)
        np.testing.assert_allclose(result.numpy(), scores, rtol=1e-6)
        assert labels.tolist() == [[10, 20][i] for i in scores.argmax(1)]


def test_one_score_stands_for_two_classes() -> None:
    weights = {place: [(1, 0.1 * i - 0.23)] for i, place in enumerate(WEIGHTS)}
    module = _model(
        "TreeEnsembleClassifier",
        [("y", 7), ("s", 1)],
        classlabels_int64s=[0, 1],
        post_transform="LOGISTIC",
        **_votes(weights, "class"),
    )
    labels, scores = module(X)
    numbers = {place: votes[0][1] for place, votes in weights.items()}
    total = np.array([numbers[0, a] + numbers[1, b] for a, b in zip(*_leaves(), strict=True)])
    np.testing.assert_allclose(scores.numpy()[:, 1], 1 / (1 + np.exp(-total)), rtol=1e-5)
    assert labels.tolist() == (total > 0).astype(int).tolist()


NEWEST = """(double[N, 2] x) => (double y) {
    y = ai.onnx.ml.TreeEnsemble<aggregate_function=1, leaf_targetids=[0, 1, 0, 1],
        leaf_weights = double[4] {5.23, 12.12, -12.23, 7.21}, n_targets=2, nodes_falseleafs=[0, 1, 1],
        nodes_falsenodeids=[2, 2, 3], nodes_featureids=[0, 0, 0], nodes_modes = uint8[3] {0, 0, 0},
        nodes_splits = double[3] {3.14, 1.2, 4.2}, nodes_trueleafs=[0, 1, 1], nodes_truenodeids=[1, 0, 1],
        tree_roots=[0]>(x)
}"""
ROWS = np.array([[1.2, 3.4], [-0.12, 1.66], [4.14, 1.77], [9, 1]])


def test_the_newest_operator_has_nodes_and_leaves_apart() -> None:
    check(NEWEST, ROWS, expected=[[[5.23, 0], [5.23, 0], [0, 12.12], [0, 7.21]]], ml=5)


def test_nodes_that_go_round_are_refused() -> None:
    round_ = NEWEST.replace("nodes_trueleafs=[0, 1, 1]", "nodes_trueleafs=[0, 0, 1]")
    with pytest.raises(gc.errors.ArtifactError, match="cycle"):
        module_of(round_, ml=5)(ROWS)
