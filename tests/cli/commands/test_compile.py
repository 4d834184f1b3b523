"""graphc compile: files that run, and a message and exit code for everything that can be wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphc.base.errors import CompileError
from graphc.cli import console, targets
from graphc.files import model_content
from graphc.ir.graph.graph import Graph
from graphc.models import model_export, sized_graph
from graphc.models.model_file import load
from tests.cli.conftest import Graphc


def test_a_model_file_is_written(models: Path, net: Path, graphc: Graphc):
    done = graphc("compile", f"{models}:Net", "--input", "x:f32[2,6]", "-o", net)
    assert done.code == console.OK
    assert done.out.startswith(f"{net}: Net(x: f32[2,6]) -> (output: f32[2,4]), ")
    assert "traced, compiled and written" in done.err
    x = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
    assert np.allclose(np.exp(load(net)(x)).sum(axis=1), 1)


def test_native_code_is_refused_where_there_is_no_program_for_all_sizes(
    models: Path, net: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch
):
    def refuse(graph: Graph, added: Any) -> Graph:
        raise CompileError("sizes differ")

    monkeypatch.setattr(sized_graph, "restricted", refuse)
    compiled = []
    monkeypatch.setattr(model_export, "compile_graph", lambda *_, **__: compiled.append(1))
    done = graphc("compile", f"{models}:Net", "--input", "x:f32[batch=1..64,6]", "-o", net, "--native")
    assert (
        done.code != console.OK
        and "--native needs one program for all sizes, and the model has none: sizes differ" in done.err
    )
    assert not compiled


def test_the_model_is_compiled_with_its_weights_in_evaluation_mode(models: Path, tmp_path: Path, graphc: Graphc):
    model = targets.resolve(f"{models}:Net").eval()
    np.savez(tmp_path / "w.npz", **{k: v.numpy() for k, v in model.state_dict().items()})
    path = tmp_path / "n.gcm"
    arguments = ["compile", f"{models}:Net", "--input", "x:f32[2,6]", "--weights", tmp_path / "w.npz", "-o", path]
    assert graphc(*arguments).code == console.OK
    x = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
    expected = model(targets.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(load(path)(x), expected, rtol=1e-5, atol=1e-6)
    assert graphc(*arguments, "--train").code == console.OK
    trained = load(path)
    assert [s.rpartition(".")[2] for s in trained.states]
    assert not np.array_equal(trained(x), trained(x))


def test_native_code_goes_into_the_file_when_asked_for(models: Path, tmp_path: Path, graphc: Graphc):
    path = tmp_path / "n.gcm"
    done = graphc("compile", f"{models}:double", "--input", "x:f64[3]", "-o", path, "--native", "--json")
    facts = json.loads(done.out)
    assert facts["native"] and facts["path"] == str(path) and facts["bytes"] == path.stat().st_size
    assert facts["inputs"] == [{"name": "x", "dtype": "f64", "shape": [3]}]
    assert list(facts["stages"]) == ["optimized", "lowered", "scheduled", "llvm", "object"]
    model = load(path, trust=True)
    assert model.seconds is None
    np.testing.assert_array_equal(model(np.ones(3)), [2, 2, 2])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["Missing", "--input", "x:f32[2,6]"], console.USAGE, "has no 'Missing'"),
        (["Sized", "--input", "x:f32[2,6]"], console.USAGE, "needs arguments (size)"),
        (["Net"], console.USAGE, "no type for input 'x'"),
        (["Net", "--input", "x:f32"], console.COMPILE, "inner dimensions|dimension"),
        (["Net", "--input", "x:g32[2,6]"], console.USAGE, "unknown element type 'g32'"),
        (["Net", "--input", "y:f32[2,6]"], console.USAGE, "no input 'y'"),
        (["Net", "--input", "x:f32[2,7]"], console.COMPILE, "7"),
        (["Net", "--input", "x:f32[2,6]", "--weights", "missing.npz"], console.USAGE, "missing.npz: no such file"),
        (["Branching", "--input", "x:f32[2]"], console.COMPILE, "if x.sum() > 0"),
        (["Wrong", "--input", "x:f32[2,3]"], console.COMPILE, "return x @ x"),
        (["Raising", "--input", "x:f32[2]"], console.COMPILE, "KeyError: 'nothing here'"),
        (["fails", "--input", "x:f32[2]"], console.COMPILE, "ZeroDivisionError"),
    ],
)
def test_what_is_wrong_is_said(
    models: Path, tmp_path: Path, graphc: Graphc, arguments: list[str], code: int, message: str
):
    path = tmp_path / "out.gcm"
    done = graphc("compile", f"{models}:{arguments[0]}", *arguments[1:], "-o", path)
    assert done.code == code
    assert done.err.startswith("error: ") and any(part in done.err for part in message.split("|"))
    assert not done.out and not path.exists()


def test_precision(models: Path, tmp_path: Path, graphc: Graphc):
    path = tmp_path / "wide.gcm"
    arguments = ["compile", f"{models}:Wide", "--input", "x:f32[2,64]", "-o", path]
    assert graphc(*arguments).code == console.OK
    size = path.stat().st_size
    assert graphc(*arguments, "--precision", "bf16", "--native").code == console.OK
    assert {t.dtype for t in model_content.load(path).manifest.tensors} == {"bf16", "f32"}
    assert graphc(*arguments, "--precision", "int8").code == console.OK
    assert path.stat().st_size < size / 2 and load(path)(np.ones((2, 64), np.float32)).shape == (2, 80)
    assert graphc(*arguments, "--precision", "fp4").code == console.USAGE


def test_weights_that_do_not_fit(models: Path, tmp_path: Path, graphc: Graphc):
    np.savez(tmp_path / "w.npz", other=np.zeros(3))
    command = ["compile", f"{models}:Net", "--input", "x:f32[2,6]", "-o", tmp_path / "o.gcm", "--weights"]
    assert graphc(*command, tmp_path / "w.npz").code == console.MISMATCH
    (tmp_path / "d.npz").write_bytes(b"PK damaged")
    assert graphc(*command, tmp_path / "d.npz").code == console.DAMAGED


def test_places_that_cannot_be_written(models: Path, tmp_path: Path, graphc: Graphc):
    command = ["compile", f"{models}:Net", "--input", "x:f32[2,6]", "-o"]
    done = graphc(*command, tmp_path / "no" / "folder.gcm")
    assert done.code == console.USAGE and "there is no folder" in done.err
    assert graphc(*command, tmp_path).code != console.OK
    assert tmp_path.is_dir()


def test_a_failed_compile_leaves_the_old_file(models: Path, net: Path, graphc: Graphc):
    before = net.read_bytes()
    assert graphc("compile", f"{models}:Net", "--input", "x:f32[2,7]", "-o", net).code == console.COMPILE
    assert net.read_bytes() == before


def test_the_suffix_of_another_format_is_refused(models: Path, tmp_path: Path, graphc: Graphc):
    done = graphc("compile", f"{models}:double", "--input", "x:f64[3]", "-o", tmp_path / "m.tflite")
    assert done.code == console.USAGE and not list(tmp_path.glob("m.*"))
    assert "graphc writes .gcm and .onnx files, no .tflite" in done.err and "m.gcm or m.onnx" in done.err


def test_a_file_of_onnx_is_written(models: Path, tmp_path: Path, graphc: Graphc):
    pytest.importorskip("onnx", reason="exporting to ONNX needs the package onnx")
    path = tmp_path / "net.onnx"
    arguments = ["compile", f"{models}:Net", "--input", "x:f32[batch=1..64,6]", "-o", path]
    done = graphc(*arguments)
    assert done.code == console.OK and done.out.startswith(f"{path}: Net(x: f32[batch,6]) -> (output: f32[batch,4]), ")
    assert "traced and written" in done.err and path.stat().st_size
    assert json.loads(graphc(*arguments, "--opset", "21", "--json").out)["outputs"][0]["shape"] == ["batch", 4]
    assert graphc(*arguments, "--opset", "3").code == console.COMPILE


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("net.onnx", ["--native"], "--native is for .gcm files"),
        ("net.onnx", ["--precision", "int8"], "--precision is for .gcm files"),
        ("net.gcm", ["--opset", "20"], "--opset is for .onnx files"),
    ],
)
def test_options_of_the_other_format_are_refused(
    models: Path, tmp_path: Path, graphc: Graphc, name: str, option: list[str], message: str
):
    done = graphc("compile", f"{models}:Net", "--input", "x:f32[2,6]", "-o", tmp_path / name, *option)
    assert done.code == console.USAGE and message in done.err and not list(tmp_path.glob("net.*"))


def test_weights_with_more_names_than_the_model_say_which_option_takes_them(
    models: Path, tmp_path: Path, graphc: Graphc
):
    model = targets.resolve(f"{models}:Net").eval()
    np.savez(tmp_path / "w.npz", extra=np.ones(3), **{k: v.numpy() for k, v in model.state_dict().items()})
    arguments = ["compile", f"{models}:Net", "--input", "x:f32[2,6]", "--weights", tmp_path / "w.npz"]
    refused = graphc(*arguments, "-o", tmp_path / "n.gcm")
    assert refused.code != console.OK
    assert "unexpected keys: 'extra'" in refused.err and "--no-strict" in refused.err
    assert graphc(*arguments, "-o", tmp_path / "n.gcm", "--no-strict").code == console.OK


def test_random_weights_are_told_when_they_are_written(models: Path, tmp_path: Path, graphc: Graphc):
    arguments = ["--input", "x:f32[2,6]", "-o", tmp_path / "n.gcm"]
    note = "note: the file holds the model's random initial weights; pass --weights FILE to use trained ones"
    for name in ("Net", "make"):
        assert note in graphc("compile", f"{models}:{name}", *arguments).err.splitlines()
    done = graphc("compile", f"{models}:Net", *arguments, "--json")
    assert note in done.err and json.loads(done.out)["name"] == "Net"
    assert graphc("compile", f"{models}:net", *arguments).err.count("note:") == 0
    weights = ["--weights", tmp_path / "n.gcm"]
    assert graphc("compile", f"{models}:Net", *arguments, *weights).err.count("note:") == 0
    assert graphc("compile", f"{models}:double", "--input", "x:f32[2]", *arguments[2:]).err.count("note:") == 0


@pytest.mark.parametrize("command", ["compile", "ir", "explain", "profile", "tune", "check", "viz", "summary"])
def test_commands_with_weights_take_what_fits_by_name(
    models: Path, tmp_path: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch, command: str
):
    monkeypatch.delenv("GRAPHC_CACHE")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    model = targets.resolve(f"{models}:Net").eval()
    np.savez(tmp_path / "w.npz", extra=np.ones(3), **{k: v.numpy() for k, v in model.state_dict().items()})
    more = {
        "compile": ["-o", tmp_path / "n.gcm"],
        "viz": ["-o", tmp_path / "n.svg"],
        "ir": ["--stage", "traced"],
        "profile": ["--seconds", 0.01, "--rounds", 1],
        "tune": ["--seconds", 0.01],
    }
    arguments = [command, f"{models}:Net", "--input", "x:f32[2,6]", "--weights", tmp_path / "w.npz"]
    arguments += more.get(command, [])
    refused = graphc(*arguments)
    assert refused.code == console.MISMATCH and "pass --no-strict to load only the names that fit" in refused.err
    assert graphc(*arguments, "--no-strict").code == console.OK


def test_native_code_for_another_machine(models: Path, tmp_path: Path, graphc: Graphc):
    path = tmp_path / "n.gcm"
    arguments = ["compile", f"{models}:double", "--input", "x:f64[3]", "-o", path, "--target", "neon"]
    done = graphc(*arguments, "--native", "--json")
    native = model_content.load(path).first.natives[0].manifest
    assert done.code == console.OK and native is not None and native.target.triple.startswith("aarch64")
    refused = graphc(*arguments)
    assert refused.code == console.USAGE and "--native" in refused.err


@pytest.mark.parametrize("name", ["Sines", "late"])
def test_passes_of_a_user_go_over_the_graph(passes: Path, tmp_path: Path, graphc: Graphc, name: str):
    path = tmp_path / "n.gcm"
    arguments = ["compile", f"{passes}:cosine", "--input", "x:f32[5]", "-o", path]
    assert graphc(*arguments, "--passes", f"{passes}:{name}").code == console.OK
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    np.testing.assert_allclose(load(path)(x), np.sin(x), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("value", console.USAGE, "--passes: 3 is not a pass"),
        ("unknown", console.USAGE, "runs after 'fold_batch_norm', which is not a pass of the pipeline"),
        ("Missing", console.USAGE, "has no 'Missing'"),
        ("Fails", console.COMPILE, "ZeroDivisionError"),
    ],
)
def test_what_is_wrong_with_passes_is_said(
    passes: Path, tmp_path: Path, graphc: Graphc, name: str, code: int, message: str
):
    arguments = ["compile", f"{passes}:cosine", "--input", "x:f32[5]", "-o", tmp_path / "n.gcm"]
    done = graphc(*arguments, "--passes", f"{passes}:{name}")
    assert done.code == code and message in done.err
    assert not (tmp_path / "n.gcm").exists()


REFLECTED = """
from graphc import nn


