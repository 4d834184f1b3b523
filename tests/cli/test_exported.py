"""``.pt2`` files in every command that takes a model: what PyTorch computed comes out, and errors are told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.cli import console, exported
from tests.cli.conftest import Graphc
from tests.interop.pt2.kept import FILES, edited

PAIRS = FILES / "convolution.pt2"


def computed(name: str, call: int = 0) -> tuple[list[Any], Any]:
    """Arguments and results of PyTorch."""
    args, _, results, _ = json.loads((FILES / f"{name}.json").read_text(encoding="utf-8"))["calls"][call]
    return args, results


def array(tree: Any) -> np.ndarray:
    return np.array(tree["data"], tree["dtype"])


@pytest.mark.parametrize("call", [0, 1])
def test_run_gives_what_pytorch_gives(tmp_path: Path, graphc: Graphc, call: int):
    (x,), expected = computed("convolution", call)
    np.save(tmp_path / "x.npy", array(x))
    done = graphc("run", PAIRS, "--input", f"x=@{tmp_path / 'x.npy'}", "--output", tmp_path / "y.npy")
    assert done.code == console.OK, done.err
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), array(expected), atol=1e-5)


def test_nested_inputs_and_outputs_have_names(graphc: Graphc):
    done = graphc("run", FILES / "nested.pt2", "--input", "parts.pair.0=ones", "--input", "parts.pair.1=ones", "--json")
    names = [o["name"] for o in json.loads(done.out)["outputs"]]
    assert names == ["sum", "sorted.0", "sorted.1", "pair.0", "pair.1.0"]


def test_sizes_are_chosen_by_name(graphc: Graphc):
    inputs = json.loads(graphc("inspect", PAIRS, "--json").out)["inputs"]
    (name,) = [s for s in inputs[0]["shape"] if isinstance(s, str)]
    assert graphc("run", PAIRS, "--input", "x=ones", "--shape", f"{name}=3").out.startswith("output: f32[3,4]")
    done = graphc("run", PAIRS, "--input", "x=ones", "--shape", f"{name}=33")
    assert (done.code, "1..32" in done.err) == (console.USAGE, True)


def test_compile_writes_a_model_file(tmp_path: Path, graphc: Graphc):
    (x,), expected = computed("convolution", 1)
    done = graphc("compile", PAIRS, "-o", tmp_path / "a.gcm")
    assert (done.code, done.out.count("Convolution(x: f32[size_")) == (console.OK, 1)
    np.testing.assert_allclose(gc.load(tmp_path / "a.gcm")(array(x)), array(expected), atol=1e-5)


def test_inspect_tells_weights_and_ops(graphc: Graphc):
    facts = json.loads(graphc("inspect", FILES / "tied.pt2", "--json").out)
    assert [w["name"] for w in facts["weights"]] == ["tokens.weight", "norm.weight", "norm.bias"]
    assert facts["bytes"] == (FILES / "tied.pt2").stat().st_size and facts["ops"]["gather"] == 1
    assert facts["name"] == "Tied" and facts["native"] is None


@pytest.mark.parametrize(
    "command",
    [
        ("ir", "--stage", "traced"),
        ("explain",),
        ("bench", "--rounds", 1, "--seconds", 0.01),
        ("profile", "--rounds", 1, "--seconds", 0.01),
    ],
)
def test_other_commands_take_the_file(graphc: Graphc, command: tuple[Any, ...]):
    done = graphc(command[0], PAIRS, *command[1:])
    assert done.code == console.OK, done.err


def test_a_picture_is_drawn(tmp_path: Path, graphc: Graphc):
    assert graphc("viz", PAIRS, "-o", tmp_path / "a.svg").code == console.OK
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_other_weights_are_taken_by_name(tmp_path: Path, graphc: Graphc):
    state = gc.from_pt2(FILES / "tied.pt2").state_dict()
    gc.save_state({n: gc.zeros_like(t) for n, t in state.items()}, tmp_path / "w.npz")
    path = tmp_path / "a.gcm"
    assert graphc("compile", FILES / "tied.pt2", "--weights", tmp_path / "w.npz", "-o", path).code == console.OK
    found = gc.load(path)(np.ones((2, 5), np.int64))
    np.testing.assert_allclose(found, np.full((2, 5, 11), -np.log(11)), rtol=1e-6)


def test_errors_have_the_codes_of_their_kinds(tmp_path: Path, graphc: Graphc):
    def break_version(tree: Any) -> None:
        tree["schema_version"]["major"] = 7

    def break_operator(tree: Any) -> None:
        tree["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.mylib.secret.default"

    for command in ("run", "inspect", "ir", "explain", "bench"):
        more = ("--stage", "traced") if command == "ir" else ()
        for edit, code in ((break_version, console.DAMAGED), (break_operator, console.COMPILE)):
            assert graphc(command, edited(tmp_path / "a.pt2", "tied", edit), *more).code == code
        assert graphc(command, tmp_path / "none.pt2", *more).code == console.USAGE
    assert graphc("compile", PAIRS, "--input", "x:f32[1]", "-o", tmp_path / "a.gcm").code == console.USAGE
    assert graphc("compile", PAIRS, "--train", "-o", tmp_path / "a.gcm").code == console.COMPILE
    assert graphc("summary", PAIRS).code == console.USAGE


def test_a_fresh_process_runs_a_file_without_torch():
    code = f"""
import sys
sys.modules["torch"] = None
from graphc.cli.main import main
sys.exit(main(["run", {str(PAIRS)!r}, "--input", "x=ones"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[:12]) == (0, "output: f32[")


def test_files_are_told_by_their_suffix():
    assert (
        exported.is_exported("a/b.pt2") and exported.is_exported("a/b.mlir") and not exported.is_exported("net.py:pt2")
    )


def test_entries_of_model_files_are_loaded_by_name(tmp_path: Path, graphc: Graphc):
    path = tmp_path / "s.gcm"
    gc.export(
        {"add": gc.Entry(lambda x: x + 1, gc.zeros(2)), "double": gc.Entry(lambda x: x * 2, gc.ones(2))}, path=path
    )
    np.save(tmp_path / "x.npy", np.array([1, 2], np.float32))
    done = graphc("run", path, "--entry", "double", "--input", f"x=@{tmp_path / 'x.npy'}", "--json")
    assert json.loads(done.out)["outputs"][0]["values"] == [2, 4]
    refused = graphc("bench", path, "--entry", "half", "--seconds", "0.01")
    assert refused.code == console.USAGE and "--entry add or double" in refused.err
    assert graphc("bench", path, "--entry", "double", "--seconds", "0.01", "--rounds", "2").code == console.OK
    for command in ("ir", "explain", "check", "profile"):
        done = graphc(command, path, "--entry", "double")
        assert done.code == console.OK, done.err
    refused = graphc("ir", PAIRS, "--entry", "double")
    assert refused.code == console.USAGE and "names an entry of a .gcm file" in refused.err
