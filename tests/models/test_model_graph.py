"""Graphs out of model files: what does not fit the manifest, or is no graph, is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from graphc.errors import ArtifactError
from graphc.files import model_content as artifact
from graphc.files.model_content import Artifact
from graphc.ir.graph.parse import parse_graph
from graphc.models.model_export import save_graph
from graphc.models.model_file import load
from tests.compiler.graphs import counter
from tests.models.model_files import changed, refused, stored_model


@pytest.fixture
def stored(tmp_path: Path) -> Artifact:
    return stored_model(tmp_path)


def test_graphs_that_do_not_fit_are_refused(tmp_path: Path, stored: Artifact):
    def text(old: str, new: str) -> Artifact:
        assert old in stored.first.text
        return changed(stored, text=stored.first.text.replace(old, new))

    refused(tmp_path, changed(stored, text="hello"), "the graph is not valid")
    refused(tmp_path, text("maximum(", "explode("), "the graph is not valid")
    refused(tmp_path, text("{axes=[1]}", "{axes=[7]}"), "the graph is not valid")
    refused(tmp_path, text("%x: f32[4,17]", "%z: f32[4,17]"), "the graph is not valid")
    refused(tmp_path, text('param "fc.bias"', 'param "fc.other"'), "weight 'fc.other' is missing")
    other = {**stored.weights, "fc.bias": np.zeros(31, np.float32)}
    refused(tmp_path, dataclasses.replace(stored, weights=other), r"weight 'fc.bias' is f32\[31\]")


def test_manifests_that_do_not_fit_are_refused(tmp_path: Path, stored: Artifact):
    def manifest(**changes: object) -> Artifact:
        return changed(stored, spec=dataclasses.replace(stored.first.spec, **changes))

    x = stored.first.spec.inputs[0]
    renamed, reshaped = dataclasses.replace(x, name="other"), dataclasses.replace(x, shape=(4, 18))
    refused(tmp_path, manifest(inputs=(renamed,)), "other inputs or outputs")
    refused(tmp_path, manifest(inputs=(reshaped,)), "other inputs or outputs")
    refused(tmp_path, manifest(inputs=(reshaped,)), "other inputs or outputs", trust=True)
    refused(tmp_path, manifest(outputs=stored.first.spec.outputs[:1], structure=0), "other inputs or outputs")
    refused(tmp_path, manifest(ops=("add", "teleport")), "uses teleport, which this graphc does not know")


def test_deep_nesting_is_refused(tmp_path: Path, stored: Artifact):
    deep = "graph @g() -> () {\n" + "  %a = call() {forward=graph @g() -> () {\n" * 3000
    refused(tmp_path, changed(stored, text=deep), "nested too deeply|not valid")


def test_a_giant_value_is_refused(tmp_path: Path):
    graph = parse_graph(
        "graph @big(%x: f32[1]) -> (f32[1]) {\n  %b = broadcast_to(%x) {shape=[1000000000000]} : f32[1000000000000]\n"
        "  %y = sum(%b) {axes=[0], keepdims=true} : f32[1]\n  return %y\n}"
    )
    save_graph(graph, {}, tmp_path / "big.gcm")
    with pytest.raises(ArtifactError, match="%b takes 4000000000000 bytes"):
        load(tmp_path / "big.gcm")


def test_a_manifest_that_hides_what_a_graph_writes_is_refused(tmp_path: Path):
    save_graph(counter(), {"total": np.zeros(3, np.float32)}, tmp_path / "c.gcm")
    whole = artifact.load(tmp_path / "c.gcm")
    wrong = changed(whole, spec=dataclasses.replace(whole.first.spec, writes=()))
    refused(tmp_path, wrong, "takes or writes other params and states")