class Reflected(nn.Module):
    def forward(self, x):
        return nn.functional.pad(x, (0, 64), mode="reflect")
"""


def test_expected_sizes_are_those_of_shape_or_ones_that_the_model_accepts(tmp_path: Path, graphc: Graphc):
    models, file = tmp_path / "reflected.py", tmp_path / "net.gcm"
    models.write_text(REFLECTED)
    target = (f"{models}:Reflected", "--input", "x:f32[rows=1..64,time=1..1000]", "-o", file, "--golden", "1")
    for options, hints in (((), [32, 65]), (("--shape", "rows=3", "--shape", "time=500"), [3, 500])):
        done = graphc("compile", *target, *options, "--json")
        assert done.code == console.OK, done.err
        assert [d["hint"] for d in json.loads(done.out)["dims"]] == hints
        assert load(file)(np.ones((2, 70), np.float32)).shape == (2, 134)
        assert graphc("selftest", file).code == console.OK


@pytest.mark.parametrize(
    ("types", "shape", "message"),
    [
        ("x:f32[rows=1..64,6]", "row=3", "there is no dimension row"),
        ("x:f32[rows=1..64,6]", "rows=65", "dimension rows is 65, outside of 1..64"),
        ("x:f32[2,6]", "rows=3", "--shape rows: the model has no named dimension"),
    ],
)
def test_unsuitable_expected_sizes_are_refused(
    models: Path, tmp_path: Path, graphc: Graphc, types: str, shape: str, message: str
):
    done = graphc("compile", f"{models}:Net", "--input", types, "--shape", shape, "-o", tmp_path / "net.gcm")
    assert done.code == console.USAGE and message in done.err


def test_a_model_that_reads_sizes_in_each_call_is_a_chain_of_programs(tmp_path: Path, graphc: Graphc):
    model, path = tmp_path / "net.py", tmp_path / "net.gcm"
    model.write_text("def positive(x):\n    return x[x > 0]\n")
    arguments = ["compile", f"{model}:positive", "--input", "x:f32[n=1..64]", "--golden", "1", "--native"]
    done = graphc(*arguments, "-o", path, "--json")
    assert done.code == console.OK
    facts = json.loads(done.out)
    assert facts["native"] and facts["stages"] and facts["outputs"][0]["shape"] == ["count_0"]
    assert [e.spec.name for e in model_content.load(path).entries] == ["forward", "forward.0", "forward.1"]
    assert load(path)(np.float32([1, -1, 2])).tolist() == [1, 2]
    assert graphc("selftest", path, "--trust").out.count("1 calls") == 2
    assert json.loads(graphc("inspect", path, "--json").out)["ops"]["gather"] == 1
    assert graphc("ir", path, "--entry", "forward.1").code == console.OK
    assert "so it is 2 graphs, not one" in graphc("ir", path).err
    assert graphc("diff", path, path).code == console.OK
    library = graphc(*arguments[:4], "-o", tmp_path / "net.so")
    assert library.code != console.OK and "export it to a .gcm file" in library.err
    assert graphc("compile", path, "-o", tmp_path / "again.gcm").code == console.OK
    assert load(tmp_path / "again.gcm")(np.float32([-1, 3])).tolist() == [3]
