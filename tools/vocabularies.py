"""SentencePiece vocabularies of graphc beside their peers: ``python -m tools.vocabularies [--count 6000]``.

Trains three vocabularies on the documentation with the package ``sentencepiece`` (Kudo and Richardson 2018), writes
them as GGUF files, and compares the tokens of random texts with those of ``sentencepiece`` and, where
``llama-cpp-python`` is installed, of llama.cpp. Each text is decoded, too. Exits with 1 if tokens differ from
``sentencepiece`` or a text does not come back.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.timing import find_library
from graphc import llm
from tools.gguf_files import gguf_bytes

ROOT = Path(__file__).parents[1]
WORDS = "naïve façade Ångström 日本語のテキスト 漢字 한국어 🙂🚀👩‍👩‍👧 ελληνικά русский עברית العربية ö ß ñ"
SPECIAL = ("<s>", "</s>", "<|im|>", "[INST]", "<<x>>", "<unk>")
"""Pieces that ``sentencepiece`` does not look for in a text, unlike readers of GGUF files."""
VOCABULARIES: dict[str, dict[str, Any]] = {
    "space before each text": {},
    "no space before a text": {"add_dummy_prefix": False},
    "own pieces": {"user_defined_symbols": ["[INST]", "<<x>>", "<<x>>y"], "control_symbols": ["<|im|>"]},
}
ARCHITECTURE = {
    "general.architecture": "llama",
    "llama.context_length": 64,
    "llama.embedding_length": 32,
    "llama.block_count": 1,
    "llama.feed_forward_length": 48,
    "llama.attention.head_count": 4,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.dimension_count": 8,
}
"""Metadata without which llama.cpp reads no vocabulary."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.vocabularies", description=__doc__)
    parser.add_argument("--count", type=int, default=6000, help="number of texts for each vocabulary")
    options = parser.parse_args(argv)
    trainer = find_library("sentencepiece")
    if trainer is None:
        parser.error("install sentencepiece: pip install sentencepiece")
    lines = [line for path in sorted((ROOT / "docs").glob("*.md")) for line in path.read_text("utf-8").splitlines(True)]
    lines += [WORDS + "\n"] * 30
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, settings in VOCABULARIES.items():
            peer = train(trainer, Path(folder), lines, settings)
            wrong += compare(name, peer, write(peer, Path(folder, "vocabulary.gguf"), settings), lines, options.count)
    return 1 if wrong else 0


def train(package: Any, folder: Path, lines: Sequence[str], settings: dict[str, Any]) -> Any:
    """Return a ``SentencePieceProcessor`` of 4,000 pieces."""
    corpus, prefix = folder / "corpus.txt", folder / "vocabulary"
    corpus.write_text("".join(lines), encoding="utf-8")
    package.SentencePieceTrainer.train(
        input=str(corpus), model_prefix=str(prefix), model_type="bpe", vocab_size=4000, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.999,
        allow_whitespace_only_pieces=True, split_digits=True, minloglevel=2, **settings,
    )  # fmt: skip
    return package.SentencePieceProcessor(f"{prefix}.model")


def write(peer: Any, path: Path, settings: dict[str, Any]) -> Path:
    """Write the pieces of a ``SentencePieceProcessor`` to a GGUF file."""
    ids = range(len(peer))
    user = set(settings.get("user_defined_symbols", ()))

    def kind(i: int) -> int:
        flags = (
            peer.is_unknown(i),
            peer.is_control(i),
            peer.id_to_piece(i) in user,
            peer.is_unused(i),
            peer.is_byte(i),
        )
        return next((number for number, flag in enumerate(flags, 2) if flag), 1)

    vocabulary = {
        "model": "llama",
        "pre": "default",
        "tokens": [peer.id_to_piece(i) for i in ids],
        "scores": np.array([peer.get_score(i) for i in ids], np.float32),
        "token_type": np.array([kind(i) for i in ids], np.int32),
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unknown_token_id": 0,
        "add_space_prefix": settings.get("add_dummy_prefix", True),
    }
    metadata = ARCHITECTURE | {f"tokenizer.ggml.{key}": value for key, value in vocabulary.items()}
    path.write_bytes(gguf_bytes(metadata, {}))
    return path


def texts(lines: Sequence[str], count: int) -> Iterator[str]:
    """Yield random texts: of the documentation, of many scripts, of spaces and control bytes, with special pieces."""
    choices, document = random.Random(0), "".join(lines)

    def code_point() -> str:
        ranges = ((1, 0x80), (0x80, 0xD800), (0xE000, 0x10FFFF))
        return chr(choices.randrange(*choices.choice(ranges)))

    for i in range(count):
        start = choices.randrange(len(document))
        kinds = (
            document[start : start + choices.randrange(1, 200)],
            " ".join(choices.choices(WORDS.split(" "), k=5)),
            "".join(choices.choices("  \t\n\r\x00\x01\x7fab.é日🙂", k=choices.randrange(1, 20))),
            " " * choices.randrange(1, 9) + choices.choice(lines),
            "".join(code_point() for _ in range(8)),
            choices.choice(["<s>", "a<s> b", " <s>  x", "<0x41>", "[INST]x"]) + choices.choice(lines),
        )
        text = kinds[i % len(kinds)]
        if "\u2581" not in text:  # the mark of a space, which decodes to one
            yield text


def compare(name: str, peer: Any, path: Path, lines: Sequence[str], count: int) -> int:
    """Print how many texts have the tokens of the peers. Return the number of wrong ones: tokens or decoded texts."""
    own, library = llm.load_tokenizer(path), find_library("llama_cpp")
    other = library and library.Llama(str(path), vocab_only=True, verbose=False)
    controls = re.compile("|".join(re.escape(peer.id_to_piece(i)) for i in range(len(peer)) if peer.is_control(i)))
    compared = different = unequal = total = undecoded = 0
    for text in texts(lines, count):
        tokens, total = own.encode(text), total + 1
        if not any(piece in text for piece in (*SPECIAL, "\0")):
            compared, different = compared + 1, different + (tokens != peer.encode(text))
        if other is not None:
            unequal += tokens != other.tokenize(text.encode(), add_bos=False, special=True)
        expected = controls.sub("", text)
        undecoded += own.decode(tokens) != expected or "".join(own.stream(tokens)) != expected
    beside = "" if other is None else f", {total - unequal} of {total} those of llama.cpp"
    print(f"{name}: {compared - different} of {compared} texts have the tokens of sentencepiece{beside}", end="")
    print(f"; {total - undecoded} of {total} decode to the text")
    return different + undecoded


if __name__ == "__main__":
    sys.exit(main())
