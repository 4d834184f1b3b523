"""The benchmark of language models: a small random file, and an engine that agrees for some tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import language_models
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
