"""The benchmark of int8: files are written once, results agree, and tables and summary print the measurements."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import int8
from benchmarks.harness.results import Result
from benchmarks.harness.timing import find_library
from benchmarks.int8 import CASES, F32, INT8, PEER_INT8, QUANTIZED
from benchmarks.peers.onnx_calls import onnx_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of the case ``keyword``."""
    for library in ("torch", "onnx", "onnxruntime"):
        pytest.importorskip(library)
    folder = tmp_path_factory.mktemp("int8")
    int8.write_files("keyword", str(folder))
    return folder


def test_a_static_case_agrees_with_onnxruntime_and_keeps_its_files(folder: Path):
    files = {path: path.stat().st_mtime_ns for path in folder.rglob("*.*")}
    result = int8.run_case(CASES["keyword"], folder, ["onnxruntime"], 2, 0.001)
    assert not result.problems
    assert set(result.rounds_ms) == {INT8, F32, QUANTIZED, "onnxruntime f32", PEER_INT8}
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.*")} == files
    facts = result.facts
    assert facts["graphc to onnxruntime"][0] < 0.02 and facts["graphc to onnxruntime"][1] == 1.0
    assert 0.02 < facts["graphc to f32"][0] < 0.3 and 0 < facts["graphc.quantize to f32"][0] < 0.3
    assert 0.05 < facts["int8 .onnx MB"] < 0.08 and 0.05 < facts["int8 .gcm MB"] < 0.09
    assert facts["best int8 peer"] == PEER_INT8
    assert facts["peer / int8"] == result.over(PEER_INT8, INT8) and facts["f32 / int8"] == result.over(F32, INT8)


def test_results_of_models_depend_on_their_inputs(folder: Path):
    run = onnx_run("onnxruntime", CASES["keyword"].file(folder, "f32"))
    results = np.stack([run([CASES["keyword"].draw(seed)])[0] for seed in int8.COMPARED])
    assert results.std(0).max() > 0.05 * np.abs(results).max()


def test_a_dynamic_case_prints_json(capfd: pytest.CaptureFixture[str], tmp_path: Path):
    for library in ("torch", "onnx", "onnxruntime"):
        pytest.importorskip(library)
    options = ["--rounds", "1", "--seconds", "0.001", "--peers", "onnxruntime", "--folder", str(tmp_path), "--json"]
    assert int8.main(["lstm_dynamic", *options]) == 0
    (row,) = json.loads(capfd.readouterr().out)["rows"]
    assert set(row["ms"]) == {INT8, F32, "onnxruntime f32", PEER_INT8}
    assert row["facts"]["graphc to onnxruntime"][0] < 1e-4 and row["facts"]["onnxruntime to f32"][0] > 1e-3
    assert {path.name for path in tmp_path.glob("*.onnx")} == {"lstm.f32.onnx", "lstm_dynamic.int8.onnx"}
    assert b"DynamicQuantizeLSTM" in (tmp_path / "lstm_dynamic.int8.onnx").read_bytes()


def test_a_missing_peer_is_listed_with_a_command(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(int8, "find_library", lambda name: None if name == "openvino" else find_library(name))
    result = int8.run_case(CASES["keyword"], folder, ["openvino"], 1, 0.001)
    assert set(result.rounds_ms) == {INT8, F32, QUANTIZED}
    assert result.problems["openvino f32"].startswith("ImportError: openvino is not installed: pip install")
    assert int8.peer_ratio(result) is None and result.facts["f32 / int8"] > 0


def test_a_missing_exporter_is_listed_with_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(int8, "find_library", lambda name: None)
    with pytest.raises(ImportError, match=r"torch is not installed: .*pip install --group"):
        int8.write_files("keyword", str(tmp_path))
    monkeypatch.setattr(int8, "call_in_child", lambda *order, **arguments: {"error": "ImportError: no torch"})
    assert int8.run_case(CASES["keyword"], tmp_path, (), 1, 0.001).problems == {"files": "ImportError: no torch"}


def test_an_interrupted_write_leaves_no_file(tmp_path: Path):
    def write(path: Path) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    path = tmp_path / "model.onnx"
    with pytest.raises(KeyboardInterrupt):
        int8._write_once(path, write)
    assert not path.exists()
    int8._write_once(path, Path.touch)
    assert path.exists() and list(tmp_path.iterdir()) == [path]


def test_limited_instructions(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(int8, "CURRENT", "avx2")
    monkeypatch.setattr(int8, "OPTIONS", {"target": "avx2"})
    result = int8.run_case(CASES["keyword"], folder, ["onnxruntime"], 1, 0.001)
    assert not result.problems and int8.time_text(result, PEER_INT8).endswith("^")
    assert int8.best_int8(result) is None and int8.summary([result])[0].startswith("graphc f32 / graphc int8")
    assert result.facts["graphc to onnxruntime"][0] < 0.02


def test_agreement():
    results, others = [np.array([[1.0, 2.0]]), np.array([[4.0, 3.0]])], [np.array([[1.0, 3.0]]), np.array([[3.0, 4.0]])]
    assert int8.agreement(results, others, [4.0, 2.0]) == (0.5, 0.5)
    image = np.zeros((1, 2, 1, 4))
    image[0, 1, 0, :3] = 1.0
    assert int8.agreement([image], [np.zeros_like(image)], [1.0]) == (1.0, 0.25)


def measured(name: str, graphc: float, f32: float, peers: tuple[float, float]) -> Result:
    times = {INT8: [graphc], F32: [f32], PEER_INT8: [peers[0]], "openvino int8": [peers[1]], "openvino f32": [0.1]}
    return Result(name, {"graphc to f32": (0.012, 0.875), "openvino int8": {"unlimited": "1 of 2 products"}}, times)


def test_tables_and_summary():
    results = [measured("a", 2.0, 1.0, (4.0, 3.0)), measured("b", 1.0, 8.0, (1.0, 2.0)), Result("c")]
    head, _, *rows = int8.format_times(results, ["onnxruntime", "openvino"]).splitlines()
    assert head.endswith("| graphc f32 | graphc int8 | graphc.quantize | best peer / int8 | f32 / int8 |")
    assert rows[0] == "| a | - | 4.00 | 0.100 | **3.00^** | 1.00 | 2.00 | - | 1.50 | 0.50 |"
    assert rows[1].startswith("| b | - | **1.00** | 0.100 | 2.00^ |") and rows[1].endswith("| 1.00 | 8.00 |")
    assert rows[2] == f"| c |{' - |' * 9}"
    assert "| a | - | - | - | 1.2e-02, 87.5% | - | - |" in int8.format_agreement(results)
    assert int8.summary(results) == [
        "best int8 peer / graphc int8: geometric mean 1.22 of 2; below 1.15: 1 (b)",
        "graphc f32 / graphc int8: geometric mean 2.00 of 2; int8 slower: 1 (a)",
    ]
    assert int8.summary([Result("c")]) == []
