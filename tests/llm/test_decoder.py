"""Logits of small random models equal those of ``transformers``, from safetensors and from GGUF files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import llm

pytest.importorskip("torch", reason="compares with transformers")
pytest.importorskip("transformers", reason="compares with transformers")
pytest.importorskip("gguf", reason="writes GGUF files")
from tests.llm import models

TOKENS = np.random.default_rng(0).integers(0, models.SIZES["vocab_size"], (2, 12))


def check(decoder: llm.Decoder, expected: np.ndarray, tokens: np.ndarray = TOKENS) -> None:
    with gc.no_grad():
        logits = decoder(gc.tensor(tokens)).numpy()
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(logits, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", models.MODELS)
def test_logits_from_safetensors(name: str, tmp_path: Path):
    model = models.make(name)
    model.save_pretrained(tmp_path)
    check(llm.load(tmp_path, places=64), models.logits_of(model, TOKENS))


@pytest.mark.parametrize("name", [name for name in models.MODELS if name not in models.FOLDERS_ONLY])
def test_logits_from_gguf(name: str, tmp_path: Path):
    model = models.make(name, **({"sliding_window": None} if name in models.NO_WINDOW else {}))
    models.write_gguf(model, tmp_path / "model.gguf")
    check(llm.load(tmp_path / "model.gguf", places=64), models.logits_of(model, TOKENS))


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_logits_of_caches_longer_than_the_original_context(kind: str, tmp_path: Path):
    model, path = models.make("phi3 longrope"), tmp_path / "model.gguf"
    model.save_pretrained(tmp_path)
    models.write_gguf(model, path)
    tokens = np.random.default_rng(1).integers(0, models.SIZES["vocab_size"], (1, 70))
    decoder = llm.load(tmp_path if kind == "folder" else path, places=128)
    check(decoder, models.logits_of(model, tokens), tokens)
    with gc.no_grad():
        short = decoder(gc.tensor(TOKENS)).numpy()
    assert np.abs(short - models.logits_of(model, TOKENS)).max() > 1e-2, "short texts have other frequencies there"
