"""``graphc bench`` of language models: figures, and options that it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphc.cli import console, language_bench
from tests.cli.conftest import Graphc
from tests.cli.field_check import mismatches
from tools.gguf_files import write_random_decoder


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("graphc.llm.compiled_programs.compile", lambda step, dims: step)
    return write_random_decoder(tmp_path / "model.gguf")


def test_figures(model: Path, graphc: Graphc):
    arguments = ("bench", model, "--prompt", 5, "--tokens", 3, "--duration", 0.01)
    done = graphc(*arguments, "--json")
    data = json.loads(done.out)
    assert data["prompt"]["throughput"] == pytest.approx(5 / data["prompt"]["seconds"])
    assert data["generation"]["throughput"] == pytest.approx(1 / data["generation"]["seconds"])
    assert data["rounds"] == language_bench.LEAST_ROUNDS
    names = {name: data[name] for name in ("prompt", "generation")}
    assert mismatches(names, language_bench.JSON) == []
    table = graphc(*arguments).out.splitlines()
    assert [line.split()[:2] for line in table[1:]] == [["prompt", "5"], ["generation", "3"]]


def test_options_that_do_not_fit(model: Path, graphc: Graphc, tmp_path: Path):
    options = (
        ("--rate", 5),
        ("--target", "sse2"),
        ("--assert", "p50<1s"),
        ("--streams", 2),
        ("--trust",),
        ("--fill", "ones"),
    )
    for option in options:
        done = graphc("bench", model, *option)
        assert done.code == console.USAGE and f"{option[0]} does not apply" in done.err
    assert graphc("bench", model, "--tokens", 1).code == console.USAGE
    assert graphc("bench", tmp_path / "net.gcm", "--prompt", 5).code == console.USAGE
