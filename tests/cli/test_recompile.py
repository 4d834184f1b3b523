"""Model files and texts of graphs as what ``graphc compile`` begins with."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.files import model_content
from tests.cli.conftest import Graphc


class Pair(nn.Module):
    """Two entries over one weight, one of which writes a state."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.register_buffer("last", gc.zeros(1, 2))

    def keep(self, x: gc.Tensor) -> gc.Tensor:
        self.last.copy_(self.fc(x))
        return self.last * 1

    def forward(self, x: gc.Tensor) -> gc.Tensor:
        return self.fc(x) + self.last


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    model, x, path = Pair().eval(), gc.ones(1, 3), tmp_path / "pair.gcm"
    gc.export({"forward": gc.Entry(model, x), "keep": gc.Entry(model.keep, x)}, path=path, golden=True)
    return path


def test_a_model_file_gets_code_for_several_machines_in_every_entry(pair: Path, tmp_path: Path, graphc: Graphc):
    place = tmp_path / "both.gcm"
    result = graphc("compile", pair, "--native", "--target", "sse2,avx2", "-o", place)
    assert result.code == 0, result.err
    found, before = model_content.load(place), model_content.load(pair)
    assert [len(entry.natives) for entry in found.entries] == [2, 2]
    assert [entry.golden != () for entry in found.entries] == [True, True]
    assert found.weights.keys() == before.weights.keys()
    assert gc.selftest(place, trust=True).good
    again = graphc("compile", place, "-o", tmp_path / "plain.gcm")
    assert again.code == 0 and (tmp_path / "plain.gcm").read_bytes() == pair.read_bytes()


def test_the_text_of_a_graph_is_a_model_with_weights_of_a_file(pair: Path, tmp_path: Path, graphc: Graphc):
    text = graphc("ir", pair, "--stage", "traced")
    (tmp_path / "net.gc").write_text(text.out)
    lacking = graphc("compile", tmp_path / "net.gc", "-o", tmp_path / "net.gcm")
    assert lacking.code == 2 and "needs arrays for fc.weight" in lacking.err
    result = graphc("compile", tmp_path / "net.gc", "--weights", pair, "--native", "-o", tmp_path / "net.gcm")
    assert result.code == 0, result.err
    x = np.ones((1, 3), np.float32)
    np.testing.assert_array_equal(gc.load(tmp_path / "net.gcm", trust=True)(x), gc.load(pair)(x))


@pytest.mark.parametrize("argument", ["--precision int8", "--train", "--golden 1", "--weights w.npz"])
def test_arguments_of_models_in_python_are_refused(pair: Path, tmp_path: Path, graphc: Graphc, argument: str):
    result = graphc("compile", pair, *argument.split(), "-o", tmp_path / "out.gcm")
    assert result.code == 2 and f"{argument.split()[0]} applies only to a Python model" in result.err
    assert not (tmp_path / "out.gcm").exists()


def test_other_formats_are_refused(pair: Path, tmp_path: Path, graphc: Graphc):
    result = graphc("compile", pair, "-o", tmp_path / "net.onnx")
    assert result.code == 2 and "a compiled file can only become a model file or a C library" in result.err


def test_every_stage_goes_to_the_folder_that_is_named(pair: Path, tmp_path: Path, graphc: Graphc):
    folder = tmp_path / "stages"
    assert graphc("compile", pair, "--native", "--dump", folder, "-o", tmp_path / "out.gcm").code == 0
    assert {path.suffix for path in folder.rglob("*") if path.is_file()} >= {".gc", ".gck"}
    assert "GRAPHC_DUMP" not in os.environ
