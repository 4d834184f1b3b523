"""graphc run: numbers in files and on stdout, the best classes, and every kind of wrong input."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.cli import console
from graphc.cli.commands.run import top
from graphc.models.model_file import load
from tests.cli.conftest import Graphc


def test_the_output_is_written_and_described(net: Path, x: Path, tmp_path: Path, graphc: Graphc):
    done = graphc("run", net, "--input", f"x=@{x}", "--output", tmp_path / "y.npy")
    assert (done.code, done.out) == (console.OK, f"output: f32[2,4] -> {tmp_path / 'y.npy'}\n")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), load(net)(np.load(x)))


def test_small_outputs_are_printed(net: Path, graphc: Graphc):
    done = graphc("run", net, "--input", "x=zeros")
    assert done.out.startswith("output: f32[2,4] = [[")
    again = graphc("run", net, "--input", "zeros")
    assert again.out == done.out


def test_the_best_classes(net: Path, x: Path, graphc: Graphc):
    expected = np.exp(load(net)(np.load(x)))
    done = graphc("run", net, "--input", f"x=@{x}", "--print-top", 2)
    lines = done.out.splitlines()
    assert lines[0] == "output: f32[2,4]" and len(lines) == 5
    assert lines[1].split() == ["[0]", "class", str(expected[0].argmax()), f"{expected[0].max():.2%}"]
    facts = json.loads(graphc("run", net, "--input", f"x=@{x}", "--print-top", 2, "--json").out)
    best = facts["outputs"][0]["top"][1][0]
    assert best["class"] == expected[1].argmax() and best["probability"] == pytest.approx(expected[1].max(), rel=1e-5)


def test_json(net: Path, x: Path, tmp_path: Path, graphc: Graphc):
    facts = json.loads(graphc("run", net, "--input", f"x=@{x}", "--json").out)
    np.testing.assert_allclose(facts["outputs"][0]["values"], load(net)(np.load(x)), rtol=1e-6)
    facts = json.loads(graphc("run", net, "--input", f"x=@{x}", "--json", "--output", tmp_path / "y.npy").out)
    assert facts["outputs"][0]["files"] == [str(tmp_path / "y.npy")] and "values" not in facts["outputs"][0]


def test_several_inputs_and_outputs(two: Path, tmp_path: Path, graphc: Graphc):
    arguments = ["run", two, "--input", "b=[1,2,3]", "--input", "a=ones"]
    done = graphc(*arguments)
    assert done.out.splitlines() == [
        "sum: f32[3] = [2., 3., 4.]",
        "pair.0: f32[3] = [2., 2., 2.]",
        "pair.1: f32[3] = [1., 2., 3.]",
    ]
    done = graphc(*arguments, "--output", f"pair.1={tmp_path}/b.npy", "--output", f"{tmp_path}/all.npz")
    assert done.code == console.OK
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), [1, 2, 3])
    with np.load(tmp_path / "all.npz") as stored:
        assert sorted(stored.files) == ["pair.0", "pair.1", "sum"]


@pytest.mark.parametrize(
    ("values", "code", "message"),
    [
        ([], console.MISMATCH, "no value for x: f32[2,6]"),
        (["y=zeros"], console.MISMATCH, "unknown input 'y'"),
        (["x=zeros", "x=ones"], console.MISMATCH, "given twice"),
        (["x=[1,2]"], console.MISMATCH, "has shape [2], the model takes [2, 6]"),
        (["x=what"], console.USAGE, "is not a value"),
        (["x=@missing.npy"], console.USAGE, "missing.npy: no such file"),
        (["x=@shape.npy"], console.MISMATCH, "has shape [6, 2]"),
        (["x=@type.npy"], console.MISMATCH, "element type float64, the model takes float32"),
        (["x=@damaged.npy"], console.DAMAGED, "the header of the .npy file"),
        (["x=@notes.txt"], console.USAGE, "notes.txt: no such file"),
        (["x=@type.txt"], console.USAGE, "is not an array file"),
        (["x=@empty"], console.USAGE, "has no images and no arrays"),
    ],
)
def test_wrong_inputs(
    net: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch, values: list[str], code: int, message: str
):
    monkeypatch.chdir(net.parent)
    np.save("shape.npy", np.zeros((6, 2), np.float32))
    np.save("type.npy", np.zeros((2, 6)))
    Path("type.txt").write_text("")
    Path("empty").mkdir()
    Path("damaged.npy").write_bytes(b"\x93NUMPY\x01")
    done = graphc("run", net, *(part for value in values for part in ("--input", value)))
    assert done.code == code
    assert done.err.startswith("error: ") and message in done.err
    assert not done.out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five rows of Net as files."""
    place = tmp_path / "rows"
    place.mkdir()
    for i, row in enumerate(np.random.default_rng(1).standard_normal((5, 6)).astype(np.float32)):
        np.save(place / f"{i}.npy", row)
    return place


