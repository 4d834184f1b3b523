"""``.onnx`` files in every command that takes a model: what the operators mean comes out, and errors are told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.base.installation import install_command
from graphc.cli import console, exported
from graphc.interop.onnx.messages import FORMAT
from tests.cli.conftest import Graphc

onnx = pytest.importorskip("onnx")

FLOAT = 1
SCALE = np.arange(1, 4, dtype=np.float32)


def port(name: str, *shape: Any) -> Any:
    return onnx.helper.make_tensor_value_info(name, FLOAT, shape or None)


def saved(path: Path, op: str = "Relu", *shape: Any) -> Path:
    """relu(x * scale + shift), for batches of any size."""
    make = onnx.helper.make_node
    nodes = [make("Mul", ["in.x", "fc.scale"], ["m"]), make("Add", ["m", "fc.shift"], ["a"]), make(op, ["a"], ["y"])]
    weights = [onnx.numpy_helper.from_array(v, n) for n, v in (("fc.scale", SCALE), ("fc.shift", SCALE - 3))]
    graph = onnx.helper.make_graph(nodes, "net", [port("in.x", *shape)], [port("y", *shape)], weights)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


@pytest.fixture
def scaled(tmp_path: Path) -> Path:
    return saved(tmp_path / "net.onnx", "Relu", "batch", 3)


def expected(x: np.ndarray) -> np.ndarray:
    return np.maximum(x * SCALE + SCALE - 3, 0)


def test_run_takes_inputs_by_the_names_of_the_graph(tmp_path: Path, scaled: Path, graphc: Graphc):
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    for name in ("in.x", "in_x"):
        done = graphc("run", scaled, "--input", f"{name}=@{tmp_path / 'x.npy'}", "--output", tmp_path / "y.npy")
        assert done.code == console.OK, done.err
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected(x), rtol=1e-6)


def test_run_reads_the_file_once(scaled: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch):
    reads = []

    def read(path: str) -> Any:
        reads.append(path)
        return gc.from_onnx(path)

    monkeypatch.setitem(exported.READERS, ".onnx", read)
    assert graphc("run", scaled, "--input", "in.x=ones").code == console.OK
    assert reads == [str(scaled)]


def test_named_dimensions_are_chosen_by_name(scaled: Path, graphc: Graphc):
    facts = json.loads(graphc("inspect", scaled, "--json").out)
    assert facts["inputs"][0]["shape"] == ["batch", 3] and [d["name"] for d in facts["dims"]] == ["batch"]
    assert [w["name"] for w in facts["weights"]] == ["fc.scale", "fc.shift"]
    done = graphc("run", scaled, "--input", "in.x=ones", "--shape", "batch=7", "--json")
    assert json.loads(done.out)["outputs"][0]["shape"] == [7, 3]


def test_compile_writes_a_model_file_with_other_weights(tmp_path: Path, scaled: Path, graphc: Graphc):
    np.savez(tmp_path / "w.npz", **{"fc.scale": np.zeros(3, np.float32), "fc.shift": np.ones(3, np.float32)})
    done = graphc("compile", scaled, "--weights", tmp_path / "w.npz", "-o", tmp_path / "net.gcm")
    assert (done.code, "net(in_x: f32[batch,3])" in done.out) == (console.OK, True), done.err
    np.testing.assert_allclose(gc.load(tmp_path / "net.gcm")(np.ones((2, 3), np.float32)), np.ones((2, 3)))


@pytest.mark.parametrize(
    "command",
    [
        ("ir", "--stage", "traced"),
        ("explain",),
        ("check",),
        ("bench", "--rounds", 1, "--seconds", 0.01, "--shape", "batch=1,8"),
        ("bench", "--rounds", 1, "--seconds", 0.01, "--breakdown"),
        ("profile", "--rounds", 1, "--seconds", 0.01),
    ],
)
def test_other_commands_take_the_file(scaled: Path, graphc: Graphc, command: tuple[Any, ...]):
    done = graphc(command[0], scaled, *command[1:])
    assert done.code == console.OK, done.err


def test_a_picture_is_drawn(tmp_path: Path, scaled: Path, graphc: Graphc):
    assert graphc("viz", scaled, "-o", tmp_path / "a.svg").code == console.OK
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_types_are_given_where_the_file_has_none(tmp_path: Path, scaled: Path, graphc: Graphc):
    path, out = saved(tmp_path / "open.onnx"), tmp_path / "a.gcm"
    done = graphc("compile", path, "-o", out)
    assert (done.code, "in.x" in done.err, "--input" in done.err) == (console.USAGE, True, True)
    assert graphc("compile", path, "--input", "in_x:f32[n=1..9,3]", "-o", out).code == console.OK
    np.testing.assert_allclose(gc.load(out)(np.ones((2, 3), np.float32)), expected(np.ones((2, 3), np.float32)))
    done = graphc("compile", scaled, "--input", "in_x:f32[2,3]", "-o", out)
    assert (done.code, "gives types" in done.err) == (console.USAGE, True)


def test_errors_have_the_codes_of_their_kinds(tmp_path: Path, scaled: Path, graphc: Graphc):
    unknown = saved(tmp_path / "unknown.onnx", "Ununtrium", "batch", 3)
    text = tmp_path / "text.onnx"
    text.write_text("no model")
    for command in ("run", "inspect", "ir", "explain", "bench"):
        more = ("--stage", "traced") if command == "ir" else ()
        done = graphc(command, unknown, *more)
        assert (done.code, "Ununtrium" in done.err) == (console.COMPILE, True)
        done = graphc(command, text, *more)
        assert (done.code, "not an ONNX model" in done.err) == (console.DAMAGED, True)
        assert graphc(command, tmp_path / "none.onnx", *more).code == console.USAGE
    assert graphc("run", scaled, "--input", "other=ones").code == console.MISMATCH
    assert graphc("run", scaled).code == console.MISMATCH
    assert graphc("summary", scaled).code == console.USAGE


def run_without_the_package(path: Path) -> subprocess.CompletedProcess[str]:
    code = f"""
