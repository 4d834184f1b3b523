"""Model files: what is written is what is called, foreign graphs are refused, native code needs trust, threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError, ArtifactError, DTypeError, GradientError, ShapeError, TraceError
from graphc.files import model_content
from graphc.files.model_content import entry_name
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.models.model_export import save_graph
from graphc.models.model_file import LoadedModel, load
from tests.architecture.scan import ROOT
from tests.compiler.graphs import arguments, counter, lookup, mlp, weights


@pytest.fixture(scope="module")
def arrays() -> list[np.ndarray]:
    return arguments(mlp())


@pytest.fixture(params=[False, True], ids=["graph", "native"])
def model(request: pytest.FixtureRequest, tmp_path: Path, arrays: list[np.ndarray]) -> LoadedModel:
    """The same model, compiled on load, or from the object code in its file."""
    native = bool(request.param)
    save_graph(mlp(), weights(mlp(), arrays), tmp_path / "mlp.gcm", native=native)
    loaded = load(tmp_path / "mlp.gcm", trust=native)
    assert (loaded.seconds is None) == native
    return loaded


def test_a_model_computes_what_its_graph_means(model: LoadedModel, arrays: list[np.ndarray]):
    expected = evaluate(mlp(), arrays)
    for results in (model(arrays[0]), model(x=arrays[0])):
        assert isinstance(results, tuple)
        for result, expected_result in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, expected_result, rtol=1e-5, atol=1e-5)


def test_names_and_types(model: LoadedModel):
    assert list(map(str, model.inputs)) == ["x: f32[4,17]"]
    assert list(map(str, model.outputs)) == ["output.0: f32[4,32]", "output.1: f32[4]"]
    assert model.name == "mlp"
    assert repr(model) == "<LoadedModel mlp(x: f32[4,17]) -> (output.0: f32[4,32], output.1: f32[4])>"
    assert model.states == {}


def test_wrong_calls_are_refused(model: LoadedModel, arrays: list[np.ndarray]):
    x = arrays[0]
    with pytest.raises(ShapeError, match=r"input 'x' has shape \[2, 17\]"):
        model(x[:2])
    with pytest.raises(DTypeError, match="float64"):
        model(x.astype(np.float64))
    with pytest.raises(ArgumentError, match="no input 'y'\n  try    use one of x"):
        model(y=x)
    with pytest.raises(ArgumentError, match="given twice"):
        model(x, x=x)
    with pytest.raises(ArgumentError, match="got 0"):
        model()
    with pytest.raises(ArgumentError, match="got 2"):
        model(x, x)


def test_inputs_by_name_and_order(tmp_path: Path):
    graph = parse_graph("graph @sub(%a: f32[2], %b: f32[2]) -> (f32[2]) {\n  %c = sub(%a, %b) : f32[2]\n  return %c\n}")
    save_graph(graph, {}, tmp_path / "s.gcm")
    model = load(tmp_path / "s.gcm")
    a, b = np.array([5, 6], np.float32), np.array([1, 2], np.float32)
    for result in (model(a, b), model(b=b, a=a), model(a, b=b)):
        np.testing.assert_array_equal(result, [4, 4])
    with pytest.raises(ArgumentError, match="lacks b; it takes a, b"):
        model(a=a)
    with pytest.raises(ArgumentError, match="given twice"):
        model(a, a=a)
    with pytest.raises(ArgumentError, match="given twice"):
        model(a, a, a, b=b)


def test_constants_beside_the_text_come_back(tmp_path: Path):
    manifest = save_graph(lookup(), {}, tmp_path / "l.gcm")
    assert [t.section for t in manifest.tensors] == ["data"]
    x = np.ones(40, np.float32)
    np.testing.assert_array_equal(load(tmp_path / "l.gcm")(x), np.arange(40) + 1)


def test_out_is_filled(model: LoadedModel, arrays: list[np.ndarray]):
    out = [np.empty((4, 32), np.float32), np.empty(4, np.float32)]
    result = model.run([arrays[0]], out)
    assert result[0] is out[0]
    np.testing.assert_array_equal(out[1], model(arrays[0])[1])


@pytest.mark.parametrize("native", [False, True])
def test_states_live_as_long_as_the_model(tmp_path: Path, native: bool):
    total = np.full(3, 10, np.float32)
    save_graph(counter(), {"total": total}, tmp_path / "c.gcm", native=native)
    first, second = (load(tmp_path / "c.gcm", trust=native) for _ in range(2))
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(first(x), [11, 22, 33])
    np.testing.assert_array_equal(first(x), [12, 24, 36])
    np.testing.assert_array_equal(second(x), [11, 22, 33])
    np.testing.assert_array_equal(first.states["total"], [12, 12, 12])
    np.testing.assert_array_equal(total, [10, 10, 10])


def test_threads_count_every_call(tmp_path: Path):
    save_graph(counter(), {"total": np.zeros(3, np.float32)}, tmp_path / "c.gcm")
    model = load(tmp_path / "c.gcm")
    x = np.ones(3, np.float32)
    threads = [threading.Thread(target=lambda: [model(x) for _ in range(500)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(model.states["total"], [4000, 4000, 4000])


def test_outputs_nest_as_asked(tmp_path: Path, arrays: list[np.ndarray]):
    structure = {"dict": [["sum", 1], ["rest", {"list": [0, None]}]]}
    save_graph(mlp(), weights(mlp(), arrays), tmp_path / "d.gcm", structure=structure)
    model = load(tmp_path / "d.gcm")
    assert [s.name for s in model.outputs] == ["rest.0", "sum"]
    result = model(arrays[0])
    assert list(result) == ["sum", "rest"]
    assert result["sum"].shape == (4,) and result["rest"][0].shape == (4, 32) and result["rest"][1] is None


def test_missing_weights_are_named(tmp_path: Path):
    with pytest.raises(ArgumentError, match=r"needs arrays for fc\.bias"):
        save_graph(mlp(), {"fc.weight": np.zeros((32, 17), np.float32)}, tmp_path / "m.gcm")
    assert not list(tmp_path.iterdir())


def test_a_loaded_model_takes_tensors_and_gives_tensors(tmp_path):
    graphc.export(lambda x, y: {"sum": x + y, "both": (x, y)}, graphc.zeros(2), graphc.ones(2), path=tmp_path / "m.gcm")
    model = graphc.load(tmp_path / "m.gcm")
    result = model(graphc.ones(2), np.ones(2, np.float32))
    assert isinstance(result["sum"], graphc.Tensor) and result["sum"].tolist() == [2, 2]
    assert isinstance(result["both"][1], graphc.Tensor)
    assert isinstance(model(np.ones(2, np.float32), np.ones(2, np.float32))["sum"], np.ndarray)
    with graphc.no_grad():
        assert model(graphc.ones(2, requires_grad=True), graphc.ones(2))["sum"].tolist() == [2, 2]
    with pytest.raises(GradientError, match="computes no gradients"):
        model(graphc.ones(2, requires_grad=True), graphc.ones(2))
    with pytest.raises(TraceError, match="cannot be part of a compiled function"):
        graphc.compile(model)(graphc.ones(2), graphc.ones(2))


def test_other_suffixes_than_gcm_are_refused_before_anything_is_traced(tmp_path):
    calls = []
    for name in ("m.tflite", "m.pt", "m.npz"):
        with pytest.raises(ArgumentError, match=rf"graphc writes .gcm and .onnx files, no {name[1:]}[\s\S]*m.gcm or m"):
            graphc.export(lambda x: calls.append(x) or x, graphc.zeros(2), path=tmp_path / name)
    assert not calls and not list(tmp_path.iterdir())
    graphc.export(lambda x: x, graphc.zeros(2), path=tmp_path / "plain")


def test_entries_are_found_by_name(tmp_path: Path):
    graphc.export({"a": graphc.Entry(lambda x: x, graphc.ones(2))}, path=tmp_path / "m.gcm")
    stored = model_content.load(tmp_path / "m.gcm")
    assert entry_name(stored, None) == entry_name(stored, "a") == "a"
    with pytest.raises(ArgumentError, match="the model has no entry 'b'"):
        entry_name(stored, "b")


@pytest.fixture
def large(tmp_path: Path) -> Path:
    gc.manual_seed(0)
    gc.export(nn.Linear(1024, 512).eval(), gc.zeros(2, 1024), path=tmp_path / "large.gcm")
    return tmp_path / "large.gcm"


def test_weights_of_a_mapped_file_are_its_pages_and_outlive_it(large: Path):
    read, mapped = gc.load(large), gc.load(large, map=True)
    assert str(large) in Path("/proc/self/maps").read_text()
    x = np.random.default_rng(0).standard_normal((2, 1024)).astype(np.float32)
    expected = read(x)
    gc.export(nn.Linear(1024, 512).eval(), gc.zeros(2, 1024), path=large)
    assert (mapped(x) == expected).all() and (gc.load(large)(x) != expected).any()
    large.unlink()
    assert (mapped(x) == expected).all()
    state = mapped.state_dict()
    assert state["weight"].shape == (512, 1024)


def test_a_file_that_nobody_may_write_to_is_mapped_by_itself(large: Path):
    program = f"""
import graphc as gc, pathlib
model = gc.load({str(large)!r})
print({str(large)!r} in pathlib.Path("/proc/self/maps").read_text())
"""

    def is_mapped() -> str:
        command = [sys.executable, "-c", program]
        return subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=True).stdout

    assert is_mapped() == "False\n"
    large.chmod(0o444)
    assert is_mapped() == "True\n"


def test_a_mapped_file_that_is_damaged_is_refused(large: Path):
    content = bytearray(large.read_bytes())
    content[-5] ^= 4
    large.write_bytes(content)
    with pytest.raises(ArtifactError, match="damaged"):
        gc.load(large, map=True)