def test_a_folder_is_a_batch(net: Path, folder: Path, tmp_path: Path, graphc: Graphc):
    done = graphc("run", net, "--input", f"x=@{folder}", "--output", tmp_path / "y.npy", "--print-top", 1)
    assert done.code == console.OK and done.err == ""
    rows = [np.load(path) for path in sorted(folder.iterdir())]
    expected = np.concatenate([load(net)(np.stack(part)) for part in (rows[:2], rows[2:4], [rows[4], rows[4]])])[:5]
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)
    lines = done.out.splitlines()
    assert lines[0].startswith("output: f32[5,4] -> ") and len(lines) == 6
    assert [line.split(":")[0].strip() for line in lines[1:]] == [f"{i}.npy" for i in range(5)]
    facts = json.loads(graphc("run", net, "--input", f"x=@{folder}", "--json").out)
    assert facts["files"] == [str(folder / f"{i}.npy") for i in range(5)] and len(facts["outputs"][0]["values"]) == 5
    done = graphc("run", net, "--input", f"x=@{folder}", "--taps")
    assert done.code == console.USAGE and "--taps measures a single call" in done.err


def test_outputs_are_compared_with_expected_ones(net: Path, x: Path, tmp_path: Path, graphc: Graphc):
    expected = np.asarray(load(net)(np.load(x))).copy()
    np.save(tmp_path / "y.npy", expected)
    run = ["run", net, "--input", f"x=@{x}", "--expect", tmp_path / "y.npy"]
    done = graphc(*run)
    assert done.code == console.OK and "output: equal" in done.out
    expected[1, 2] += 0.5
    np.save(tmp_path / "y.npy", expected)
    done = graphc(*run)
    assert done.code == console.WRONG and "output: 1 of 8 elements differ, 1 beyond" in done.out
    assert "the worst is output[1, 2] = " in done.out
    assert graphc(*run, "--atol", "0.6").code == console.OK
    facts = json.loads(graphc(*run, "--json").out)
    assert facts["expected"][0]["worst"]["index"] == [1, 2] and not facts["expected"][0]["good"]
    np.save(tmp_path / "y.npy", expected[:1])
    assert graphc(*run).code == console.WRONG


def test_expected_outputs_have_names(two: Path, tmp_path: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    np.savez("all.npz", **{"sum": np.full(3, 2, np.float32), "pair.1": np.ones(3, np.float32)})
    np.savez("other.npz", other=np.ones(3))
    np.save("sum.npy", np.full(3, 2, np.float32))
    run = ["run", two, "--fill", "ones", "--expect"]
    assert graphc(*run, "all.npz").out.count(": equal") == 2
    assert graphc(*run, "sum=sum.npy").code == console.OK
    assert graphc(*run, "sum=all.npz:sum").code == console.OK
    for texts, message in (
        (["sum.npy"], "names none of the outputs sum, pair.0, pair.1"),
        (["other.npz"], "'other' is not an output"),
        (["all.npz", "--expect", "sum=sum.npy"], "is given twice"),
        (["missing.npy"], "no such file"),
        (["missing.npz"], "no such file"),
        (["sum.txt"], "sum.txt: no such file"),
    ):
        done = graphc(*run, *texts)
        assert done.code == console.USAGE and message in done.err


def test_bf16_is_shown_and_written_as_f32(tmp_path: Path, graphc: Graphc):
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).bfloat16()
    with gc.no_grad():
        model[0].weight.copy_(gc.tensor([[1.5, 0], [0, -2]]))
        model[0].bias.zero_()
    path, out = tmp_path / "bf16.gcm", tmp_path / "y.npy"
    gc.export(model, gc.ones(1, 2).bfloat16(), path=path)
    done = graphc("run", path, "--input", "[[1, -3]]")
    assert done.out == "output: bf16[1,2] = [[1.5, 6. ]]\n"
    assert json.loads(graphc("run", path, "--input", "[[1, -3]]", "--json").out)["outputs"][0]["values"] == [[1.5, 6.0]]
    graphc("run", path, "--input", "[[1, -3]]", "--output", out)
    assert np.load(out).dtype == np.float32 and np.load(out).tolist() == [[1.5, 6.0]]
    done = graphc("run", path, "--input", f"@{out}", "--expect", out, "--atol", 0)
    assert done.code == console.WRONG and "output[0, 1] = 0, expected 6" in done.out
    assert "bf16[1,2]  3.75" in graphc("run", path, "--input", "[[1, -3]]", "--taps").out


def test_statistics_of_what_modules_make(net: Path, x: Path, graphc: Graphc):
    done = graphc("run", net, "--input", f"x=@{x}", "--taps")
    assert done.code == console.OK and done.out.splitlines()[-1].split()[:2] == ["fc", "f32[2,4]"]
    facts = json.loads(graphc("run", net, "--input", f"x=@{x}", "--taps", "--json").out)
    assert [tap["module"] for tap in facts["taps"]] == ["fc"]