import sys
sys.modules["onnx"] = None
from graphc.cli.main import main
sys.exit(main(["run", {str(path)!r}, "--input", "in.x=ones"]))
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_file_runs_without_the_package(scaled: Path):
    done = run_without_the_package(scaled)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_the_package_the_error_of_a_newer_file_says_what_to_install(scaled: Path):
    model = onnx.load(scaled)
    model.ir_version = FORMAT + 1
    onnx.save(model, scaled)
    done = run_without_the_package(scaled)
    assert (done.returncode, install_command("onnx") in done.stderr) == (console.COMPILE, True), done.stderr


def test_files_are_told_by_their_suffix():
    assert exported.is_exported("a/b.onnx") and not exported.is_exported("net.py:onnx")


def test_expected_sizes_of_a_file_are_those_of_shape(tmp_path: Path, scaled: Path, graphc: Graphc):
    done = graphc("compile", scaled, "--shape", "batch=7", "-o", tmp_path / "net.gcm", "--json")
    assert [d["hint"] for d in json.loads(done.out)["dims"]] == [7], done.err
    assert gc.load(tmp_path / "net.gcm")(np.ones((2, 3), np.float32)).shape == (2, 3)


def test_run_traces_again_for_arrays_that_the_trace_for_expected_sizes_refuses(tmp_path: Path, graphc: Graphc):
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[B, N] x) => (float[B, M] y) {
        one = Constant<value_ints=[1]>() hop = Constant<value_ints=[256]>() zero = Constant<value_ints=[0]>()
        s = Shape<start=1>(x) f = Div(s, hop) k = Max(f, one) y = Slice(x, zero, k, one) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "net.onnx")
    x = np.arange(2000, dtype=np.float32).reshape(2, 1000)
    np.save(tmp_path / "x.npy", x)
    done = graphc("run", tmp_path / "net.onnx", "--input", f"x=@{tmp_path / 'x.npy'}", "--output", tmp_path / "y.npy")
    assert done.code == console.OK, done.err
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), x[:, :3])
