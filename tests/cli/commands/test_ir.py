"""graphc ir: the text of every stage, from a target and from every kind of file, and back in again."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.cli import console
from graphc.compiler.compile import compile_graph
from tests.cli.conftest import Graphc
from tests.compiler.graphs import lookup

MARKS = {
    "traced": "graph @Net(",
    "optimized": "graph @Net(",
    "fused": "plan {",
    "lowered": "kernel @k0",
    "scheduled": "kernel @k0",
    "llvm": "define void @graphc_entry",
    "asm": "graphc_entry:",
}


@pytest.mark.parametrize("stage", MARKS)
def test_stages_of_a_target(models: Path, graphc: Graphc, stage: str):
    done = graphc("ir", f"{models}:Net", "--input", "x:f32[2,6]", "--stage", stage)
    assert done.code == console.OK and MARKS[stage] in done.out and not done.err


@pytest.mark.parametrize("stage", MARKS)
def test_stages_of_a_model_file(net: Path, graphc: Graphc, stage: str):
    assert MARKS[stage] in graphc("ir", net, "--stage", stage).out


def test_the_traced_text_names_modules_and_lines(models: Path, graphc: Graphc):
    done = graphc("ir", f"{models}:Net", "--input", "x:f32[2,6]")
    assert 'param "fc.weight"' in done.out and "models.py:" in done.out


def test_texts_go_in_again(models: Path, graphc: Graphc):
    asm = graphc("ir", f"{models}:Net", "--input", "x:f32[2,6]", "--stage", "asm").out
    for stage, suffix in (("traced", "gc"), ("fused", "gcp"), ("lowered", "gck")):
        text = graphc("ir", f"{models}:Net", "--input", "x:f32[2,6]", "--stage", stage).out
        path = models.with_name(f"net.{suffix}")
        path.write_text(text)
        assert graphc("ir", path, "--stage", "asm").out == asm


def test_constants_are_read_from_beside_the_text(tmp_path: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_DUMP", str(tmp_path))
    compile_graph(lookup())
    (folder,) = tmp_path.iterdir()
    monkeypatch.delenv("GRAPHC_DUMP")
    for name in ("traced.gc", "fused.gcp", "lowered.gck"):
        assert graphc("ir", folder / name, "--stage", "llvm").code == console.OK
    (folder / "traced.npz").unlink()
    done = graphc("ir", folder / "traced.gc")
    assert done.code == console.COMPILE and "no data was passed" in done.err


def test_targets_of_other_machines(net: Path, graphc: Graphc):
    assert "fmla" in graphc("ir", net, "--stage", "asm", "--target", "neon").out
    assert "zmm" not in graphc("ir", net, "--stage", "asm", "--target", "avx2").out


def test_frozen_weights_are_constants(net: Path, graphc: Graphc):
    assert "param" in graphc("ir", net, "--stage", "optimized").out
    assert "param" not in graphc("ir", net, "--stage", "optimized", "--freeze").out


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("missing.gcm", None, console.USAGE, "no such file"),
        ("missing.txt", None, console.USAGE, "neither a target nor"),
        ("models.py", "", console.USAGE, "neither a target nor"),
        ("bad.gcm", "bad", console.DAMAGED, "not a graphc model file"),
        ("bad.gc", "graph @g( {", console.COMPILE, "error: "),
        ("bad.gcp", "graph @g( {", console.COMPILE, "error: "),
        ("bad.gck", "kernel", console.COMPILE, "error: "),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, graphc: Graphc, name: str, content: str | None, code: int, message: str):
    if content is not None:
        (tmp_path / name).write_text(content)
    done = graphc("ir", tmp_path / name)
    assert done.code == code and message in done.err


def test_a_program_has_no_graph(models: Path, graphc: Graphc):
    path = models.with_name("net.gck")
    path.write_text(graphc("ir", f"{models}:Net", "--input", "x:f32[2,6]", "--stage", "lowered").out)
    done = graphc("ir", path, "--stage", "traced")
    assert done.code == console.COMPILE and "has no graph" in done.err


def test_passes_are_stages_too(net: Path, graphc: Graphc):
    assert "matmul(" in graphc("ir", net, "--stage", "decompose").out
    assert graphc("ir", net, "--stage", "nests", "--target", "avx2").out.startswith("program @")
    told = " ".join(graphc("ir", "--help").out.split()).replace("- ", "-")  # names are broken at their hyphens
    assert "decompose, " in told and "thread-plan" in told


def test_unknown_stages_and_targets_are_usage_errors(net: Path, graphc: Graphc):
    assert graphc("ir", net, "--stage", "fast").code == console.USAGE
    assert graphc("ir", net, "--target", "abacus").code == console.USAGE


def test_stages_of_a_graph_that_passes_of_a_user_go_over(passes: Path, tmp_path: Path, graphc: Graphc):
    arguments = ["ir", f"{passes}:cosine", "--input", "x:f32[5]"]
    early, late = ["--passes", f"{passes}:Sines"], ["--passes", f"{passes}:late"]
    assert "sin(" in graphc(*arguments, *early).out
    assert "cos(" in graphc(*arguments, *late).out
    assert "sin(" in graphc(*arguments, *late, "--stage", "optimized").out
    text = tmp_path / "cosine.gck"
    text.write_text(graphc(*arguments, "--stage", "lowered").out)
    refused = graphc("ir", text, "--stage", "scheduled", *early)
    assert refused.code == console.USAGE and "holds a lowered program" in refused.err
