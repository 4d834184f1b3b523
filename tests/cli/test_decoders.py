"""``graphc compile`` for language models: a library and a model file of two entries, and wrong arguments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import graphc as gc
from graphc.cli import console
from tests.cli.conftest import Graphc
from tools.gguf_files import write_random_decoder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_random_decoder(tmp_path / "model.gguf")


def test_a_library(model: Path, graphc: Graphc):
    done = graphc("compile", model, "--places", 128, "--entry", "step", "--json", "-o", model.with_suffix(".so"))
    assert done.code == console.OK, done.err
    assert list(json.loads(done.out)["entries"]) == ["step"]
    assert "MODEL_STEP_POSITION_MAX 127\n" in model.with_suffix(".h").read_text()


def test_a_model_file_of_a_folder(tmp_path: Path, graphc: Graphc):
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    sizes = {"hidden_size": 64, "intermediate_size": 64, "vocab_size": 96, "max_position_embeddings": 128}
    counts = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = {"model_type": "llama", **sizes, **counts}
    (tmp_path / "config.json").write_text(json.dumps(config))
    gc.save_state(gc.llm.Decoder(gc.llm.decoder_config(config)).state_dict(), tmp_path / "model.safetensors")
    assert graphc("compile", tmp_path, "-o", tmp_path / "model.gcm").code == console.OK
    assert list(gc.load(tmp_path / "model.gcm").entries) == ["prefill", "step"]


def test_wrong_arguments(model: Path, models: Path, graphc: Graphc):
    for output, arguments, message in (
        ("a.so", ["--input", "x:f32[1]"], "--input does not apply to language models"),
        ("a.gcm", ["--golden", 1], "--golden does not apply to language models"),
        ("a.onnx", [], "an ONNX file one"),
    ):
        done = graphc("compile", model, *arguments, "-o", model.parent / output)
        assert done.code == console.USAGE and message in done.err, done.err
    done = graphc("compile", f"{models}:Net", "--places", 8, "-o", model.parent / "a.so")
    assert done.code == console.USAGE and "--places applies only to language models" in done.err
    model.write_bytes(model.read_bytes()[:100])
    assert graphc("compile", model, "-o", model.parent / "a.so").code == console.DAMAGED
