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


def check(decoder: llm.Decoder, expected: np.ndarray) -> None:
    with gc.no_grad():
        logits = decoder(gc.tensor(TOKENS)).numpy()
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(logits, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", models.MODELS)
def test_logits_from_safetensors(name: str, tmp_path: Path):
    model = models.make(name)
    model.save_pretrained(tmp_path)
    check(llm.load(tmp_path), models.logits_of(model, TOKENS))


@pytest.mark.parametrize("name", models.MODELS)
def test_logits_from_gguf(name: str, tmp_path: Path):
    model = models.make(name, **({"sliding_window": None} if name in models.NO_WINDOW else {}))
    models.write_gguf(model, tmp_path / "model.gguf")
    check(llm.load(tmp_path / "model.gguf"), models.logits_of(model, TOKENS))
