"""``graphc run`` of models with texts."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
from graphc.cli.main import main
from tests.interop.onnx.alike import onnx, proto_of
from tests.interop.onnx.text_models import CLASSIFIER


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the model, in which the command runs."""
    onnx.save(proto_of(CLASSIFIER), tmp_path / "net.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


ROWS = ["--input", "x=[[0.5,1.0],[2.0,-1.0]]"]


def test_texts_are_json_or_lines_of_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "colors.txt").write_text("red\nblue\n")
    assert main(["compile", "net.onnx", "-o", "net.gcm"]) == 0
    capsys.readouterr()
    outputs = []
    for file in ("net.onnx", "net.gcm"):
        for color in ('color=[["red"],["blue"]]', "color=@colors.txt"):
            assert main(["run", file, *ROWS, "--input", color, "--json"]) == 0
            outputs.append(json.loads(capsys.readouterr().out)["outputs"])
    assert outputs.count(outputs[0]) == 4
    labels, scores = outputs[0]
    assert labels["name"] == "label"
    assert set(labels["values"]) <= {"no", "yes"}
    np.testing.assert_allclose([sum(row.values()) for row in scores["values"]], 1, rtol=1e-6)


def test_a_single_text_needs_no_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "net.onnx", "--input", "x=[[0.5,1.0]]", "--input", "color=red"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("label: text[1] = [")
    assert lines[1].startswith('scores: 1 dictionaries = [{"no": ')


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (ROWS, "no value for color"),
        ([*ROWS, "--input", "color=[[1],[2]]"], "are not texts"),
        ([*ROWS, "--input", "color=['a']"], "is not JSON"),
        ([*ROWS, "--input", 'color=["red","blue"]'], "has shape [2], the model takes"),
        ([*ROWS, "--input", "color=red", "--input", "color=red"], "is given twice"),
        ([*ROWS, "--input", "color=@missing.txt"], "no such file"),
        ([*ROWS, "--input", "color=red", "--taps"], "--taps applies to arrays of numbers"),
    ],
)
def test_wrong_inputs_are_errors(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["run", "net.onnx", *arguments]) != 0
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_a_library_cannot_hold_texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "net.onnx", "-o", "net.so"]) != 0
    assert "a C library cannot hold texts, and color, label" in capsys.readouterr().err
