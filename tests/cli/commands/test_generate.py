"""``graphc generate``: tokens, texts, and wrong arguments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphc import llm
from graphc.cli import console
from tests.cli.conftest import Graphc
from tools.gguf_files import write_random_decoder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_random_decoder(tmp_path / "model.gguf")


def test_tokens(model: Path, graphc: Graphc):
    expected = list(llm.Generator(llm.load(model, places=7)).greedy([5, 8, 13], 4))
    done = graphc("generate", model, "--ids", 5, 8, 13, "--tokens", 4)
    assert (done.code, done.out.split()) == (0, [str(n) for n in expected])
    data = json.loads(graphc("generate", model, "--ids", 5, 8, 13, "--tokens", 4, "--json").out)
    assert (data["prompt"], data["tokens"], data["text"]) == ([5, 8, 13], expected, "")


def test_text_is_printed_as_it_comes(model: Path, graphc: Graphc):
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    done = graphc("generate", model, "ab", "--tokens", 6)
    data = json.loads(graphc("generate", model, "ab", "--tokens", 6, "--json").out)
    assert (done.code, done.out) == (0, data["text"] + "\n") and len(data["prompt"]) == 2


def test_a_model_file_and_its_tokenizer(model: Path, graphc: Graphc, tmp_path: Path):
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    file, text = tmp_path / "model.gcm", ("ab", "--tokens", 6)
    assert graphc("compile", model, "--places", 128, "--native", "-o", file).code == console.OK
    expected = graphc("generate", model, *text).out
    assert graphc("generate", file, *text, "--tokenizer", model, "--trust").out == expected
    assert graphc("generate", file, *text, "--tokenizer", model).out == expected
    missing = graphc("generate", file, *text)
    assert missing.code == console.USAGE and "--tokenizer model.gguf" in missing.err
    many = graphc("generate", file, "ab", "--tokens", 200, "--tokenizer", model)
    assert many.code != console.OK and "exceed the 128 places" in many.err


def test_options_of_sampling_and_stops(model: Path, graphc: Graphc, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    samplings = []

    def generate(self: llm.Generator, ids: list[int], count: int, stops: object, sampling: llm.Sampling) -> list[int]:
        samplings.append(sampling)
        return list(b"one two three")

    monkeypatch.setattr(llm.Generator, "generate", generate)
    monkeypatch.setattr(llm.Tokenizer, "decode", lambda self, tokens: bytes(tokens).decode())
    options = ("--temperature", 0.5, "--top-k", 4, "--top-p", 0.9, "--min-p", 0.1, "--repetition-penalty", 1.2)
    done = graphc("generate", model, "ab", *options, "--seed", 7, "--stop", " th", "--stop", "other")
    assert done.out == "one two\n"
    assert samplings == [llm.Sampling(1.2, 0.5, 4, 0.9, 0.1, 7)]


def test_the_cache_of_a_prompt(model: Path, graphc: Graphc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("graphc.llm.compiled_programs.compile", lambda step, dims: step)
    counts, read = [], llm.Generator.common
    monkeypatch.setattr(llm.Generator, "common", lambda self, ids: [counts.append(read(self, ids)), counts[-1]][1])
    arguments = ("generate", model, "--tokens", 4, "--prompt-cache", tmp_path / "text.npz", "--ids", 5, 8, 13)
    first = graphc(*arguments)
    assert graphc(*arguments).out == first.out
    longer = graphc(*arguments, *first.out.split(), 7)
    assert longer.code == 0 and counts == [0, 3, 6]
    (tmp_path / "text.npz").write_bytes(b"x")
    assert graphc(*arguments).code == console.DAMAGED
    assert graphc(*arguments, "--prompt-cache", "text.bin").code == console.USAGE


def test_errors(model: Path, graphc: Graphc):
    assert graphc("generate", model).code == console.USAGE
    assert graphc("generate", model, "ab", "--ids", 1).code == console.USAGE
    assert graphc("generate", model, "--ids", 1, "--tokens", 0).code == console.USAGE
    assert graphc("generate", model, "--ids", 1, "--stop", "a").code == console.USAGE
    wrong = graphc("generate", model, "--ids", 1, "--top-p", 2)
    assert wrong.code == console.USAGE and "top_p" in wrong.err
    model.write_bytes(model.read_bytes()[:100])
    assert graphc("generate", model, "--ids", 1).code == console.DAMAGED
