"""SentencePiece vocabularies: tokens equal those of the definition, and decoding returns the text."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphc import llm
from graphc.errors import ArtifactError
from tools.gguf_files import gguf_bytes

WORDS = ["▁t", "▁th", "▁the", "▁then", "th", "the", "he", "re", "en", "▁a", "an", "and", "▁an", "nd", "▁▁", "▁▁▁▁"]
WORDS += ["é", "né", "ï", "日本", "日", "語", "🙂", "aa", "aaa", "aaaa", "ba", "ab", "aab"]
TEXTS = [
    "",
    "the then there",
    " a  b    c",
    "naïve né é",
    "日本語 🙂🚀",
    "a\tb\r\n",
    "\x00\x01\x7f",
    "aaaaaaa",
    "<0x41>",
    "<unk>",
]


def vocabulary(space: bool = True) -> dict[str, Any]:
    """Return the metadata of pieces: special ones, bytes, words, and single characters with the lowest scores."""
    letters = sorted({c for word in WORDS for c in word} - set(WORDS))
    control, user = ["<s>", "</s>", "<|im|>"], ["[X]", "[X]]"]
    tokens = ["<unk>", *control, *user, *(f"<0x{b:02X}>" for b in range(256)), *WORDS, *letters]
    # Some words have equal scores, so that the order of their places in the text decides.
    scores = [0.0] * (262) + [-float(i // 2) for i in range(len(WORDS))] + [-100.0] * len(letters)
    types = [2] + [3] * 3 + [4] * 2 + [6] * 256 + [1] * (len(WORDS) + len(letters))
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": np.array(scores, np.float32),
        "tokenizer.ggml.token_type": np.array(types, np.int32),
        "tokenizer.ggml.add_space_prefix": space,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }


def load(path: Path, metadata: dict[str, Any]) -> llm.Tokenizer:
    path.write_bytes(gguf_bytes(metadata, {}))
    return llm.load_tokenizer(path)


def defined(text: str, metadata: dict[str, Any]) -> list[int]:
    """Return the tokens of a text without special pieces by the definition: merge the best pair until there is none."""
    tokens, scores = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.scores"]
    ids = {token: i for i, token in enumerate(tokens) if i >= 262}
    symbols = list((" " * metadata["tokenizer.ggml.add_space_prefix"] + text).replace(" ", "▁")) if text else []
    while True:
        pairs = [a + b for a, b in pairwise(symbols)]
        best = [(scores[ids[pair]], -i) for i, pair in enumerate(pairs) if pair in ids]
        if not best:
            break
        i = -max(best)[1]
        symbols[i : i + 2] = [pairs[i]]
    return [t for s in symbols for t in ([ids[s]] if s in ids else [6 + byte for byte in s.encode()])]


@pytest.mark.parametrize("space", [True, False])
def test_tokens_are_those_of_the_definition(space: bool, tmp_path: Path):
    metadata, choices = vocabulary(space), random.Random(0)
    tokenizer = load(tmp_path / "a.gguf", metadata)
    parts = ["a", "aa", "b", "the", "n", "d", "re", " ", "  ", "é", "日", "本", "🙂", "\t", "\x00", "ü", "<"]
    drawn = ["".join(choices.choices(parts, k=choices.randrange(1, 30))) for _ in range(300)]
    for text in [*TEXTS, *drawn]:
        tokens = tokenizer.encode(text)
        assert tokens == defined(text, metadata)
        assert tokenizer.decode(tokens) == text == "".join(tokenizer.stream(tokens))


def test_special_pieces(tmp_path: Path):
    metadata = vocabulary()
    tokenizer = load(tmp_path / "a.gguf", metadata)
    (a,), (b,) = tokenizer.encode("a"), tokenizer.encode("the")
    assert tokenizer.stops == {2}
    assert tokenizer.encode("<s>a<|im|>the") == [1, a, 3, b], "each text has its space"
    assert tokenizer.encode("a[X]]and[X]") == [a, 5, *tokenizer.encode("and"), 4], "the longest piece"
    assert tokenizer.decode(tokenizer.encode("<s>a<|im|> the[X] b")) == "a the[X] b"
    assert tokenizer.decode([10**6]) == "", "a table of tokens may be longer than the vocabulary"


def test_a_vocabulary_without_bytes(tmp_path: Path):
    metadata = vocabulary()
    metadata["tokenizer.ggml.token_type"][6:262] = 1
    assert load(tmp_path / "a.gguf", metadata).encode("aü") == [*load(tmp_path / "a.gguf", metadata).encode("a"), 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokenizer.ggml.scores": np.zeros(3, np.float32)}, "not a score"),
        ({"tokenizer.ggml.scores": np.full(262, np.nan, np.float32)}, "not a score"),
        ({"tokenizer.ggml.scores": "high"}, "not lists of numbers"),
        ({"tokenizer.ggml.token_type": np.zeros(3, np.int32)}, "not a type for each"),
        ({"tokenizer.ggml.token_type": np.zeros(262, np.float32)}, "not lists of numbers"),
        ({"tokenizer.ggml.token_type": np.full(262, 6, np.int32)}, "not a byte such as"),
        ({"tokenizer.ggml.token_type": np.ones(262, np.int32)}, "no unknown token"),
        ({"tokenizer.ggml.tokens": ["a"] * 262}, "different strings"),
        ({"tokenizer.ggml.tokens": 3}, "different strings"),
    ],
)
def test_damaged_vocabularies(change: dict[str, Any], message: str, tmp_path: Path):
    metadata = vocabulary()
    for name in ("tokens", "scores", "token_type"):
        metadata[f"tokenizer.ggml.{name}"] = metadata[f"tokenizer.ggml.{name}"][:262]
    load(tmp_path / "a.gguf", metadata)
    with pytest.raises(ArtifactError, match=message) as error:
        load(tmp_path / "a.gguf", {**metadata, **change})
    assert error.value.remedy
