"""The benchmark of language models: a small random file, and an engine that agrees for some tokens."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import language_models
from graphc.llm.blocks import dequantize
from graphc.llm.gguf_file import read_gguf
from tools.gguf_files import write_random_decoder


def test_times_of_a_small_model(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(language_models, "find_library", lambda name: None)
    file = str(write_random_decoder(tmp_path / "model.gguf"))
    arguments = [file, "--prompt", "5", "--tokens", "3", "--rounds", "1", "--json"]
    assert language_models.main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["equal tokens"] == {} and [row["engine"] for row in found["times"]] == ["graphc"]
    assert all(row["prompt ms"] > 0 and row["token ms"] > 0 for row in found["times"])


def test_tokens_are_compared_until_the_first_that_differs(tmp_path: Path):
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    file = str(write_random_decoder(tmp_path / "model.gguf"))
    engines = {"a": lambda prompt, n: iter([1, 2, 3]), "b": lambda prompt, n: iter([1, 5, 3])}
    assert set(language_models._equal_tokens(engines, file, 3).values()) == {1}


def test_perplexities_of_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    monkeypatch.setattr(language_models, "find_library", lambda name: None)
    file, text = str(write_random_decoder(tmp_path / "model.gguf")), tmp_path / "text.txt"
    text.write_text("a text")
    assert language_models.main([file, "--perplexity", str(text), "--window", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    exact, own = found["perplexities"]
    assert found["tokens"] == 6 and exact["difference %"] == 0 and abs(own["difference %"]) < 0.01
    assert own["perplexity"] == pytest.approx(exact["perplexity"], rel=1e-4) and own["perplexity"] > 1


def test_perplexity_of_an_engine_with_logits(tmp_path: Path):
    class Engine:
        def __init__(self, *arguments: object, **settings: object):
            self.scores = np.zeros((4, 8))

        def reset(self) -> None:
            self.scores[:] = 0

        def eval(self, tokens: list[int]) -> None:
            self.scores[np.arange(len(tokens)), tokens] = np.log(9)  # the token before has 9 of 16 parts

    options = argparse.Namespace(file="", window=4, threads=1)
    found = language_models._llama_cpp_perplexity(
        argparse.Namespace(Llama=Engine), options, "", np.array([3, 3, 3, 3, 3, 3, 5])
    )
    assert found == pytest.approx(((16 / 9) ** 5 * 16) ** (1 / 6))


def test_float_weights_are_those_of_the_file(tmp_path: Path):
    file = write_random_decoder(tmp_path / "model.gguf")
    with language_models._peer_file(argparse.Namespace(file=str(file), float=True)) as path:
        source, floats = read_gguf(file), read_gguf(path)
        assert floats.metadata.keys() == source.metadata.keys()
        for name, tensor in source.tensors.items():
            np.testing.assert_array_equal(dequantize(*floats.tensors[name]), dequantize(*tensor))
    assert not Path(path).exists()


def test_where_tokens_differ_the_largest_logits_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    file = str(write_random_decoder(tmp_path / "model.gguf"))
    monkeypatch.setattr(language_models, "find_library", lambda name: object())
    monkeypatch.setattr(language_models, "TEXTS", language_models.TEXTS[:2])
    monkeypatch.setattr(language_models, "_llama_cpp", lambda *_, **settings: lambda prompt, n: iter([-1] * n))
    assert language_models.main([file, "--float", "--tokens", "2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["texts"]
    assert len(rows) == 2 and all(row["equal"] == 0 and row["gap"] > 0 for row in rows)


def test_new_processes_have_a_first_token_and_a_peak_of_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    file = str(write_random_decoder(tmp_path / "model.gguf"))
    monkeypatch.setattr(language_models, "find_library", lambda name: None)
    monkeypatch.setattr(language_models, "_START", (1, 2, 3))
    for name in ("_GENERATOR", "_NATIVE"):
        monkeypatch.setattr(language_models, name, getattr(language_models, name).replace("504, 3575, 282", "1, 2, 3"))
    assert language_models.main([file, "--start", "--rounds", "1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["starts"]
    assert len(rows) >= 2 and all(row["first token s"] > 0 and row["peak MB"] > 1 for row in rows)


def test_a_process_without_a_token_is_an_error(tmp_path: Path):
    with pytest.raises(RuntimeError, match="ended with 3"):
        language_models._start(["sh", "-c", "exit 3"], str(tmp_path))
