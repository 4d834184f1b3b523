"""Ensembles of one graph that are computed together."""

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from graphc.interop.onnx.forests import joined_forests
from graphc.interop.onnx.reader import read_model
from tests.interop.onnx.alike import check, proto_of

X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
TREE = """nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[{feature}, 0, 0],
    nodes_modes=["{mode}", "LEAF", "LEAF"], nodes_values=[{threshold}, 0.0, 0.0], nodes_truenodeids=[1, 0, 0],
    nodes_falsenodeids=[2, 0, 0]"""
VOTES = "target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[{weight}, -1.0]"


def _tree(source: str, feature: int, threshold: float = 0.1, mode: str = "BRANCH_LEQ", weight: float = 2.0) -> str:
    tree = TREE.format(feature=feature, threshold=threshold, mode=mode) + ", " + VOTES.format(weight=weight)
    return f"ai.onnx.ml.TreeEnsembleRegressor<n_targets=1, {tree}>({source})"


FOREST = f"""(float[N, 3] x) => (float y) {{
    i = Constant<value_ints=[2, 0]>()
    a = {_tree("x", 0)} b = {_tree("x", 1, 0.3, "BRANCH_GT")} c = {_tree("x", 2, -0.2, weight=5.0)}
    y = Sum(a, b, c)
}}"""


def test_trees_of_several_operators_are_one_loop() -> None:
    graph = joined_forests(read_model(proto_of(FOREST)).graph)
    assert [node.op for node in graph.nodes] == ["Constant", "TreeEnsembles", "Sum"]
    check(FOREST, X)


def test_columns_that_are_picked_first_are_features_of_the_source() -> None:
    text = f"""(float[N, 3] x) => (float y) <int64[2] i = {{2, 0}}> {{
        p = Gather<axis=1>(x, i) a = {_tree("p", 0)} b = {_tree("x", 0, weight=7.0)} y = Sum(a, b)
    }}"""
    graph = joined_forests(read_model(proto_of(text)).graph)
    (joined,) = [node for node in graph.nodes if node.op == "TreeEnsembles"]
    assert [m.trees.features[0] for m in joined.attributes["forest"].members] == [2, 0]
    expected = np.where(X[:, 2] <= 0.1, 2, -1) + np.where(X[:, 0] <= 0.1, 7, -1)
    check(text, X, expected=[expected[:, None]])


def test_classes_and_numbers_of_one_input_are_computed_together() -> None:
    tree = TREE.format(feature=1, threshold=0.0, mode="BRANCH_LT")
    votes = "class_treeids=[0, 0], class_nodeids=[1, 2], class_ids=[0, 1], class_weights=[1.0, 1.0]"
    text = f"""(float[N, 3] x) => (int64 l, float s, float y) {{
        l, s = ai.onnx.ml.TreeEnsembleClassifier<classlabels_int64s=[4, 6], {tree}, {votes}>(x) y = {_tree("x", 0)}
    }}"""
    first = X[:, 1] < 0
    scores = np.stack([first, ~first], 1).astype(np.float32)
    check(text, X, expected=[np.where(first, 4, 6), scores, np.where(X[:, :1] <= 0.1, 2, -1)])


def test_all_trees_are_one_descent() -> None:
    def descents(count: int) -> int:
        nodes = " ".join(f"t{i} = {_tree('x', i % 3, 0.01 * i)}" for i in range(count))
        text = f"(float[N, 3] x) => (float y) {{ {nodes} y = Sum({', '.join(f't{i}' for i in range(count))}) }}"
        return str(gc.trace(gc.from_onnx(proto_of(text)), X)).count(" descend(")

    assert descents(3) == descents(12) == 1


def test_a_feature_that_the_input_lacks_is_an_error() -> None:
    module = gc.from_onnx(proto_of(f"(float[N, 3] x) => (float y) {{ y = {_tree('x', 3)} }}"))
    with pytest.raises(gc.errors.ArtifactError, match="compares feature 3, the input has 3"):
        module(X)
