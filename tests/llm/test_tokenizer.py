"""Tokenizers of GGUF files and folders, and streams of text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphc import llm
from graphc.errors import ArgumentError, ArtifactError, UnsupportedError
from graphc.llm.tokenizer import until
from tools.gguf_files import gguf_bytes, vocabulary, write_random_decoder

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
TEXT = "naïve 日本 🙂 x"


@pytest.fixture
def tokenizer(tmp_path: Path) -> llm.Tokenizer:
    return llm.load_tokenizer(write_random_decoder(tmp_path / "model.gguf"))


def test_texts_are_bytes_with_this_vocabulary(tokenizer: llm.Tokenizer):
    assert len(tokenizer.encode(TEXT)) == len(TEXT.encode())
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT


def test_control_tokens_are_one_token_and_not_printed(tokenizer: llm.Tokenizer):
    assert tokenizer.encode("a<|3|>b")[1:2] == [259] and tokenizer.decode(tokenizer.encode("a<|3|>b")) == "ab"


def test_a_stream_yields_whole_characters(tokenizer: llm.Tokenizer):
    texts = list(tokenizer.stream(tokenizer.encode(TEXT)))
    assert "".join(texts) == TEXT and not any("\ufffd" in text for text in texts)
    cut = tokenizer.encode("日")[:2]
    assert "".join(tokenizer.stream(cut)) == tokenizer.decode(cut)


@pytest.mark.parametrize("size", [1, 2, 3, 20])
def test_a_stop_ends_a_stream(size: int):
    text = "ababa ab<end"
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    for stops, expected in (
        ([], text),
        (["<end>"], text),
        (["aba "], "ab"),
        (["b<e", "<end"], "ababa a"),
        (["x", "ab"], ""),
    ):
        assert "".join(until(pieces, stops)) == expected


def test_a_stream_yields_all_that_begins_no_stop():
    pieces = until(iter(["ab", "c<", "d", "<e", "nd", "more"]), ["<end"])
    assert list(pieces) == ["ab", "c", "<d"]


def test_merges_of_a_file(tmp_path: Path):
    merged = vocabulary()
    merged["tokenizer.ggml.tokens"][256] = "ab"
    merged["tokenizer.ggml.merges"] = ["a b"]
    merged |= {f"tokenizer.ggml.{kind}_token_id": 257 + i for i, kind in enumerate(("eos", "eot", "eom"))}
    (tmp_path / "a.gguf").write_bytes(gguf_bytes(merged, {}))
    tokenizer = llm.load_tokenizer(tmp_path / "a.gguf")
    assert len(tokenizer.encode("abc")) == 2 and tokenizer.stops == {257, 258, 259}


@pytest.mark.parametrize(
    ("changes", "begin"),
    [
        ({}, []),
        ({"tokenizer.ggml.add_bos_token": True}, [257]),
        ({"tokenizer.ggml.pre": "llama-bpe"}, [257]),
        ({"tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.add_bos_token": False}, []),
    ],
)
def test_the_token_of_the_beginning(changes: dict, begin: list[int], tmp_path: Path):
    metadata = {**vocabulary(), "tokenizer.ggml.bos_token_id": 257, **changes}
    (tmp_path / "a.gguf").write_bytes(gguf_bytes(metadata, {}))
    tokenizer = llm.load_tokenizer(tmp_path / "a.gguf")
    assert tokenizer.prompt("ab") == [*begin, *tokenizer.encode("ab")] and len(tokenizer.encode("ab")) == 2


def test_words_of_llama_3_are_single_tokens_without_merges(tmp_path: Path):
    metadata = vocabulary()
    metadata["tokenizer.ggml.tokens"][256] = "abc"
    metadata["tokenizer.ggml.token_type"][256] = 1
    counts = []
    for split in ("default", "llama-bpe"):
        (tmp_path / "a.gguf").write_bytes(gguf_bytes({**metadata, "tokenizer.ggml.pre": split}, {}))
        counts.append(len(llm.load_tokenizer(tmp_path / "a.gguf").encode("abc")))
    assert counts == [3, 1]


def test_the_beginning_of_texts_of_folders(tmp_path: Path, tokenizer: llm.Tokenizer):
    processors = tokenizers.processors
    tokenizer.core.post_processor = processors.TemplateProcessing(
        "<|3|> $A <|4|>", None, [("<|3|>", 259), ("<|4|>", 260)]
    )
    tokenizer.core.save(str(tmp_path / "tokenizer.json"))
    folder = llm.load_tokenizer(tmp_path)
    assert folder.prompt("ab") == [259, *tokenizer.encode("ab")] and folder.encode("ab") == tokenizer.encode("ab")


def test_folders(tmp_path: Path, tokenizer: llm.Tokenizer):
    with pytest.raises(ArtifactError, match=r"no tokenizer\.json"):
        llm.load_tokenizer(tmp_path)
    tokenizer.core.save(str(tmp_path / "tokenizer.json"))
    assert llm.load_tokenizer(tmp_path).encode(TEXT) == tokenizer.encode(TEXT)


@pytest.mark.parametrize(
    ("generation", "config", "stops"),
    [
        (None, None, {257}),
        ({"eos_token_id": 3}, {"eos_token_id": 4}, {257, 3}),
        ({"eos_token_id": [3, 257, 5]}, None, {257, 3, 5}),
        ({}, {"eos_token_id": [4]}, {257, 4}),
    ],
)
def test_stops_of_folders(generation: object, config: object, stops: set, tmp_path: Path, tokenizer: llm.Tokenizer):
    tokenizer.core.save(str(tmp_path / "tokenizer.json"))
    files = {"tokenizer_config": {"eos_token": "<|1|>"}, "generation_config": generation, "config": config}
    for name, value in files.items():
        if value is not None:
            (tmp_path / f"{name}.json").write_text(json.dumps(value))
    assert llm.load_tokenizer(tmp_path).stops == stops


@pytest.mark.parametrize(
    "text", ['{"eos_token_id": "x"}', '{"eos_token_id": [1, -1]}', '{"eos_token_id": true}', "[]", "{"]
)
def test_damaged_stops(text: str, tmp_path: Path, tokenizer: llm.Tokenizer):
    tokenizer.core.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "generation_config.json").write_text(text)
    with pytest.raises(ArtifactError, match=r"eos_token_id|not an object|damaged"):
        llm.load_tokenizer(tmp_path)


TEMPLATE = "{% for m in messages %}{{ bos_token }}{{ m.content }}{% endfor %}{% if add_generation_prompt %}>{% endif %}"
MESSAGES = [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "c"}]


def check_chat(tokenizer: llm.Tokenizer) -> None:
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    a, b, c, end = (tokenizer.encode(x)[0] for x in "abc>")
    assert tokenizer.chat(MESSAGES) == [258, a, b, 258, c, end]
    assert tokenizer.chat(MESSAGES, add_generation_prompt=False) == [258, a, b, 258, c]


def test_chats_by_the_template_of_a_gguf_file(tmp_path: Path):
    (tmp_path / "a.gguf").write_bytes(gguf_bytes(vocabulary(), {}))
    with pytest.raises(ArgumentError, match="no chat template"):
        llm.load_tokenizer(tmp_path / "a.gguf").chat(MESSAGES)
    metadata = {**vocabulary(), "tokenizer.chat_template": TEMPLATE, "tokenizer.ggml.bos_token_id": 258}
    (tmp_path / "a.gguf").write_bytes(gguf_bytes(metadata, {}))
    check_chat(llm.load_tokenizer(tmp_path / "a.gguf"))


@pytest.mark.parametrize("place", ["file", "config", "list"])
def test_chats_by_the_template_of_a_folder(place: str, tmp_path: Path, tokenizer: llm.Tokenizer):
    tokenizer.core.save(str(tmp_path / "tokenizer.json"))
    config: dict[str, object] = {"bos_token": {"content": "<|2|>"}, "eos_token": "<|1|>", "chat_template": TEMPLATE}
    if place == "list":
        config["chat_template"] = [{"name": "other", "template": "x"}, {"name": "default", "template": TEMPLATE}]
    elif place == "file":
        config["chat_template"] = "x"
        (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    loaded = llm.load_tokenizer(tmp_path)
    assert loaded.stops == {257}
    check_chat(loaded)
    (tmp_path / "tokenizer_config.json").write_text("[]")
    with pytest.raises(ArtifactError, match="not an object"):
        llm.load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"tokenizer.ggml.model": "t5"}, UnsupportedError, "kind 't5'"),
        ({"tokenizer.ggml.pre": "other"}, UnsupportedError, "split by 'other'"),
        ({"tokenizer.ggml.merges": ["q"]}, ArtifactError, "damaged"),
        ({"tokenizer.ggml.tokens": ["a", "a"]}, ArtifactError, "different strings"),
        ({"tokenizer.ggml.token_type": np.zeros(3, np.int32)}, ArtifactError, "not a type for each"),
    ],
)
def test_damaged_vocabularies(change: dict, error: type[Exception], message: str, tmp_path: Path):
    (tmp_path / "a.gguf").write_bytes(gguf_bytes({**vocabulary(), **change}, {}))
    with pytest.raises(error, match=message):
        llm.load_tokenizer(tmp_path / "a.gguf")