def test_what_is_not_given_is_filled_or_told_together(two: Path, graphc: Graphc):
    assert "sum: f32[3] = [3., 3., 3.]" in graphc("run", two, "--input", "a=[2,2,2]", "--fill", "ones").out
    first, again, other = (graphc("run", two, "--fill", "random", "--seed", seed).out for seed in (1, 1, 2))
    assert first == again != other
    done = graphc("run", two)
    assert done.code == console.MISMATCH and "no value for a: f32[3], b: f32[3]" in done.err
    assert "pass --input a=[0.5,0.5,0.5] --input b=[0.5,0.5,0.5], or --fill random for all" in done.err
    assert graphc("run", two, "--fill", "ones", "--seed", "1").code == console.USAGE


def test_the_only_entry_has_a_name(two: Path, graphc: Graphc):
    assert graphc("run", two, "--fill", "ones", "--entry", "forward").code == console.OK
    assert graphc("run", two, "--fill", "ones", "--entry", "decode").code == console.USAGE


@pytest.mark.parametrize("index", [5, -1])
def test_an_index_out_of_range_is_an_error_and_no_output(tmp_path: Path, graphc: Graphc, index: int):
    path, output = tmp_path / "e.gcm", tmp_path / "y.npy"
    gc.export(nn.Embedding(5, 3), gc.tensor([0, 1, 2]), path=str(path))
    done = graphc("run", path, "--input", f"[0,1,{index}]", "--output", output)
    assert (done.code, done.out) == (console.MISMATCH, "")
    assert done.err.startswith("error: ") and f"index {index} (at [2]) is out of range" in done.err
    assert "pass values from 0 to 4" in done.err and not output.exists()
    assert graphc("run", path, "--input", "[0,1,4]", "--output", output).code == console.OK and output.exists()


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (["y.txt"], "is not an .npy or .npz file"),
        (["no/folder.npy"], "there is no folder"),
        (["y.npy"], "names none of the outputs sum, pair.0, pair.1"),
        (["other=y.npy"], "names none of"),
        (["sum=y.npy", "pair.0=y.npy"], "is given twice"),
    ],
)
def test_wrong_outputs(two: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch, outputs: list[str], message: str):
    monkeypatch.chdir(two.parent)
    places = [part for value in outputs for part in ("--output", value)]
    done = graphc("run", two, "--input", "a=ones", "--input", "b=ones", *places)
    assert done.code == console.USAGE and message in done.err


def test_files_that_are_no_models(net: Path, x: Path, tmp_path: Path, graphc: Graphc):
    def code(path: object) -> int:
        return graphc("run", path, "--input", f"x=@{x}").code

    content = net.read_bytes()
    damaged = tmp_path / "damaged.gcm"
    assert code(tmp_path / "missing.gcm") == console.USAGE
    for bad in (b"", b"text", content[:100], content[:-1], content + b"!", content[:500] + b"\0\1" + content[502:]):
        damaged.write_bytes(bad)
        assert code(damaged) == console.DAMAGED
    assert code(x) == console.DAMAGED
    assert code(tmp_path) == console.DAMAGED
    damaged.write_bytes(content)
    assert code(damaged) == console.OK


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_files_that_may_not_be_read(net: Path, graphc: Graphc):
    net.chmod(0)
    assert graphc("run", net, "--input", "x=ones").code == console.USAGE


def test_trust_runs_the_code_in_the_file(models: Path, tmp_path: Path, graphc: Graphc):
    path = tmp_path / "n.gcm"
    graphc("compile", f"{models}:double", "--input", "x:f32[2]", "-o", path, "--native")
    plain, trusted = (graphc("run", path, "--input", "x=[1,2]", *more) for more in ([], ["--trust"]))
    assert plain.out == trusted.out == "output: f32[2] = [2., 4.]\n"


@pytest.mark.parametrize(
    ("array", "kind", "best"),
    [
        (np.log([[0.1, 0.7, 0.2]]), "probability", [(1, 0.7), (2, 0.2)]),
        (np.array([0.1, 0.7, 0.2]), "probability", [(1, 0.7), (2, 0.2)]),
        (np.array([[5.0, -1.0, 9.0]]), "score", [(2, 9.0), (0, 5.0)]),
        (np.array([3, 1, 2]), "score", [(0, 3.0), (2, 2.0)]),
        (np.array([1e30, 0.0]), "score", [(0, 1e30), (1, 0.0)]),
    ],
)
def test_kinds_of_scores(array: np.ndarray, kind: str, best: list[tuple[int, float]]):
    result = top(array, 2)
    assert result[0] == kind
    assert [label for label, _ in result[1][0]] == [label for label, _ in best]
    assert [score for _, score in result[1][0]] == pytest.approx([score for _, score in best])


def test_there_is_no_best_class_of_nothing(graphc: Graphc, net: Path):
    assert top(np.array(3.0), 2) == ("score", [])
    assert top(np.zeros((0, 3)), 2) == ("score", [])
    assert graphc("run", net, "--input", "x=ones", "--print-top", "0").code == console.USAGE
